/* Put before libc (LD_PRELOAD), it makes the disk fail for files whose path holds BAD_DISK_FILE,
 * while the file BAD_DISK_SWITCH exists: that holds the errno to give, or 0 for short reads.
 * Reads fail from byte BAD_DISK_FROM on. BAD_DISK_WRITES=1 lets writes fail instead of reads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);

__attribute__((constructor)) static void find_real_ones(void) {
    *(void **)&real_read = dlsym(RTLD_NEXT, "read");
    *(void **)&real_pread = dlsym(RTLD_NEXT, "pread64");
    *(void **)&real_write = dlsym(RTLD_NEXT, "write");
}

/* The errno for this file, 0 for short reads, -1 where all is well. */
static int fault(int fd, int writes) {
    const char *file = getenv("BAD_DISK_FILE"), *path = getenv("BAD_DISK_SWITCH");
    if (!file || !path || (getenv("BAD_DISK_WRITES") != NULL) != writes) return -1;
    char link[64], target[4096], number[16] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, target, sizeof target - 1);
    if (size <= 0) return -1;
    target[size] = 0;
    if (!strstr(target, file)) return -1;
    FILE *stream = fopen(path, "r");
    if (!stream) return -1;
    char *got = fgets(number, sizeof number, stream);
    fclose(stream);
    return got ? atoi(number) : -1;
}

static off_t sound_until(void) {
    const char *from = getenv("BAD_DISK_FROM");
    return from ? atoll(from) : 0;
}

static size_t shorter(size_t size) { return size > 3 ? size / 3 : size; }

ssize_t read(int fd, void *into, size_t size) {
    int error = fault(fd, 0);
    if (error > 0 && lseek(fd, 0, SEEK_CUR) + (off_t)size > sound_until()) {
        errno = error;
        return -1;
    }
    return real_read(fd, into, error == 0 ? shorter(size) : size);
}

ssize_t pread64(int fd, void *into, size_t size, off_t at) {
    int error = fault(fd, 0);
    if (error > 0 && at + (off_t)size > sound_until()) {
        errno = error;
        return -1;
    }
    return real_pread(fd, into, error == 0 ? shorter(size) : size, at);
}

ssize_t pread(int fd, void *into, size_t size, off_t at) { return pread64(fd, into, size, at); }

ssize_t write(int fd, const void *from, size_t size) {
    int error = fault(fd, 1);
    if (error > 0) {
        errno = error;
        return -1;
    }
    return real_write(fd, from, size);
}
