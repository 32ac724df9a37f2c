/* An innocent client: small requests at a steady pace, and how long each answer took.
 *
 * The requests come from a file that bench.stalls.innocent writes, in this order:
 * ApiVersions v3, Produce v10, Metadata and Heartbeat v4. Each has a connection of its own. The
 * first three take turns, one a millisecond; the heartbeat has its own pace. A connection has one
 * request under way; those that fall due meanwhile count as sent then (coordinated omission).
 *
 * Two controls tell what is this machine's doing and not the broker's: a child that only echoes,
 * asked at the same pace, and the longest gap between two turns of the loop here. The loop runs
 * with real-time priority where that is allowed; the echo does not, as no broker does.
 *
 * "ready" on stdout; a line on stdin: all counts begin anew; its end: JSON on stdout.
 * Usage: ping --port PORT --requests FILE --heartbeat-ms MS --seconds AT_MOST
 */
#include "wire.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

enum { API_VERSIONS, PRODUCE, METADATA, HEARTBEAT, ECHO, PROBES };
enum { ANSWER_BYTES = 1 << 18, TURN_NS = 1000000, TAKING_TURNS = 3, GRACE_S = 120 };

typedef struct {
    const char *name;
    const Template *request;
    int socket; /* -1: lost */
    int kind, error, is_lost;
    int64_t interval_ns, due_ns, sent_at_ns, longest_at_ns; /* sent at 0: nothing is under way */
    uint32_t have;
    uint8_t *answer;
    Latency latency;
} Probe;

static Probe probes[PROBES] = {[API_VERSIONS] = {.name = "api_versions"},
                               [PRODUCE] = {.name = "produce"},
                               [METADATA] = {.name = "metadata"},
                               [HEARTBEAT] = {.name = "heartbeat"},
                               [ECHO] = {.name = "echo"}};
static Latency all; /* of the broker: without the echo */
static int64_t began_at_ns, longest_gap_ns;

/* Start the child that echoes; return its port. */
static int start_echo(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        die("cannot listen: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0) die("cannot fork: %s", strerror(errno));
    if (child) {
        close(listener);
        return ntohs(address.sin_port);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int peer = accept(listener, NULL, NULL);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char bytes[4096];
    for (ssize_t got; (got = recv(peer, bytes, sizeof bytes, 0)) > 0;)
        if (send(peer, bytes, (size_t)got, MSG_NOSIGNAL) != got) break;
    _exit(0);
}

static void lose(Probe *probe) {
    close(probe->socket);
    probe->socket = -1;
    probe->is_lost = 1;
}

static void ask(Probe *probe, int64_t now) {
    if (probe->socket < 0 || probe->sent_at_ns) return;
    probe->sent_at_ns = now;
    if (send(probe->socket, probe->request->frame, probe->request->frame_bytes, MSG_NOSIGNAL) !=
        (ssize_t)probe->request->frame_bytes)
        lose(probe);
}

/* Count an answer, and those that would have been asked while it was waited for. */
static void count(Probe *probe, int64_t took_ns) {
    if (took_ns > (int64_t)probe->latency.max_ns) probe->longest_at_ns = probe->sent_at_ns;
    for (int64_t ns = took_ns; ns > 0; ns -= probe->interval_ns) {
        add_latency(&probe->latency, (uint64_t)ns);
        if (probe->kind != ECHO) add_latency(&all, (uint64_t)ns);
    }
    probe->sent_at_ns = 0;
    probe->have = 0;
}

static int error_in(const Probe *probe, uint32_t size) {
    Reader r = {probe->answer + 8, probe->answer + size};
    switch (probe->kind) {
    case API_VERSIONS: return int16(&r);
    case PRODUCE: tags(&r); varint(&r); compact(&r); varint(&r); int32(&r); return int16(&r);
    case HEARTBEAT: tags(&r); int32(&r); return int16(&r);
    default: return 0;
    }
}

static void receive(Probe *probe) {
    ssize_t got = recv(probe->socket, probe->answer + probe->have, ANSWER_BYTES - probe->have, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        lose(probe);
        return;
    }
    probe->have += (uint32_t)got;
    if (probe->have < 4) return;
    uint32_t size;
    memcpy(&size, probe->answer, 4);
    size = be32toh(size) + 4;
    if (size > ANSWER_BYTES) die("an answer to %s of %u bytes", probe->name, size);
    if (probe->have < size) return;
    if (!probe->error) probe->error = error_in(probe, size);
    count(probe, now_ns() - probe->sent_at_ns);
}

static void begin_anew(void) {
    began_at_ns = now_ns();
    longest_gap_ns = 0;
    memset(&all, 0, sizeof all);
    for (int i = 0; i < PROBES; i++) memset(&probes[i].latency, 0, sizeof probes[i].latency);
}

static int is_waiting(void) {
    for (int i = 0; i < PROBES; i++)
        if (probes[i].socket >= 0 && probes[i].sent_at_ns) return 1;
    return 0;
}

/* Read what the bench wants; 0 when it wants the end. */
static int obey(void) {
    char order;
    if (read(STDIN_FILENO, &order, 1) <= 0) return 0;
    begin_anew();
    return 1;
}

static void run(int epoll, int64_t end_ns) {
    int64_t last_turn_ns = now_ns();
    for (int is_ending = 0; !is_ending || (is_waiting() && now_ns() < end_ns);) {
        int64_t now = now_ns();
        if (now - last_turn_ns > longest_gap_ns) longest_gap_ns = now - last_turn_ns;
        last_turn_ns = now;
        if (now >= end_ns) is_ending = 1;
        for (int i = 0; i < PROBES && !is_ending; i++) {
            if (now < probes[i].due_ns) continue;
            ask(&probes[i], now);
            probes[i].due_ns += (now - probes[i].due_ns) / probes[i].interval_ns * probes[i].interval_ns;
            probes[i].due_ns += probes[i].interval_ns;
        }
        struct epoll_event events[PROBES + 1];
        int ready = epoll_wait(epoll, events, PROBES + 1, 1);
        for (int i = 0; i < ready; i++) {
            Probe *probe = events[i].data.ptr;
            if (probe) {
                receive(probe);
            } else if (!is_ending && !obey()) {
                is_ending = 1;
                epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
                end_ns = now_ns() + (int64_t)GRACE_S * 1000000000;
                ask(&probes[HEARTBEAT], now_ns()); /* the last word on the membership */
            }
        }
    }
}

int main(int argc, char **argv) {
    int port = 0, heartbeat_ms = 2000;
    double seconds = 0;
    const char *path = NULL;
    static const struct option options[] = {{"port", 1, 0, 'p'}, {"requests", 1, 0, 'r'},
                                            {"heartbeat-ms", 1, 0, 'h'}, {"seconds", 1, 0, 's'},
                                            {0, 0, 0, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'r': path = optarg; break;
        case 'h': heartbeat_ms = atoi(optarg); break;
        case 's': seconds = atof(optarg); break;
        default: return 2;
        }
    if (!path || !port || seconds <= 0 || heartbeat_ms <= 0)
        die("give --port, --requests, --seconds and --heartbeat-ms");
    uint32_t requests;
    const Template *templates = load_templates(path, &requests);
    if (requests != ECHO) die("%s holds %u requests and not %d", path, requests, ECHO);

    int echo_port = start_echo(), epoll = epoll_create1(0);
    /* Its pages are touched and it runs when it wants to: its own pauses are no one's stall. */
    mlockall(MCL_CURRENT | MCL_FUTURE);
    struct sched_param priority = {.sched_priority = 1};
    int is_real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    int64_t now = now_ns();
    for (int i = 0; i < PROBES; i++) {
        Probe *probe = &probes[i];
        probe->kind = i;
        probe->request = &templates[i == ECHO ? API_VERSIONS : i];
        probe->socket = connect_to("127.0.0.1", i == ECHO ? echo_port : port);
        probe->interval_ns = i == ECHO ? TURN_NS : i == HEARTBEAT ? (int64_t)heartbeat_ms * 1000000
                                                                  : TAKING_TURNS * (int64_t)TURN_NS;
        probe->due_ns = now + i % TAKING_TURNS * TURN_NS;
        probe->answer = calloc(1, ANSWER_BYTES);
        if (!probe->answer) die("out of memory");
        struct epoll_event event = {EPOLLIN, {.ptr = probe}};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, probe->socket, &event)) die("epoll: %s", strerror(errno));
    }
    struct epoll_event orders = {EPOLLIN, {.ptr = NULL}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &orders)) die("epoll: %s", strerror(errno));
    puts("ready");
    fflush(stdout);
    begin_anew();
    double cpu = cpu_seconds();
    run(epoll, now_ns() + (int64_t)(seconds * 1e9));

    int64_t took_ns = now_ns() - began_at_ns;
    printf("{");
    for (int i = 0; i < PROBES; i++) {
        Probe *probe = &probes[i];
        int is_unanswered = probe->sent_at_ns != 0;
        if (is_unanswered) count(probe, now_ns() - probe->sent_at_ns);
        printf("\"%s_state\": {\"error\": %d, \"is_lost\": %s, \"is_unanswered\": %s, "
               "\"longest_at_seconds\": %.3f}, ",
               probe->name, probe->error, probe->is_lost ? "true" : "false",
               is_unanswered ? "true" : "false",
               (double)(probe->longest_at_ns - began_at_ns) / 1e9);
        report(probe->name, probe->latency.count, 0, 0, took_ns, &probe->latency);
    }
    report("all", all.count, 0, 0, took_ns, &all);
    printf("\"longest_gap_us\": %.2f, \"is_real_time\": %s, \"client_cpu_seconds\": %.3f}\n",
           (double)longest_gap_ns / 1000, is_real_time ? "true" : "false", cpu_seconds() - cpu);
    return 0;
}
