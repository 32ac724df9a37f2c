/* A slow disk for whoever is started with this in LD_PRELOAD: each sync takes SLOW_SYNC_MS more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slowed(const char *name, int file) {
    const char *text = getenv("SLOW_SYNC_MS");
    long ms = text ? atol(text) : 0;
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(file);
}

int fdatasync(int file) { return slowed("fdatasync", file); }
int fsync(int file) { return slowed("fsync", file); }
