/*
 * order: see order.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/tool/order.h"

#define PATIENCE_S 10	/* timeout of each read and write, seconds */
#define ANSWER	   4096 /* maximum bytes of a response, with a NUL */

static int tool_order_fail(const char *name, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int
tool_order_fail(const char *name, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "pagewise %s: ", name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 1;
}

static const char *
tool_order_cure(int error)
{
	switch (error) {
	case ENOENT:
		return "; set admin to the path of a socket, and pass that "
		       "path to this command";
	case ECONNREFUSED:
		return ": no server listens on this socket";
	case EACCES:
		return ": only the owner and the group of the socket may "
		       "connect; run this command as one of them";
	default:
		return "";
	}
}

/* Connects to the socket.  Returns the descriptor, or -errno. */
static int
tool_order_dial(const char *path)
{
	const struct timeval patience = {PATIENCE_S, 0};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, error;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Sends the request, and reads the response with a NUL at its end.  Returns 0 or -errno. */
static int
tool_order_ask(int fd, const char *name, char *answer, size_t size)
{
	char text[256];
	size_t len = 0;
	ssize_t n;

	n = snprintf(text, sizeof(text),
	    "POST /%s HTTP/1.0\r\nHost: localhost\r\nContent-Length: "
	    "0\r\n\r\n",
	    name);
	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		return errno != 0 ? -errno : -EIO;
	while (len < size - 1) {
		n = read(fd, answer + len, size - 1 - len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	answer[len] = '\0';
	return 0;
}

void
order_socket(char *path, size_t size)
{
	snprintf(path, size, "%s/pagewise/admin", os_run_directory);
}

int
order_send(const char *name, const char *path)
{
	char answer[ANSWER];
	const char *body;
	int fd = tool_order_dial(path), error;

	if (fd < 0)
		return tool_order_fail(name, "cannot connect to %s: %s%s", path,
		    strerror(-fd), tool_order_cure(-fd));
	error = tool_order_ask(fd, name, answer, sizeof(answer));
	close(fd);
	if (error != 0)
		return tool_order_fail(name, "%s: %s", path, strerror(-error));
	body = strstr(answer, "\r\n\r\n");
	if (strncmp(answer, "HTTP/1.", 7) != 0 || body == NULL)
		return tool_order_fail(name,
		    "%s: the server on this socket is not pagewise", path);
	if (strncmp(answer + 8, " 200 ", 5) == 0) {
		fputs(body + 4, stdout);
		return 0;
	}
	return tool_order_fail(name, "%s: the server refused the command: %.*s",
	    path, (int)strcspn(body + 4, "\r\n"), body + 4);
}
