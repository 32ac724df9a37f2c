/* Members of consumer groups that do nothing but heartbeat, each on a connection of its own.
 *
 * The requests come from a file that bench.members writes: one Heartbeat v4 frame a
 * member. Beats are spread evenly over the interval, as those of many processes are. An answer
 * other than "no error" ends the run: nobody joins or leaves meanwhile. JSON on stdout.
 * Usage: beat --port PORT --members FILE --interval-ms MS --seconds SECONDS
 */
#include "client.h"

#include <getopt.h>
#include <sys/epoll.h>

enum { ANSWER_BYTES = 16 }; /* size, correlation id, tags, throttle time, error code, tags */

typedef struct {
    int socket;
    uint32_t have;
    int64_t sent_at_ns; /* 0: no beat is under way */
    uint8_t answer[ANSWER_BYTES];
} Member;

static Latency latency;
static uint64_t answered, late;

static void beat(Member *member, const Template *template) {
    if (member->sent_at_ns) {
        late++; /* the last one has no answer yet: a client would not send another */
        return;
    }
    member->sent_at_ns = now_ns();
    if (send(member->socket, template->frame, template->frame_bytes, MSG_NOSIGNAL) !=
        (ssize_t)template->frame_bytes)
        die("cannot send: %s", strerror(errno));
}

static void receive(Member *member) {
    ssize_t got = recv(member->socket, member->answer + member->have, ANSWER_BYTES - member->have, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) die("the broker closed a member's connection");
    member->have += (uint32_t)got;
    if (member->have < ANSWER_BYTES) return;
    int16_t error;
    memcpy(&error, member->answer + 13, 2);
    if (error) die("a heartbeat was answered with error %d", (int16_t)be16toh((uint16_t)error));
    add_latency(&latency, (uint64_t)(now_ns() - member->sent_at_ns));
    member->sent_at_ns = 0;
    member->have = 0;
    answered++;
}

int main(int argc, char **argv) {
    int port = 0, interval_ms = 3000;
    double seconds = 0;
    const char *path = NULL;
    static const struct option options[] = {{"port", 1, 0, 'p'}, {"members", 1, 0, 'm'},
                                            {"interval-ms", 1, 0, 'i'}, {"seconds", 1, 0, 's'},
                                            {0, 0, 0, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'm': path = optarg; break;
        case 'i': interval_ms = atoi(optarg); break;
        case 's': seconds = atof(optarg); break;
        default: return 2;
        }
    if (!path || !port || seconds <= 0 || interval_ms <= 0)
        die("give --port, --members, --seconds and --interval-ms");
    uint32_t count;
    const Template *templates = load_templates(path, &count);
    struct rlimit files = {0, 0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    Member *members = calloc(count, sizeof *members);
    int epoll = epoll_create1(0);
    if (!members || epoll < 0) die("out of memory");
    for (uint32_t i = 0; i < count; i++) {
        members[i].socket = connect_to("127.0.0.1", port);
        struct epoll_event event = {EPOLLIN, {.ptr = &members[i]}};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, members[i].socket, &event))
            die("epoll: %s", strerror(errno));
    }
    puts("ready"); /* all are connected: the load may begin */
    fflush(stdout);
    double cpu = cpu_seconds();
    int64_t started = now_ns(), end = started + (int64_t)(seconds * 1e9);
    for (uint64_t turn = 0;;) {
        int64_t now = now_ns();
        if (now >= end) break;
        for (int64_t due; now >= (due = started + (int64_t)((double)turn * interval_ms * 1e6 / count)); turn++)
            beat(&members[turn % count], &templates[turn % count]);
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, 1);
        for (int i = 0; i < ready; i++) receive(events[i].data.ptr);
    }
    if (late) die("%lu heartbeats were still unanswered when the next was due", (unsigned long)late);
    putchar('{');
    report("heartbeat", answered, 0, 0, now_ns() - started, &latency);
    printf("\"client_cpu_seconds\": %.3f}\n", cpu_seconds() - cpu);
    return 0;
}
