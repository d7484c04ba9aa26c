/*
 * freebsd_socket: sockets of os.h for FreeBSD.
 */
#include <sys/param.h>
#include <sys/filio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <unistd.h>

#include "lib/os/meter.h"
#include "lib/os/os.h"

int
os_send(int sock, const void *mem, size_t len, bool more, size_t *sent)
{
	ssize_t n;

	/* FreeBSD has no MSG_MORE, but os_native_send sends the head too */
	(void)more;
	*sent = 0;
	meter_call(METER_SEND);
	n = send(sock, mem, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return 0;
}

/* Sends a range of a file; may wait for the disk, unlike os_native_send. */
int
os_sendfile(int sock, int fd, off_t off, size_t len, size_t *sent)
{
	off_t sbytes = 0;
	int error;

	*sent = 0;
	if (len == 0)
		return 0;
	meter_call(METER_SENDFILE);
	error =
	    sendfile(fd, sock, off, len, NULL, &sbytes, 0) == -1 ? -errno : 0;
	*sent = (size_t)sbytes;
	return error;
}

/*
 * Counts pages that are still being read, and all bytes after them, which FIONWRITE omits.  Counts too
 * many bytes if many small pieces are queued.  A queue without space may have more bytes than its size.
 */
long
os_unacked(int sock)
{
	int size, space, ready = 0;
	socklen_t len = sizeof(size);

	if (getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, &len) == -1 ||
	    ioctl(sock, FIONSPACE, &space) == -1 ||
	    (space == 0 && ioctl(sock, FIONWRITE, &ready) == -1))
		return -errno;
	return size - space > ready ? size - space : ready;
}

long
os_space(int sock)
{
	int space;

	return ioctl(sock, FIONSPACE, &space) == -1 ? -errno : space;
}

/* Returns 0, since tcp_info has no such time on FreeBSD. */
uint64_t
os_sent_ago(int sock)
{
	(void)sock;
	return 0;
}

bool
os_awaits_disk(int sock)
{
	int ready;

	return ioctl(sock, FIONWRITE, &ready) == 0 && ready == 0 &&
	       os_unacked(sock) > 0;
}

/* Returns -ENOSYS, since network buffers have separate limits, and there is no TCP_NOTSENT_LOWAT. */
int
os_tcp_memory_open(uint64_t *enough)
{
	(void)enough;
	return -ENOSYS;
}

int64_t
os_tcp_memory(int fd)
{
	(void)fd;
	return -ENOSYS;
}

int
os_limit_unsent(int sock, size_t bytes)
{
	(void)sock;
	(void)bytes;
	return -ENOSYS;
}

size_t
os_unsent_limit(void)
{
	return SIZE_MAX;
}

int
os_unpace(int sock)
{
	(void)sock;
	return -ENOSYS;
}

/* Divides the port's connections among the sockets, as SO_REUSEPORT does on Linux. */
int
os_share_port(int sock)
{
	static const int on = 1;

	return setsockopt(sock, SOL_SOCKET, SO_REUSEPORT_LB, &on, sizeof(on)) ==
		       -1
		   ? -errno
		   : 0;
}

/* Returns false, because sockets join their group in bind(2). */
bool
os_share_listening(void)
{
	return false;
}

/*
 * Returns true on FreeBSD 15 and later.  Older kernels assign clients to a socket from bind(2) on, and
 * refuse these clients until listen(2).
 */
bool
os_share_late(void)
{
	return getosreldate() >= 1500000;
}

/* Uses accf_http(9) if it is loaded. */
int
os_accept_filter(int sock)
{
	static const struct accept_filter_arg http = {.af_name = "httpready"};

	return setsockopt(
		   sock, SOL_SOCKET, SO_ACCEPTFILTER, &http, sizeof(http)) == -1
		   ? -errno
		   : 0;
}
