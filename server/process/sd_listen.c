/*
 * sd_listen: see sd_listen.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/log/log.h"
#include "server/process/sd_listen.h"

#define FIRST 3 /* number of the first descriptor: SD_LISTEN_FDS_START */

static bool
sd_listen_is_set(int fd, int option, int value)
{
	socklen_t size = sizeof(int);
	int is = 0;

	return getsockopt(fd, SOL_SOCKET, option, &is, &size) == 0 &&
	       is == value;
}

static bool
sd_listen_listens(int fd, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);

	return sd_listen_is_set(fd, SO_ACCEPTCONN, 1) &&
	       sd_listen_is_set(fd, SO_TYPE, SOCK_STREAM) &&
	       getsockname(fd, (struct sockaddr *)addr, &len) == 0 &&
	       (addr->ss_family == AF_INET || addr->ss_family == AF_INET6 ||
		   addr->ss_family == AF_UNIX);
}

static int
sd_listen_take_one(struct listen_table *ss, int fd)
{
	static const int on = 1;
	struct sock sk = {
	    .sk_fd = fd, .sk_use = SOCKET_UNUSED, .sk_given = true};
	struct sockaddr_storage addr = {0};
	int flags = fcntl(fd, F_GETFL);

	if (!sd_listen_listens(fd, &addr) || flags == -1) {
		log_error(NULL,
		    "descriptor %d from the service manager is not a listening "
		    "TCP or Unix socket; set ListenStream in the socket unit",
		    fd);
		return -1;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	/* Accepted sockets inherit TCP_NODELAY.  Unix sockets have no such option. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	listen_name((const struct sockaddr *)&addr, sk.sk_name);
	if (listen_add(ss, &sk) == 0)
		return 0;
	log_error(NULL, "%s", strerror(ENOMEM));
	return -1;
}

int
sd_listen_take(struct listen_table *ss)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	long i, n;

	if (pid == NULL || count == NULL ||
	    strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	n = strtol(count, NULL, 10);
	for (i = 0; i < n; i++)
		if (sd_listen_take_one(ss, FIRST + (int)i) == -1)
			return -1;
	/* A new program after an upgrade must not read these variables. */
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return 0;
}
