/*
 * unix_socket: see unix_socket.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/process/unix_socket.h"

#define ALL 0777 /* permission bits of a file mode */

static int
unix_socket_create(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Returns true if the path is a socket file on which no program listens. */
static bool
unix_socket_left_over(const struct listen_addr *la)
{
	struct stat st;
	bool refused;
	int fd;

	if (lstat(la->la_text, &st) == -1 || !S_ISSOCK(st.st_mode))
		return false;
	fd = unix_socket_create();
	if (fd == -1)
		return false;
	refused = connect(fd, (const struct sockaddr *)&la->la_addr,
		      la->la_len) == -1 &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static int
unix_socket_bind_once(int fd, const struct listen_addr *la)
{
	mode_t mask = umask(ALL & ~la->la_mode);
	int error = 0;

	if (bind(fd, (const struct sockaddr *)&la->la_addr, la->la_len) == -1)
		error = -errno;
	umask(mask);
	return error;
}

static int
unix_socket_bind_path(int fd, const struct listen_addr *la)
{
	int error = unix_socket_bind_once(fd, la);

	if (error != -EADDRINUSE || !unix_socket_left_over(la))
		return error;
	if (unlink(la->la_text) == -1)
		return -errno;
	return unix_socket_bind_once(fd, la);
}

int
unix_socket_open(const struct listen_addr *la, struct sock *sk)
{
	struct stat st;
	int error, fd = unix_socket_create();

	if (fd == -1)
		return -errno;
	error = unix_socket_bind_path(fd, la);
	if (error == 0 &&
	    (lstat(la->la_text, &st) == -1 || listen_hear(fd) == -1)) {
		error = -errno;
		unlink(la->la_text);
	}
	if (error != 0) {
		close(fd);
		return error;
	}
	sk->sk_fd = fd;
	sk->sk_dev = st.st_dev;
	sk->sk_ino = st.st_ino;
	return 0;
}

bool
unix_socket_keep(const struct listen_addr *la, const struct sock *sk)
{
	struct stat st;

	if (!listen_file(sk) || listen_deaf(sk->sk_fd))
		return false;
	/* A reload may have changed la_mode. */
	if (sk->sk_ino != 0 && lstat(la->la_text, &st) == 0 &&
	    (st.st_mode & ALL) != la->la_mode)
		(void)chmod(la->la_text, la->la_mode);
	return true;
}
