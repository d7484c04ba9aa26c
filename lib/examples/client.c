/*
 * client: see client.h.
 */
#include <sys/socket.h>

#include <errno.h>
#include <netinet/in.h>
#include <pagewise.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

struct pw_loop *clients_loop;
static struct pw_root *root;
static const struct pw_send_path *path;

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
	path = pw_send_default();
	check("pool", pw_pool_create(NULL, &pool));
	check("loop", pw_loop_create(pool, NULL, &clients_loop));
	check(argv[1], pw_root_open(argv[1], &root));
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

struct client *
client_accept(int listener)
{
	struct client *c;
	int sock;

	sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (sock == -1)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		check("client", -ENOMEM);
	c->cl_sock = sock;
	return c;
}

/*
 * Ends a client.  While its transmission is pending, a disk thread may use the client, so on_sent calls
 * this function again.
 */
void
client_leave(struct client *c)
{
	c->cl_state = CLIENT_GONE;
	pw_open_cancel(&c->cl_open);
	if (c->cl_send.snd_pending) {
		pw_send_cancel(&c->cl_send);
		return;
	}
	pw_send_finish(&c->cl_send);
	loop_close(c);
}

static void
on_sent(struct pw_send *s)
{
	struct client *c =
	    (struct client *)(void *)((char *)s -
				      offsetof(struct client, cl_send));

	if (c->cl_state == CLIENT_GONE)
		client_leave(c);
	else
		client_run(c);
}

/* Chooses the range of the file to send, and writes the head of the response. */
static void
choose(struct client *c, struct pw_file *file, int error)
{
	struct pw_send *s = &c->cl_send;
	const char *status =
	    error == -EAGAIN ? "503 Service Unavailable" : "404 Not Found";
	long long size = 0, end;

	if (error == 0 && file->fil_type == PW_FILE_REGULAR) {
		s->snd_file = file;
		size = (long long)file->fil_size;
		status = "200 OK";
	}
	end = c->cl_to >= c->cl_from && c->cl_to < size ? c->cl_to + 1 : size;
	s->snd_off = c->cl_from < end ? c->cl_from : 0;
	s->snd_len = (off_t)(end - s->snd_off);
	if (s->snd_len < size)
		status = "206 Partial Content";
	s->snd_mem = c->cl_head;
	s->snd_mem_len = (size_t)snprintf(c->cl_head, sizeof(c->cl_head),
	    "HTTP/1.1 %s\r\nContent-Length: %lld\r\n\r\n", status,
	    (long long)s->snd_len);
}

static void
answer(struct client *c, int error)
{
	struct pw_send *s = &c->cl_send;

	*s = (struct pw_send){
	    .snd_path = path,
	    .snd_loop = clients_loop,
	    .snd_sock = c->cl_sock,
	    .snd_done = on_sent,
	};
	choose(c, c->cl_open.op_file, error);
	pw_send_start(s); /* adds a reference to the file */
	pw_file_unref(&c->cl_open.op_file);
	c->cl_state = CLIENT_SENDS;
}

static void
on_open(struct pw_waiter *w)
{
	struct client *c = (struct client *)(void *)w;

	answer(c, w->wt_error);
	client_run(c);
}

/* Parses the first request in cl_in.  Returns false if its head is not complete. */
static bool
parse(struct client *c, char name[1024])
{
	char *end, *range;

	c->cl_in[c->cl_len] = '\0';
	end = strstr(c->cl_in, "\r\n\r\n");
	if (end == NULL)
		return false;
	*end = '\0';
	if (sscanf(c->cl_in, "GET /%1023[^ ?]", name) != 1)
		strcpy(name, "index.html");
	range = strstr(c->cl_in, "\r\nRange: bytes=");
	c->cl_from = 0;
	c->cl_to = -1;
	if (range != NULL)
		sscanf(range, "\r\nRange: bytes=%lld-%lld", &c->cl_from,
		    &c->cl_to);
	c->cl_len -= (size_t)(end + 4 - c->cl_in);
	memmove(c->cl_in, end + 4, c->cl_len);
	return true;
}

/*
 * Reads a request and opens its file.  Returns true, as send_answer does, if
 * client_run can continue at once.
 */
static bool
read_request(struct client *c)
{
	char name[1024];
	ssize_t n;
	int error;

	while (!parse(c, name)) {
		n = recv(c->cl_sock, c->cl_in + c->cl_len,
		    sizeof(c->cl_in) - 1 - c->cl_len, 0);
		if (n == -1 && errno == EAGAIN)
			loop_watch(c, CLIENT_WANTS_READ);
		else if (n <= 0)
			client_leave(c);
		if (n <= 0)
			return false;
		c->cl_len += (size_t)n;
	}
	c->cl_open.op_waiter.wt_done = on_open;
	error = pw_file_open(clients_loop, root, name, pw_now(), &c->cl_open);
	if (error != -EINPROGRESS) {
		answer(c, error);
		return true;
	}
	c->cl_state = CLIENT_OPENS;
	loop_watch(c, CLIENT_WAITS);
	return false;
}

static bool
send_answer(struct client *c)
{
	switch (pw_send_step(&c->cl_send)) {
	case PW_SEND_DONE:
		pw_send_finish(&c->cl_send);
		c->cl_state = CLIENT_READS;
		return true;
	case PW_SEND_WANT_WRITE:
		loop_watch(c, CLIENT_WANTS_WRITE);
		return false;
	case PW_SEND_AGAIN:
		loop_watch(c, CLIENT_AGAIN);
		return false;
	case PW_SEND_PENDING:
		loop_watch(c, CLIENT_WAITS);
		return false;
	case PW_SEND_ERROR:
		break;
	}
	client_leave(c);
	return false;
}

void
client_run(struct client *c)
{
	bool more = true;

	while (more && c->cl_state != CLIENT_OPENS && !c->cl_send.snd_pending)
		more = c->cl_state == CLIENT_READS ? read_request(c)
						   : send_answer(c);
}
