/*
 * admin_socket: see admin_socket.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin_socket.h"
#include "listener.h"
#include "log.h"

#define BACKLOG 16
#define OTHERS	0117 /* umask: the owner and the group may connect */

static int
open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A socket that a server left behind, which nobody listens on. */
static bool
left_over(const struct listen_addr *la)
{
	struct stat st;
	bool refused;
	int fd;

	if (lstat(la->la_text, &st) == -1 || !S_ISSOCK(st.st_mode))
		return false;
	fd = open_socket();
	if (fd == -1)
		return false;
	refused = connect(fd, (const struct sockaddr *)&la->la_addr,
		      la->la_len) == -1 &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static int
bind_once(int fd, const struct listen_addr *la)
{
	mode_t mask = umask(OTHERS);
	int error = 0;

	if (bind(fd, (const struct sockaddr *)&la->la_addr, la->la_len) == -1)
		error = -errno;
	umask(mask);
	return error;
}

static int
bind_path(int fd, const struct listen_addr *la)
{
	int error = bind_once(fd, la);

	if (error != -EADDRINUSE || !left_over(la))
		return error;
	if (unlink(la->la_text) == -1)
		return -errno;
	return bind_once(fd, la);
}

static int
listen_on_path(const struct listen_addr *la, struct admin_socket *as)
{
	struct stat st;
	int error;

	as->as_fd = open_socket();
	if (as->as_fd == -1)
		return -errno;
	error = bind_path(as->as_fd, la);
	if (error != 0)
		return error;
	if (lstat(la->la_text, &st) == -1 || listen(as->as_fd, BACKLOG) == -1)
		return -errno;
	as->as_path = la->la_text;
	as->as_dev = st.st_dev;
	as->as_ino = st.st_ino;
	return 0;
}

int
admin_socket_bind(const struct listen_addr *la, struct admin_socket *as)
{
	int error;

	as->as_path = NULL;
	if (la->la_addr.ss_family != AF_UNIX) {
		as->as_fd = listener_open(la);
		return as->as_fd == -1 ? -1 : 0;
	}
	error = listen_on_path(la, as);
	if (error == 0)
		return 0;
	log_error(NULL, "cannot listen on %s: %s%s", la->la_text,
	    strerror(-error),
	    error == -EADDRINUSE ? ": another program listens there, or it is "
				   "no socket"
				 : "");
	return -1;
}

void
admin_socket_close(struct admin_socket *as)
{
	struct stat st;

	if (as->as_fd != -1)
		close(as->as_fd);
	as->as_fd = -1;
	if (as->as_path != NULL && lstat(as->as_path, &st) == 0 &&
	    st.st_dev == as->as_dev && st.st_ino == as->as_ino)
		unlink(as->as_path);
	as->as_path = NULL;
}
