/* A disk that breaks on demand, put before libc by LD_PRELOAD: while the file $CONVOY_DISK.full is
 * there, regular files cannot grow; while $CONVOY_DISK.broken is there, nothing can be synced. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_there(const char *ending) {
    const char *place = getenv("CONVOY_DISK");
    char path[4096];
    if (place == NULL) return 0;
    snprintf(path, sizeof path, "%s.%s", place, ending);
    return access(path, F_OK) == 0;
}

static int is_refused(int file) {
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode) && is_there("full");
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (real == NULL) real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (is_refused(file)) { errno = ENOSPC; return -1; }
    return real(file, bytes, count);
}

int fsync(int file) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    if (is_there("broken")) { errno = EIO; return -1; }
    return real(file);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (is_there("broken")) { errno = EIO; return -1; }
    return real(file);
}
