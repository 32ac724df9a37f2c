/* LD_PRELOAD: a disk that takes its time. Every fdatasync and fsync sleeps SLOW_DISK_MS first;
 * with SLOW_DISK_FAILS naming a file that exists, they fail with EIO instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int
suffer(void)
{
    const char *text = getenv("SLOW_DISK_MS");
    long ms = text == NULL ? 0 : strtol(text, NULL, 10);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
    const char *fails = getenv("SLOW_DISK_FAILS");
    if (fails != NULL && access(fails, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return 0;
}

typedef int (*Sync)(int);

int
fdatasync(int fd)
{
    static Sync real;
    if (real == NULL)
        real = (Sync)dlsym(RTLD_NEXT, "fdatasync");
    return suffer() < 0 ? -1 : real(fd);
}

int
fsync(int fd)
{
    static Sync real;
    if (real == NULL)
        real = (Sync)dlsym(RTLD_NEXT, "fsync");
    return suffer() < 0 ? -1 : real(fd);
}

int
syncfs(int fd)
{
    static Sync real;
    if (real == NULL)
        real = (Sync)dlsym(RTLD_NEXT, "syncfs");
    return suffer() < 0 ? -1 : real(fd);
}
