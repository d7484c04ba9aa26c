/*
 * evict: preloaded into nginx (LD_PRELOAD), it makes a client slow, and has the file that EVICT
 * names leave memory at the worst moments: a socket takes TAKEN bytes and is full then, and
 * whenever it is the file goes.  What is missing is fetched only after the client has taken all
 * that was sent: so the socket is writable again before.
 *
 * With EVICT_AGAIN it also goes before each event, and the event comes after the library has
 * forgotten that it was there.
 *
 * With LINGER the first process that exits renames the file of that name to NAME.exits, and goes on only when
 * that is removed: its threads run meanwhile, and nginx has freed its pools.
 */
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TAKEN ((size_t)192 << 10)
#define HOLDS 110000 /* more than RESIDENCY_HOLDS_QUIET, microseconds */

#define LINGERS 30000 /* milliseconds at most */

#define NEXT(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

/* Not of the header, where they are one and the same. */
ssize_t sendfile(int out, int in, off_t *off, size_t len);
ssize_t sendfile64(int out, int in, off64_t *off, size_t len);

static int evicted = -1;
static int again;	     /* true with EVICT_AGAIN */
static char linger[256];     /* empty without LINGER */
static int taking = -1;	     /* a socket: since the last wait for events */
static atomic_int full = -1; /* the one that was full last */

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("EVICT");

	if (path != NULL)
		evicted = open(path, O_RDONLY | O_CLOEXEC);
	again = getenv("EVICT_AGAIN") != NULL;
	path = getenv("LINGER");
	if (path != NULL)
		snprintf(linger, sizeof(linger), "%s", path);
}

__attribute__((destructor)) static void
end(void)
{
	char name[sizeof(linger) + 8];
	int i;

	snprintf(name, sizeof(name), "%s.exits", linger);
	if (*linger == '\0' || rename(linger, name) == -1)
		return;
	for (i = 0; access(name, F_OK) == 0 && i < LINGERS; i++)
		usleep(1000);
}

static ssize_t
is_full(int sock)
{
	posix_fadvise(evicted, 0, 0, POSIX_FADV_DONTNEED);
	taking = -1;
	full = sock;
	errno = EAGAIN;
	return -1;
}

static ssize_t
took(int sock, ssize_t n)
{
	if (n == -1 && errno == EAGAIN)
		return is_full(sock);
	taking = sock;
	return n;
}

static size_t
at_most(size_t len)
{
	return len < TAKEN ? len : TAKEN;
}

static void
check(int in, off64_t off)
{
	static const char text[] = "evict: a page is missing\n";
	char byte;
	struct iovec iov = {&byte, 1};

	if (preadv2(in, &iov, 1, off, RWF_NOWAIT) == -1 && errno == EAGAIN)
		(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

ssize_t
sendfile64(int out, int in, off64_t *off, size_t len)
{
	if (taking == out)
		return is_full(out);
	check(in, *off);
	return took(out, NEXT(sendfile64)(out, in, off, at_most(len)));
}

ssize_t
writev(int sock, const struct iovec *iov, int n)
{
	struct iovec first = {iov->iov_base, at_most(iov->iov_len)};

	(void)n;
	if (taking == sock)
		return is_full(sock);
	return took(sock, NEXT(writev)(sock, &first, 1));
}

/* What was sent before may have been taken: it is told by an event only if it was sent since. */
int
epoll_wait(int ep, struct epoll_event *events, int n, int timeout)
{
	int got;

	taking = -1;
	got = NEXT(epoll_wait)(ep, events, n, timeout);
	if (again) {
		posix_fadvise(evicted, 0, 0, POSIX_FADV_DONTNEED);
		usleep(HOLDS);
	}
	return got;
}

/* The library's, not nginx' own: the end of a fetch, on a thread. */
ssize_t
sendfile(int out, int in, off_t *off, size_t len)
{
	int left;

	while (ioctl(full, TIOCOUTQ, &left) == 0 && left > 0)
		usleep(1000);
	return NEXT(sendfile)(out, in, off, len);
}
