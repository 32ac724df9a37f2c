/* What the load generators share: how they fail, their clocks, sockets and files of requests. */
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "latency.h"

enum { HEAD_BYTES = 12 }; /* of a frame: its size, API key and version, correlation id */

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *name = program_invocation_short_name; /* built as NAME-DIGEST */
    fprintf(stderr, "%.*s: ", (int)strcspn(name, "-"), name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* A socket that does not block and does not wait to fill its packets. */
static inline int connect_to(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) die("%s is not an IPv4 address", host);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address))
        die("cannot connect to %s:%d: %s", host, port, strerror(errno));
    int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(connection, F_SETFL, O_NONBLOCK);
    return connection;
}

typedef struct {
    const uint8_t *frame;
    uint32_t frame_bytes, messages, batch_bytes, offset_position;
} Template;

/* Read a file of requests: "HRQ1", then per request four little-endian u32 and the frame. */
static inline Template *load_templates(const char *path, uint32_t *count) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) die("cannot open %s: %s", path, strerror(errno));
    size_t size = (size_t)status.st_size;
    const uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (bytes == MAP_FAILED || size < 4 || memcmp(bytes, "HRQ1", 4))
        die("%s is not a file of requests", path);
    Template *templates = NULL;
    *count = 0;
    for (size_t at = 4; at < size;) {
        uint32_t fields[4];
        if (size - at < sizeof fields) die("%s is cut short", path);
        memcpy(fields, bytes + at, sizeof fields);
        at += sizeof fields;
        if (le32toh(fields[0]) <= HEAD_BYTES || le32toh(fields[0]) > size - at)
            die("%s is cut short", path);
        templates = realloc(templates, (*count + 1) * sizeof *templates);
        if (!templates) die("out of memory");
        templates[(*count)++] = (Template){bytes + at, le32toh(fields[0]), le32toh(fields[1]),
                                           le32toh(fields[2]), le32toh(fields[3])};
        at += le32toh(fields[0]);
    }
    if (!*count) die("%s holds no request", path);
    close(file);
    return templates;
}

/* One member of the JSON result, with the comma that follows it. */
static inline void report(const char *name, uint64_t requests, uint64_t messages, uint64_t bytes,
                          int64_t took_ns, const Latency *latency) {
    printf("\"%s\": {\"requests\": %lu, \"messages\": %lu, \"bytes\": %lu, \"seconds\": %.6f, "
           "\"mean_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
           "\"max_us\": %.2f}, ",
           name, (unsigned long)requests, (unsigned long)messages, (unsigned long)bytes,
           (double)took_ns / 1e9, mean_us(latency), percentile_us(latency, 0.50),
           percentile_us(latency, 0.99), percentile_us(latency, 0.999),
           (double)latency->max_ns / 1000);
}
