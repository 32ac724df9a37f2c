/* Replays pre-encoded Kafka requests as fast as a broker answers them.
 *
 * One thread, one epoll loop. The requests come from files that
 * bench.requests writes: Produce v10 frames that are sent as they are, and
 * Fetch v16 frames whose offset is patched so that each connection walks the log.
 * Every answer is parsed as far as its error code and offsets; the first fault ends
 * the run with a sentence on stderr and exit code 1. The result is JSON on stdout.
 */
#include "client.h"

#include <getopt.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "wire.h"

enum { MAX_IN_FLIGHT = 64, STALL_SECONDS = 30 };
static const size_t MIN_BUFFER_BYTES = 256 * 1024;
static const size_t MAX_ANSWER_BYTES = 256u * 1024 * 1024;

/* What one kind of connection does, and what came of it. */
typedef struct {
    const char *name;
    int is_fetch, connections, in_flight;
    Template *templates;
    uint32_t template_count, next_template;
    uint64_t requests, messages, bytes, issued, count_limit;
    int64_t last_answer_ns;
    Latency latency;
} Group;

typedef struct {
    uint8_t head[HEAD_BYTES];
    uint8_t *private_frame; /* fetch only: the offset differs per connection */
    const Template *template;
    int64_t sent_at_ns;
} Slot;

typedef struct {
    int socket, wants_write;
    Group *group;
    Slot slots[MAX_IN_FLIGHT];
    uint64_t issued, sent, answered; /* request counts; a request's slot is its number mod in_flight */
    size_t sent_bytes;               /* of request number `sent` */
    uint8_t *buffer;
    size_t buffer_bytes, have;
    int64_t offset;
} Connection;

static int loops; /* a fetch that reaches the end of the log starts over at 0 */
static int64_t deadline_ns;

/* ---- answers ---- */

static void check_produced(Reader *r) {
    uint32_t topics = varint(r);
    if (topics < 2) die("a Produce answer names no topic");
    while (--topics > 0) {
        compact(r);
        for (uint32_t partitions = varint(r); partitions > 1; partitions--) {
            int32_t index = int32(r);
            int16_t error = int16(r);
            int64_t base_offset = int64(r);
            if (error) die("Produce to partition %d was answered with error %d", index, error);
            if (base_offset < 0) die("Produce was answered with base offset %ld", (long)base_offset);
            take(r, 16); /* log append time, log start offset */
            for (uint32_t n = varint(r); n > 1; n--) { take(r, 4); compact(r); tags(r); }
            compact(r);
            tags(r);
        }
        tags(r);
    }
}

static void check_fetched(Reader *r, Connection *c) {
    int32(r); /* throttle time */
    int16_t error = int16(r);
    if (error) die("Fetch was answered with error %d", error);
    int32(r); /* session id */
    if (varint(r) != 2) die("a Fetch answer does not name one topic");
    take(r, 16);
    if (varint(r) != 2) die("a Fetch answer does not name one partition");
    int32_t index = int32(r);
    error = int16(r);
    if (error) die("Fetch of partition %d at %ld: error %d", index, (long)c->offset, error);
    int64_t high_watermark = int64(r);
    take(r, 16); /* last stable offset, log start offset */
    for (uint32_t n = varint(r); n > 1; n--) { take(r, 16); tags(r); }
    int32(r); /* preferred read replica */
    uint32_t size = varint(r);
    size_t whole = 0;
    int64_t next = c->offset;
    if (size > 1) next = walk(take(r, size - 1), size - 1, c->offset, &whole);
    if (size > 1 && !whole) die("Fetch at %ld brought no whole batch", (long)c->offset);
    c->group->messages += (uint64_t)(next - c->offset);
    c->group->bytes += whole;
    c->offset = loops && next >= high_watermark ? 0 : next;
    if (loops && high_watermark == 0) die("there is nothing to fetch");
}

static void on_answer(Connection *c, const uint8_t *frame, size_t size, int64_t now) {
    Group *group = c->group;
    if (c->answered == c->sent) die("an answer came that nobody asked for");
    Slot *slot = &c->slots[c->answered % (uint64_t)group->in_flight];
    Reader r = {frame, frame + size};
    if ((uint32_t)int32(&r) != (uint32_t)c->answered) die("answers came out of order");
    tags(&r);
    if (group->is_fetch) {
        check_fetched(&r, c);
    } else {
        check_produced(&r);
        group->messages += slot->template->messages;
        group->bytes += slot->template->batch_bytes;
    }
    add_latency(&group->latency, (uint64_t)(now - slot->sent_at_ns));
    group->requests++;
    group->last_answer_ns = now;
    c->answered++;
}

/* ---- connections ---- */

static void issue(Connection *c, int64_t now) {
    Group *group = c->group;
    while (c->issued - c->answered < (uint64_t)group->in_flight && now < deadline_ns &&
           (!group->count_limit || group->issued < group->count_limit)) {
        Slot *slot = &c->slots[c->issued % (uint64_t)group->in_flight];
        if (group->is_fetch) {
            uint64_t offset = htobe64((uint64_t)c->offset);
            memcpy(slot->private_frame + slot->template->offset_position, &offset, 8);
        } else {
            slot->template = &group->templates[group->next_template];
            group->next_template = (group->next_template + 1) % group->template_count;
        }
        uint32_t correlation = htobe32((uint32_t)c->issued);
        memcpy(slot->head, slot->template->frame, HEAD_BYTES);
        memcpy(slot->head + 8, &correlation, 4);
        slot->sent_at_ns = now;
        c->issued++;
        group->issued++;
    }
}

static void flush(Connection *c, int epoll) {
    while (c->sent < c->issued) {
        struct iovec parts[2 * MAX_IN_FLIGHT];
        int count = 0;
        size_t skip = c->sent_bytes;
        for (uint64_t i = c->sent; i < c->issued; i++) {
            Slot *slot = &c->slots[i % (uint64_t)c->group->in_flight];
            const uint8_t *frame = slot->private_frame ? slot->private_frame : slot->template->frame;
            size_t head = skip < HEAD_BYTES ? skip : HEAD_BYTES;
            parts[count++] = (struct iovec){slot->head + head, HEAD_BYTES - head};
            skip = skip > HEAD_BYTES ? skip - HEAD_BYTES : 0;
            parts[count++] = (struct iovec){(void *)(frame + HEAD_BYTES + skip),
                                            slot->template->frame_bytes - HEAD_BYTES - skip};
            skip = 0;
        }
        ssize_t written = writev(c->socket, parts, count);
        if (written < 0 && errno == EAGAIN) break;
        if (written < 0) die("cannot send: %s", strerror(errno));
        size_t left = (size_t)written + c->sent_bytes;
        while (c->sent < c->issued) {
            size_t size = c->slots[c->sent % (uint64_t)c->group->in_flight].template->frame_bytes;
            if (left < size) break;
            left -= size;
            c->sent++;
        }
        c->sent_bytes = left;
    }
    int wants_write = c->sent < c->issued;
    if (wants_write != c->wants_write) {
        struct epoll_event event = {EPOLLIN | (wants_write ? EPOLLOUT : 0), {.ptr = c}};
        if (epoll_ctl(epoll, EPOLL_CTL_MOD, c->socket, &event)) die("epoll: %s", strerror(errno));
        c->wants_write = wants_write;
    }
}

/* Read what is there and handle whole answers; return whether any came. */
static int receive(Connection *c) {
    ssize_t got = recv(c->socket, c->buffer + c->have, c->buffer_bytes - c->have, 0);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got < 0) die("cannot receive: %s", strerror(errno));
    if (got == 0) die("the broker closed the connection");
    c->have += (size_t)got;
    size_t at = 0;
    int64_t now = now_ns();
    while (c->have - at >= 4) {
        uint32_t size;
        memcpy(&size, c->buffer + at, 4);
        size = be32toh(size);
        if (size > MAX_ANSWER_BYTES) die("an answer claims %u bytes", size);
        if (c->have - at < (size_t)size + 4) {
            if (at == 0 && c->buffer_bytes < (size_t)size + 4) {
                c->buffer_bytes = (size_t)size + 4;
                c->buffer = realloc(c->buffer, c->buffer_bytes);
                if (!c->buffer) die("out of memory");
            }
            break;
        }
        on_answer(c, c->buffer + at + 4, size, now);
        at += (size_t)size + 4;
    }
    if (at && c->have > at) memmove(c->buffer, c->buffer + at, c->have - at);
    c->have -= at;
    return at > 0;
}

static void open_connection(Connection *c, Group *group, int number, const char *host, int port) {
    c->group = group;
    c->socket = connect_to(host, port);
    c->buffer_bytes = MIN_BUFFER_BYTES;
    c->buffer = malloc(c->buffer_bytes);
    if (!c->buffer) die("out of memory");
    if (!group->is_fetch) return;
    const Template *template = &group->templates[(uint32_t)number % group->template_count];
    c->slots[0].template = template;
    c->slots[0].private_frame = malloc(template->frame_bytes);
    if (!c->slots[0].private_frame) die("out of memory");
    memcpy(c->slots[0].private_frame, template->frame, template->frame_bytes);
}

static void report_group(const Group *group, int64_t started_ns) {
    report(group->name, group->requests, group->messages, group->bytes,
           group->last_answer_ns - started_ns, &group->latency);
}

static void run(Connection *connections, int count, const Group *produce, int epoll) {
    struct epoll_event events[256];
    int64_t last_progress = now_ns();
    for (int i = 0; i < count; i++) {
        issue(&connections[i], last_progress);
        flush(&connections[i], epoll);
    }
    for (;;) {
        int64_t now = now_ns();
        int waits_for_ack = 0;
        for (int i = 0; i < count && !waits_for_ack; i++)
            waits_for_ack = connections[i].group == produce &&
                            connections[i].answered < connections[i].issued;
        int is_over = now >= deadline_ns ||
                      (produce->count_limit && produce->issued >= produce->count_limit);
        if (is_over && !waits_for_ack) return;
        if (now - last_progress > (int64_t)STALL_SECONDS * 1000000000)
            die("the broker answered nothing for %d s", STALL_SECONDS);
        int ready = epoll_wait(epoll, events, 256, 50);
        if (ready < 0 && errno != EINTR) die("epoll: %s", strerror(errno));
        now = now_ns();
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP) && receive(c)) last_progress = now;
            issue(c, now);
            flush(c, epoll);
        }
    }
}

int main(int argc, char **argv) {
    static Group produce = {.name = "produce", .connections = 1, .in_flight = 1};
    static Group fetch = {.name = "fetch", .is_fetch = 1, .connections = 1, .in_flight = 1};
    const char *host = "127.0.0.1";
    int port = 0;
    double seconds = 3600;
    static const struct option options[] = {
        {"host", 1, 0, 'h'}, {"port", 1, 0, 'p'}, {"produce", 1, 0, 'w'}, {"fetch", 1, 0, 'r'},
        {"produce-connections", 1, 0, 'c'}, {"fetch-connections", 1, 0, 'd'},
        {"in-flight", 1, 0, 'i'}, {"seconds", 1, 0, 's'}, {"count", 1, 0, 'n'},
        {"loop", 0, 0, 'l'}, {0, 0, 0, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'h': host = optarg; break;
        case 'p': port = atoi(optarg); break;
        case 'w': produce.templates = load_templates(optarg, &produce.template_count); break;
        case 'r': fetch.templates = load_templates(optarg, &fetch.template_count); break;
        case 'c': produce.connections = atoi(optarg); break;
        case 'd': fetch.connections = atoi(optarg); break;
        case 'i': produce.in_flight = atoi(optarg); break;
        case 's': seconds = atof(optarg); break;
        case 'n': produce.count_limit = strtoull(optarg, NULL, 10); break;
        case 'l': loops = 1; break;
        default: return 2;
        }
    if (!produce.template_count) produce.connections = 0;
    if (!fetch.template_count) fetch.connections = 0;
    int count = produce.connections + fetch.connections;
    if (count < 1 || produce.in_flight < 1 || produce.in_flight > MAX_IN_FLIGHT)
        die("give --produce or --fetch, and 1 to %d requests --in-flight", MAX_IN_FLIGHT);

    Connection *connections = calloc((size_t)count, sizeof *connections);
    int epoll = epoll_create1(0);
    if (!connections || epoll < 0) die("out of memory");
    for (int i = 0; i < count; i++) {
        int is_producer = i < produce.connections;
        open_connection(&connections[i], is_producer ? &produce : &fetch,
                        is_producer ? i : i - produce.connections, host, port);
        struct epoll_event event = {EPOLLIN, {.ptr = &connections[i]}};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].socket, &event))
            die("epoll: %s", strerror(errno));
    }
    double cpu = cpu_seconds();
    int64_t started = now_ns();
    deadline_ns = started + (int64_t)(seconds * 1e9);
    run(connections, count, &produce, epoll);
    putchar('{');
    if (produce.connections) report_group(&produce, started);
    if (fetch.connections) report_group(&fetch, started);
    printf("\"client_cpu_seconds\": %.3f}\n", cpu_seconds() - cpu);
    return 0;
}
