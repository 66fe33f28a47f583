/* Makes the n-th call of a kind, on files below a folder, fail or meet a signal. Preloaded; idle until campaign_plan.

   cc -shared -fPIC -O1 -o shim.so shim.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHORT (-1) /* one byte is read or written */
#define ENDED (-2) /* nothing is read, as at the end of a file */

enum { READ, WRITE, OPEN, FSYNC, RENAME, MMAP, LINK, CLOSE, STAT, UNLINK, FCHMOD, FTRUNCATE, FLOCK, LSEEK, KINDS };

static char folder_[PATH_MAX + 1];
static int kind_ = KINDS, nth_, error_, signal_;
static int *counts_; /* of calls, by kind; shared with the process that forked this one */

void campaign_share(int *counts) { counts_ = counts; }

/* Plan: the nth call of a kind (from 1) gets an errno, SHORT or ENDED, or meets a signal. */
void campaign_plan(const char *folder, int kind, int nth, int error, int signal) {
    snprintf(folder_, sizeof folder_, "%s", folder);
    kind_ = kind, nth_ = nth, error_ = error, signal_ = signal;
    memset(counts_, 0, KINDS * sizeof *counts_);
}

/* Return whether this call is the planned one. */
static int is_planned(int kind, int descriptor, const char *path) {
    char link[64], target[PATH_MAX + 1];
    if (!folder_[0]) return 0;
    if (path == NULL) {
        int before = errno;
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, target, PATH_MAX);
        errno = before;
        if (length < 0) return 0;
        target[length] = 0, path = target;
    }
    if (path[0] == '/' && strncmp(path, folder_, strlen(folder_))) return 0;
    if (__sync_add_and_fetch(counts_ + kind, 1) != nth_ || kind != kind_) return 0;
    if (signal_) {
        kill(getpid(), signal_);
        if (signal_ == SIGKILL) pause();
        return 0;
    }
    return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL_IF(kind, descriptor, path, failed)     \
    if (is_planned(kind, descriptor, path)) {       \
        errno = error_ > 0 ? error_ : EIO;          \
        return failed;                              \
    }

#define TRANSFER(name, kind, type, data)                                             \
    ssize_t name(int descriptor, type data, size_t size) {                           \
        REAL(name);                                                                  \
        if (is_planned(kind, descriptor, NULL)) {                                    \
            if (error_ == SHORT) return real(descriptor, data, size ? 1 : 0);        \
            if (error_ == ENDED) return 0;                                           \
            errno = error_;                                                          \
            return -1;                                                               \
        }                                                                            \
        return real(descriptor, data, size);                                         \
    }

TRANSFER(read, READ, void *, data)
TRANSFER(write, WRITE, const void *, data)

ssize_t readv(int descriptor, const struct iovec *pieces, int n) {
    REAL(readv);
    if (is_planned(READ, descriptor, NULL)) {
        if (error_ == SHORT) {
            struct iovec one = {pieces[0].iov_base, pieces[0].iov_len ? 1 : 0};
            return real(descriptor, &one, 1);
        }
        if (error_ == ENDED) return 0;
        errno = error_;
        return -1;
    }
    return real(descriptor, pieces, n);
}

#define ON_DESCRIPTOR(name, kind, result, parameters, arguments, failed) \
    result name parameters {                                             \
        REAL(name);                                                      \
        FAIL_IF(kind, descriptor, NULL, failed)                          \
        return real arguments;                                           \
    }

ON_DESCRIPTOR(pread64, READ, ssize_t, (int descriptor, void *data, size_t size, off64_t at), (descriptor, data, size, at), -1)
ON_DESCRIPTOR(fsync, FSYNC, int, (int descriptor), (descriptor), -1)
ON_DESCRIPTOR(fchmod, FCHMOD, int, (int descriptor, mode_t mode), (descriptor, mode), -1)
ON_DESCRIPTOR(ftruncate64, FTRUNCATE, int, (int descriptor, off64_t size), (descriptor, size), -1)
ON_DESCRIPTOR(flock, FLOCK, int, (int descriptor, int operation), (descriptor, operation), -1)
ON_DESCRIPTOR(fstat, STAT, int, (int descriptor, struct stat *found), (descriptor, found), -1)
ON_DESCRIPTOR(lseek64, LSEEK, off64_t, (int descriptor, off64_t at, int from), (descriptor, at, from), -1)

int close(int descriptor) {
    REAL(close);
    int fails = is_planned(CLOSE, descriptor, NULL), result = real(descriptor);
    if (!fails) return result;
    errno = error_ > 0 ? error_ : EIO;
    return -1;
}

void *mmap64(void *address, size_t size, int protection, int flags, int descriptor, off64_t at) {
    REAL(mmap64);
    if (descriptor >= 0) FAIL_IF(MMAP, descriptor, NULL, MAP_FAILED)
    return real(address, size, protection, flags, descriptor, at);
}

void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t at) {
    REAL(mmap);
    if (descriptor >= 0) FAIL_IF(MMAP, descriptor, NULL, MAP_FAILED)
    return real(address, size, protection, flags, descriptor, at);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    FAIL_IF(RENAME, -1, to, -1)
    return real(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    REAL(linkat);
    FAIL_IF(LINK, -1, to, -1)
    return real(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path) {
    REAL(unlink);
    FAIL_IF(UNLINK, -1, path, -1)
    return real(path);
}

int stat(const char *path, struct stat *found) {
    REAL(stat);
    FAIL_IF(STAT, -1, path, -1)
    return real(path, found);
}

int lstat(const char *path, struct stat *found) {
    REAL(lstat);
    FAIL_IF(STAT, -1, path, -1)
    return real(path, found);
}

#define OPENING(name)                                                       \
    int name(const char *path, int flags, ...) {                         \
        REAL(name);                                                      \
        mode_t mode = 0;                                                 \
        if (flags & (O_CREAT | O_TMPFILE)) {                             \
            va_list more;                                                \
            va_start(more, flags);                                       \
            mode = va_arg(more, mode_t);                                 \
            va_end(more);                                                \
        }                                                                \
        FAIL_IF(OPEN, -1, path, -1)                                    \
        return real(path, flags, mode);                                  \
    }

OPENING(open)
OPENING(open64)
