/*
 * inject_libc: the calls to libc that may fail.  Those that are not here are in
 * tests/fault/imports.py, with the reason.
 */
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "inject_wrap.h"

/* memory */
WRAP(malloc, void *, NULL, (size_t size), (size))
WRAP(calloc, void *, NULL, (size_t n, size_t size), (n, size))
WRAP(realloc, void *, NULL, (void *mem, size_t size), (mem, size))
WRAP(reallocarray, void *, NULL, (void *mem, size_t n, size_t size),
    (mem, n, size))
WRAP(aligned_alloc, void *, NULL, (size_t to, size_t size), (to, size))
WRAP(strdup, char *, NULL, (const char *s), (s))
WRAP(strndup, char *, NULL, (const char *s, size_t n), (s, n))
WRAP(mmap, void *, MAP_FAILED,
    (void *at, size_t len, int prot, int flags, int fd, off_t off),
    (at, len, prot, flags, fd, off))
WRAP(madvise, int, -1, (void *at, size_t len, int advice), (at, len, advice))
WRAP(mlock2, int, -1, (const void *at, size_t len, unsigned flags),
    (at, len, flags))
WRAP(mincore, int, -1, (void *at, size_t len, unsigned char *vec),
    (at, len, vec))
WRAP(memfd_create, int, -1, (const char *name, unsigned flags), (name, flags))

/* sockets */
WRAP(socket, int, -1, (int domain, int type, int protocol),
    (domain, type, protocol))
WRAP(bind, int, -1, (int fd, const struct sockaddr *sa, socklen_t n),
    (fd, sa, n))
WRAP(listen, int, -1, (int fd, int backlog), (fd, backlog))
WRAP(connect, int, -1, (int fd, const struct sockaddr *sa, socklen_t n),
    (fd, sa, n))
WRAP(accept4, int, -1, (int fd, struct sockaddr *sa, socklen_t *n, int flags),
    (fd, sa, n, flags))
WRAP(getsockopt, int, -1,
    (int fd, int level, int name, void *value, socklen_t *n),
    (fd, level, name, value, n))
WRAP(setsockopt, int, -1,
    (int fd, int level, int name, const void *value, socklen_t n),
    (fd, level, name, value, n))
WRAP(socketpair, int, -1, (int domain, int type, int protocol, int fds[2]),
    (domain, type, protocol, fds))
WRAP(sendto, ssize_t, -1,
    (int fd, const void *from, size_t len, int flags, const struct sockaddr *sa,
	socklen_t n),
    (fd, from, len, flags, sa, n))
WRAP(recvmsg, ssize_t, -1, (int fd, struct msghdr *msg, int flags),
    (fd, msg, flags))
WRAP(shutdown, int, -1, (int fd, int how), (fd, how))
WRAP_COUNT(
    recv, fd, (int fd, void *to, size_t len, int flags), (fd, to, len, flags))
WRAP_COUNT(send, fd, (int fd, const void *from, size_t len, int flags),
    (fd, from, len, flags))
WRAP_COUNT(sendfile, out, (int out, int in, off_t *off, size_t len),
    (out, in, off, len))
WRAP(vmsplice, ssize_t, -1,
    (int fd, const struct iovec *iov, size_t n, unsigned flags),
    (fd, iov, n, flags))
WRAP_COUNT(splice, out,
    (int in, off_t *in_off, int out, off_t *out_off, size_t len,
	unsigned flags),
    (in, in_off, out, out_off, len, flags))

/* files */
WRAP_COUNT(
    pread, -1, (int fd, void *to, size_t len, off_t off), (fd, to, len, off))
WRAP_COUNT(pwrite, -1, (int fd, const void *from, size_t len, off_t off),
    (fd, from, len, off))
WRAP(fallocate, int, -1, (int fd, int mode, off_t off, off_t len),
    (fd, mode, off, len))
WRAP(fdatasync, int, -1, (int fd), (fd))
WRAP(flock, int, -1, (int fd, int how), (fd, how))
WRAP(fgetxattr, ssize_t, -1, (int fd, const char *name, void *to, size_t size),
    (fd, name, to, size))
WRAP_FILE(read, (int fd, void *to, size_t len), (fd, to, len))
WRAP_FILE(write, (int fd, const void *from, size_t len), (fd, from, len))
WRAP(fstat, int, -1, (int fd, struct stat *st), (fd, st))
WRAP(stat, int, -1, (const char *path, struct stat *st), (path, st))
WRAP(lstat, int, -1, (const char *path, struct stat *st), (path, st))
WRAP(statx, int, -1,
    (int fd, const char *path, int flags, unsigned mask, struct statx *stx),
    (fd, path, flags, mask, stx))
WRAP(fstatfs, int, -1, (int fd, struct statfs *sf), (fd, sf))
WRAP(faccessat, int, -1, (int fd, const char *path, int mode, int flags),
    (fd, path, mode, flags))
WRAP(chmod, int, -1, (const char *path, mode_t mode), (path, mode))
WRAP(unlink, int, -1, (const char *path), (path))
WRAP(fdopen, FILE *, NULL, (int fd, const char *mode), (fd, mode))
WRAP(realpath, char *, NULL, (const char *path, char *to), (path, to))
WRAP(opendir, DIR *, NULL, (const char *path), (path))
WRAP(fdopendir, DIR *, NULL, (int fd), (fd))
WRAP(readdir, struct dirent *, NULL, (DIR * dir), (dir))
WRAP(fopen, FILE *, NULL, (const char *path, const char *mode), (path, mode))
WRAP_CODE(posix_fadvise, +, (int fd, off_t off, off_t len, int advice),
    (fd, off, len, advice))
WRAP_CODE(posix_fallocate, +, (int fd, off_t off, off_t len), (fd, off, len))

/* the process */
WRAP(pipe2, int, -1, (int fds[2], int flags), (fds, flags))
WRAP(eventfd, int, -1, (unsigned count, int flags), (count, flags))
WRAP(poll, int, -1, (struct pollfd * fds, nfds_t n, int timeout),
    (fds, n, timeout))
WRAP(ppoll, int, -1,
    (struct pollfd * fds, nfds_t n, const struct timespec *timeout,
	const sigset_t *mask),
    (fds, n, timeout, mask))
WRAP(fork, pid_t, -1, (void), ())
WRAP(execv, int, -1, (const char *path, char *const argv[]), (path, argv))
WRAP(ftruncate, int, -1, (int fd, off_t size), (fd, size))
WRAP(getcwd, char *, NULL, (char *to, size_t size), (to, size))
WRAP(readlink, ssize_t, -1, (const char *path, char *to, size_t size),
    (path, to, size))
WRAP(readlinkat, ssize_t, -1, (int fd, const char *path, char *to, size_t size),
    (fd, path, to, size))
WRAP(setenv, int, -1, (const char *name, const char *value, int over),
    (name, value, over))
WRAP(getrandom, ssize_t, -1, (void *to, size_t len, unsigned flags),
    (to, len, flags))
WRAP(chdir, int, -1, (const char *path), (path))
WRAP(chroot, int, -1, (const char *path), (path))
WRAP(setgroups, int, -1, (size_t n, const gid_t *groups), (n, groups))
WRAP(setresgid, int, -1, (gid_t r, gid_t e, gid_t s), (r, e, s))
WRAP(setresuid, int, -1, (uid_t r, uid_t e, uid_t s), (r, e, s))
WRAP(getrlimit, int, -1, (int what, struct rlimit *rl), (what, rl))
WRAP(setrlimit, int, -1, (int what, const struct rlimit *rl), (what, rl))
WRAP(getrusage, int, -1, (int who, struct rusage *ru), (who, ru))
WRAP_CODE(pthread_create, +,
    (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *),
	void *arg),
    (thread, attr, run, arg))

/*
 * What asks for no more than is in memory may be told of less; one buffer is what
 * the server has.
 */
WRAP_OWN(preadv2, ssize_t,
    (int fd, const struct iovec *iov, int n, off_t off, int flags))
ssize_t
__wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	int effect = EFFECT(preadv2, -1);
	struct iovec one = *iov;

	if (effect > 0)
		errno = effect;
	if (effect > 0 || effect == INJECT_NONE)
		return effect > 0 ? -1 : 0;
	one.iov_len = inject_count(one.iov_len, effect);
	return __real_preadv2(fd, &one, n, off, flags);
}

static bool
is_stream(int fd)
{
	socklen_t len = sizeof(int);
	int type = 0;

	return __real_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_STREAM;
}

/*
 * Less is less of the first buffer, and none of the others; but a message is sent
 * whole.
 */
WRAP_OWN(sendmsg, ssize_t, (int fd, const struct msghdr *msg, int flags))
ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	int effect = EFFECT(sendmsg, fd);
	struct msghdr less = *msg;
	struct iovec one = *msg->msg_iov;

	if (effect > 0) {
		errno = effect;
		return -1;
	}
	if (effect != 0 && is_stream(fd)) {
		one.iov_len = inject_count(one.iov_len, effect);
		less.msg_iov = &one;
		less.msg_iovlen = 1;
	}
	return __real_sendmsg(fd, &less, flags);
}

/*
 * Those whose arguments vary; each has one more at most, which is passed on as it is.
 */
WRAP_OWN(open, int, (const char *path, int flags, ...))
WRAP_OWN(openat, int, (int dir, const char *path, int flags, ...))
WRAP_OWN(fcntl, int, (int fd, int command, ...))
WRAP_OWN(ioctl, int, (int fd, unsigned long request, ...))
WRAP_OWN(prctl, int, (int option, ...))
WRAP_OWN(asprintf, int, (char **to, const char *format, ...))
WRAP_OWN(syscall, long, (long number, ...))
NUMBER(openat2)
NUMBER(cachestat)
NUMBER(capset)
NUMBER(landlock) /* all three of it */
NUMBER(seccomp)

#define ONE_MORE(last, type)     \
	va_list ap;              \
	type more;               \
                                 \
	va_start(ap, last);      \
	more = va_arg(ap, type); \
	va_end(ap)

int
__wrap_open(const char *path, int flags, ...)
{
	int effect = EFFECT(open, -1);
	ONE_MORE(flags, int);

	if (effect <= 0)
		return __real_open(path, flags, more);
	errno = effect;
	return -1;
}

int
__wrap_openat(int dir, const char *path, int flags, ...)
{
	int effect = EFFECT(openat, -1);
	ONE_MORE(flags, int);

	if (effect <= 0)
		return __real_openat(dir, path, flags, more);
	errno = effect;
	return -1;
}

int
__wrap_fcntl(int fd, int command, ...)
{
	int effect = EFFECT(fcntl, -1);
	ONE_MORE(command, long);

	if (effect <= 0)
		return __real_fcntl(fd, command, more);
	errno = effect;
	return -1;
}

int
__wrap_ioctl(int fd, unsigned long request, ...)
{
	int effect = EFFECT(ioctl, -1);
	ONE_MORE(request, void *);

	if (effect <= 0)
		return __real_ioctl(fd, request, more);
	errno = effect;
	return -1;
}

int
__wrap_prctl(int option, ...)
{
	int i, effect = EFFECT(prctl, -1);
	unsigned long a[4];
	va_list ap;

	va_start(ap, option);
	for (i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (effect <= 0)
		return __real_prctl(option, a[0], a[1], a[2], a[3]);
	errno = effect;
	return -1;
}

int
__wrap_asprintf(char **to, const char *format, ...)
{
	int n, effect = EFFECT(asprintf, -1);
	va_list ap;

	if (effect > 0) {
		errno = effect;
		return -1;
	}
	va_start(ap, format);
	n = vasprintf(to, format, ap);
	va_end(ap);
	return n;
}

/* Six are read, however many there are: the last lies where the caller has its own things. */
long __attribute__((no_sanitize("address"))) __wrap_syscall(long number, ...)
{
	long a[6];
	int i, effect = 0;
	va_list ap;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_openat2)
		effect = EFFECT(openat2, -1);
	else if (number == 451)
		effect = EFFECT(cachestat, -1);
	else if (number >= SYS_landlock_create_ruleset &&
		 number <= SYS_landlock_restrict_self)
		effect = EFFECT(landlock, -1);
	else if (number == SYS_seccomp)
		effect = EFFECT(seccomp, -1);
	else if (number == SYS_capset)
		effect = EFFECT(capset, -1);
	else
		effect = EFFECT(syscall, -1);
	if (effect <= 0)
		return __real_syscall(
		    number, a[0], a[1], a[2], a[3], a[4], a[5]);
	errno = effect;
	return -1;
}
