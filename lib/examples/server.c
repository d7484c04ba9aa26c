/*
 * server: see server.h.
 */
#include <sys/socket.h>

#include <errno.h>
#include <netinet/in.h>
#include <pagewise.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

struct pw_loop *clients_loop;
struct pw_root *clients_root;

static int
listen_at(const char *port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	int sock, on = 1;

	sin.sin_port = htons((uint16_t)strtol(port, NULL, 10));
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(sock, (struct sockaddr *)&sin, sizeof(sin)) != 0 ||
	    listen(sock, 511) != 0)
		return -errno;
	return sock;
}

static int
check(const char *what, int error)
{
	if (error >= 0)
		return error;
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	exit(1);
}

int
clients_start(int argc, char **argv)
{
	struct pw_pool *pool;

	if (argc != 3) {
		fprintf(stderr, "libpagewise %s\nusage: %s DIRECTORY PORT\n",
		    pw_version(), argv[0]);
		exit(2);
	}
	signal(SIGPIPE, SIG_IGN);
	pw_process_prepare(); /* optional, so errors are ignored */
	check("pool", pw_pool_create(NULL, &pool));
	check("thread", pw_pool_start(pool));
	check("loop", pw_loop_create(pool, NULL, &clients_loop));
	check(argv[1], pw_root_open(argv[1], &clients_root));
	return check(argv[2], listen_at(argv[2]));
}

void
clients_tick(void)
{
	static uint64_t next;
	uint64_t now = pw_now();

	if (now < next)
		return;
	pw_loop_tick(clients_loop, now);
	next = now + CLIENTS_TICK * 1000;
}

int
clients_accept(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

bool
clients_parse(struct request *rq)
{
	char *end, *range;

	rq->rq_in[rq->rq_len] = '\0';
	end = strstr(rq->rq_in, "\r\n\r\n");
	if (end == NULL)
		return false;
	*end = '\0';
	if (sscanf(rq->rq_in, "GET /%1023[^ ?]", rq->rq_name) != 1)
		strcpy(rq->rq_name, "index.html");
	range = strstr(rq->rq_in, "\r\nRange: bytes=");
	rq->rq_from = 0;
	rq->rq_to = -1;
	if (range != NULL)
		sscanf(range, "\r\nRange: bytes=%lld-%lld", &rq->rq_from,
		    &rq->rq_to);
	rq->rq_len -= (size_t)(end + 4 - rq->rq_in);
	memmove(rq->rq_in, end + 4, rq->rq_len);
	return true;
}

ssize_t
clients_read(struct request *rq, int sock)
{
	ssize_t n = recv(sock, rq->rq_in + rq->rq_len,
	    sizeof(rq->rq_in) - 1 - rq->rq_len, 0);

	if (n > 0)
		rq->rq_len += (size_t)n;
	return n;
}

size_t
clients_head(
    struct request *rq, const struct pw_file *file, int error, char head[128])
{
	const char *status =
	    error == -EAGAIN ? "503 Service Unavailable" : "404 Not Found";
	long long size = 0, end;

	if (error == 0 && file->fil_type == PW_FILE_REGULAR) {
		size = (long long)file->fil_size;
		status = "200 OK";
	}
	/* A range of the last bytes, "-N", is ignored. */
	if (rq->rq_from < 0)
		rq->rq_from = 0, rq->rq_to = -1;
	end =
	    rq->rq_to >= rq->rq_from && rq->rq_to < size ? rq->rq_to + 1 : size;
	rq->rq_off = (off_t)(rq->rq_from < end ? rq->rq_from : 0);
	rq->rq_end = (off_t)end;
	if (end - rq->rq_off < size)
		status = "206 Partial Content";
	return (size_t)snprintf(head, 128,
	    "HTTP/1.1 %s\r\nContent-Length: %lld\r\n\r\n", status,
	    end - (long long)rq->rq_off);
}
