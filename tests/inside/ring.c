/*
 * ring: see inside.h.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/inside/inside.h"

/* Does what was prepared; the result or -errno. */
static int
submit(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int result = io_uring_submit_and_wait(ring, 1);

	if (result < 0)
		return result;
	result = io_uring_peek_cqe(ring, &cqe);
	if (result != 0)
		return result;
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

static int
result(struct io_uring *ring, int fd, int error)
{
	io_uring_queue_exit(ring);
	if (fd >= 0)
		close(fd);
	errno = -error;
	return error < 0 ? -1 : 0;
}

static int
begin(struct io_uring *ring)
{
	int error = io_uring_queue_init(1, ring, 0);

	errno = -error;
	return error == 0 ? 0 : -1;
}

int
inside_ring_open(const char *path)
{
	struct io_uring ring;
	int fd;

	if (begin(&ring) == -1)
		return -1;
	io_uring_prep_openat(
	    io_uring_get_sqe(&ring), AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	fd = submit(&ring);
	return result(&ring, fd, fd);
}

/* To that path, or to this host, port 0. */
int
inside_ring_connect(int domain, int type, const char *path)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_un un;
	} to = {.sa = {.sa_family = (sa_family_t)domain}};
	struct io_uring ring;
	int fd, error;

	if (begin(&ring) == -1)
		return -1;
	if (path != NULL)
		snprintf(to.un.sun_path, sizeof(to.un.sun_path), "%s", path);
	else
		to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	io_uring_prep_socket(
	    io_uring_get_sqe(&ring), domain, type | SOCK_CLOEXEC, 0, 0);
	error = fd = submit(&ring);
	if (fd >= 0) {
		io_uring_prep_connect(io_uring_get_sqe(&ring), fd, &to.sa,
		    path != NULL ? sizeof(to.un) : sizeof(to.in));
		error = submit(&ring);
	}
	return result(&ring, fd, error);
}
