/* A librdkafka producer and consumer at C speed, for loads as applications make them.
 *
 * librdkafka is opened at run time, so that the copy inside the confluent-kafka
 * wheel serves and no headers are needed; the few prototypes below are its stable ABI.
 * Usage: rdk LIBRARY produce BROKERS TOPIC SECONDS VALUE_BYTES [KEY=VALUE]...
 *        rdk LIBRARY consume BROKERS TOPIC SECONDS COUNT [KEY=VALUE]...
 * consume reads partition 0 from its beginning, and again after every COUNT messages.
 * The result is JSON on stdout; any fault is a sentence on stderr and exit code 1.
 */
#include "client.h"

#include <dlfcn.h>

enum { TYPE_PRODUCER = 0, TYPE_CONSUMER = 1, FLAG_BLOCK = 4, PARTITION_ANY = -1 };
enum { ERROR_PARTITION_EOF = -191, FLUSH_MS = 60000, POLL_EVERY = 1024 };
static const int64_t OFFSET_BEGINNING = -2, STALL_NS = 30000000000;

typedef struct {
    int error;
    void *topic;
    int32_t partition;
    void *payload;
    size_t payload_bytes;
    void *key;
    size_t key_bytes;
    int64_t offset;
    void *private;
} Message;

static void *library;
static uint64_t messages, bytes;
static int64_t first_ns, last_ns;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found) die("this librdkafka has no %s", name);
    return found;
}
/* CALL(type of the result, name, argument types)(arguments) */
#define CALL(result, name, ...) ((result(*)(__VA_ARGS__))symbol("rd_kafka_" #name))

static const char *error_text(int error) { return CALL(const char *, err2str, int)(error); }

static void on_delivery(void *client, const Message *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->error) die("a message was not delivered: %s", error_text(message->error));
}

static void on_message(Message *message, void *opaque) {
    (void)opaque;
    if (message->error == ERROR_PARTITION_EOF) return;
    if (message->error) die("a message was not consumed: %s", error_text(message->error));
    /* The clock starts with the first message: connecting is not what is measured. */
    if (!first_ns) first_ns = now_ns();
    messages++;
    bytes += message->payload_bytes;
}

static void *open_client(int type, const char *brokers, char **settings, int count) {
    char reason[512];
    void *conf = CALL(void *, conf_new, void)();
    int (*set)(void *, const char *, const char *, char *, size_t) = symbol("rd_kafka_conf_set");
    if (set(conf, "bootstrap.servers", brokers, reason, sizeof reason)) die("%s", reason);
    for (int i = 0; i < count; i++) {
        char *value = strchr(settings[i], '=');
        if (!value) die("%s is not KEY=VALUE", settings[i]);
        *value++ = 0;
        if (set(conf, settings[i], value, reason, sizeof reason)) die("%s", reason);
    }
    if (type == TYPE_PRODUCER) {
        /* One callback a message would make this program the limit; failures still call. */
        if (set(conf, "delivery.report.only.error", "true", reason, sizeof reason)) die("%s", reason);
        CALL(void, conf_set_dr_msg_cb, void *, void (*)(void *, const Message *, void *))
        (conf, on_delivery);
    }
    void *client = CALL(void *, new, int, void *, char *, size_t)(type, conf, reason, sizeof reason);
    if (!client) die("%s", reason);
    return client;
}

static void produce(void *client, void *topic, double seconds, size_t size) {
    int (*send)(void *, int32_t, int, void *, size_t, const void *, size_t, void *) =
        symbol("rd_kafka_produce");
    int (*poll)(void *, int) = symbol("rd_kafka_poll");
    int (*flush)(void *, int) = symbol("rd_kafka_flush");
    char *payload = malloc(size);
    if (!payload) die("out of memory");
    for (size_t i = 0; i < size; i++) payload[i] = (char)(rand() & 0xff);
    /* One message outside the clock: connection, metadata and topic are there after it. */
    if (send(topic, PARTITION_ANY, FLAG_BLOCK, payload, size, NULL, 0, NULL) || flush(client, FLUSH_MS))
        die("the first message was not delivered");
    first_ns = now_ns();
    int64_t deadline = first_ns + (int64_t)(seconds * 1e9);
    for (;;) {
        if (send(topic, PARTITION_ANY, FLAG_BLOCK, payload, size, NULL, 0, NULL))
            die("cannot produce: %s", error_text(CALL(int, last_error, void)()));
        messages++;
        bytes += size;
        if (size >= 65536 || messages % POLL_EVERY == 0) {
            poll(client, 0);
            if (now_ns() >= deadline) break;
        }
    }
    if (flush(client, FLUSH_MS)) die("messages were still undelivered after %d ms", FLUSH_MS);
    poll(client, 0);
    last_ns = now_ns();
}

static void consume(void *client, void *topic, double seconds, uint64_t count) {
    void *queue = CALL(void *, queue_new, void *)(client);
    int (*start)(void *, int32_t, int64_t, void *) = symbol("rd_kafka_consume_start_queue");
    int (*stop)(void *, int32_t) = symbol("rd_kafka_consume_stop");
    int (*next)(void *, int, void (*)(Message *, void *), void *) =
        symbol("rd_kafka_consume_callback_queue");
    int is_over = 0;
    last_ns = now_ns();
    for (uint64_t pass_end = count; !is_over; pass_end += count) {
        if (start(topic, 0, OFFSET_BEGINNING, queue)) die("cannot start consuming");
        while (messages < pass_end && !is_over) {
            uint64_t before = messages;
            if (next(queue, 100, on_message, NULL) < 0) die("cannot consume");
            int64_t now = now_ns();
            if (messages > before) last_ns = now;
            if (now - last_ns > STALL_NS) die("the broker sends nothing");
            is_over = first_ns && now - first_ns >= (int64_t)(seconds * 1e9);
        }
        stop(topic, 0);
    }
}

int main(int argc, char **argv) {
    if (argc < 7) die("see the head of rdk.c for its arguments");
    library = dlopen(argv[1], RTLD_NOW);
    if (!library) die("cannot open librdkafka: %s", dlerror());
    int is_producer = !strcmp(argv[2], "produce");
    uint64_t number = strtoull(argv[6], NULL, 10);
    void *client =
        open_client(is_producer ? TYPE_PRODUCER : TYPE_CONSUMER, argv[3], argv + 7, argc - 7);
    void *topic = CALL(void *, topic_new, void *, const char *, void *)(client, argv[4], NULL);
    if (!topic) die("cannot open topic %s", argv[4]);
    double cpu = cpu_seconds();
    if (is_producer)
        produce(client, topic, atof(argv[5]), (size_t)number);
    else
        consume(client, topic, atof(argv[5]), number);
    printf("{\"%s\": {\"messages\": %lu, \"bytes\": %lu, \"seconds\": %.6f}, "
           "\"client_cpu_seconds\": %.3f}\n",
           argv[2], (unsigned long)messages, (unsigned long)bytes, (double)(last_ns - first_ns) / 1e9,
           cpu_seconds() - cpu);
    fflush(stdout);
    _Exit(0); /* closing a consumer with full queues takes longer than the measurement */
}
