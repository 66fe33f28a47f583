/* Makes the n-th call of a kind, on files below a folder, fail or meet a signal. Preloaded; idle until it is planned.

   cc -shared -fPIC -O1 -o shim.so shim.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHORT (-1) /* one byte is read or written */
#define ENDED (-2) /* nothing is read, as at the end of a file */

enum { READ, WRITE, OPEN, FSYNC, RENAME, MMAP, LINK, CLOSE, STAT, UNLINK, FCHMOD, FTRUNCATE, FLOCK, LSEEK, KINDS };

static struct plan {
    char folder[PATH_MAX + 4];
    int kind, nth, error, signal;
    int counts[KINDS]; /* of calls, by kind */
} own_ = {.kind = KINDS}, *plan_ = &own_;
static int *counts_ = own_.counts; /* or shared with the process that forked this one */

/* Count there; but not in a process with a shared plan, which may load the campaign as well: it is forked from one. */
void campaign_share(int *counts) {
    if (plan_ == &own_) counts_ = counts;
}

/* Plan: the nth call of a kind (from 1) gets an errno, SHORT or ENDED, or meets a signal. */
void campaign_plan(const char *folder, int kind, int nth, int error, int signal) {
    snprintf(own_.folder, sizeof own_.folder, "%s", folder);
    own_.kind = kind, own_.nth = nth, own_.error = error, own_.signal = signal;
    memset(counts_, 0, KINDS * sizeof *counts_);
}

/* Share the plan in a file with the processes that have its name in CAMPAIGN_PLAN. */
__attribute__((constructor)) static void campaign_attach(void) {
    const char *name = getenv("CAMPAIGN_PLAN");
    int descriptor = name == NULL ? -1 : open(name, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    void *mapped = mmap(NULL, sizeof own_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped == MAP_FAILED) return;
    plan_ = mapped, counts_ = plan_->counts;
}

/* Return whether this call is the planned one. */
static int is_planned(int kind, int descriptor, const char *path) {
    char link[64], target[PATH_MAX + 1];
    if (!plan_->folder[0]) return 0;
    if (path == NULL) {
        int before = errno;
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, target, PATH_MAX);
        errno = before;
        if (length < 0) return 0;
        target[length] = 0, path = target;
    }
    if (path[0] == '/' && strncmp(path, plan_->folder, strlen(plan_->folder))) return 0;
    if (__sync_add_and_fetch(counts_ + kind, 1) != plan_->nth || kind != plan_->kind) return 0;
    if (plan_->signal) {
        kill(getpid(), plan_->signal);
        if (plan_->signal == SIGKILL) pause();
        return 0;
    }
    return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL_IF(kind, descriptor, path, failed)     \
    if (is_planned(kind, descriptor, path)) {       \
        errno = plan_->error > 0 ? plan_->error : EIO;          \
        return failed;                              \
    }

#define TRANSFER(name, kind, type, data)                                             \
    ssize_t name(int descriptor, type data, size_t size) {                           \
        REAL(name);                                                                  \
        if (is_planned(kind, descriptor, NULL)) {                                    \
            if (plan_->error == SHORT) return real(descriptor, data, size ? 1 : 0);        \
            if (plan_->error == ENDED) return 0;                                           \
            errno = plan_->error;                                                          \
            return -1;                                                               \
        }                                                                            \
        return real(descriptor, data, size);                                         \
    }

TRANSFER(read, READ, void *, data)
TRANSFER(write, WRITE, const void *, data)

ssize_t readv(int descriptor, const struct iovec *pieces, int n) {
    REAL(readv);
    if (is_planned(READ, descriptor, NULL)) {
        if (plan_->error == SHORT) {
            struct iovec one = {pieces[0].iov_base, pieces[0].iov_len ? 1 : 0};
            return real(descriptor, &one, 1);
        }
        if (plan_->error == ENDED) return 0;
        errno = plan_->error;
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
    errno = plan_->error > 0 ? plan_->error : EIO;
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
