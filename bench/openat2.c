/*
 * openat2: openat2(2) as openat(2), for callgrind, because valgrind before 3.20 does not
 * know it.  With LD_PRELOAD, and for measuring only: nothing is confined then.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...);

/*
 * Whatever else goes through syscall(2) is told that the kernel is too old: cachestat(2),
 * which valgrind does not know either.
 */
long
syscall(long number, ...)
{
	const struct open_how *how;
	const char *path;
	va_list ap;
	int dirfd;

	if (number != SYS_openat2) {
		errno = ENOSYS;
		return -1;
	}
	va_start(ap, number);
	dirfd = va_arg(ap, int);
	path = va_arg(ap, const char *);
	how = va_arg(ap, const struct open_how *);
	va_end(ap);
	return openat(dirfd, path, (int)how->flags, (mode_t)how->mode);
}
