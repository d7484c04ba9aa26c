/*
 * A complete program: sends a file to every client that connects, and never waits for a disk.  Usage: program
 * DIRECTORY FILE PORT.
 */
#include <sys/socket.h>

#include <errno.h>
#include <netinet/in.h>
#include <pagewise.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS 64

struct client {
	struct pw_open open; /* first member, since its waiter is cast */
	struct pw_send send; /* zero before the first use */
	int sock;	     /* -1 if the struct is free */
	bool full;	     /* step when the socket is writable */
	bool again;	     /* step after other clients */
};

static struct pw_loop *loop;
static struct client clients[CLIENTS];

static void
leave(struct client *c)
{
	close(c->sock);
	c->sock = -1;
	c->full = c->again = false;
}

static void
step(struct client *c)
{
	enum pw_send_status status = pw_send_step(&c->send);

	c->full = status == PW_SEND_WANT_WRITE;
	c->again = status == PW_SEND_AGAIN;
	if (status == PW_SEND_DONE || status == PW_SEND_ERROR) {
		pw_send_finish(&c->send);
		leave(c);
	}
}

/* Continues after PW_SEND_PENDING. */
static void
on_sent(struct pw_send *s)
{
	step((struct client *)((char *)s - offsetof(struct client, send)));
}

/* Sends the file if the open succeeded. */
static void
on_open(struct pw_waiter *w)
{
	struct client *c = (struct client *)w;
	struct pw_file *file = c->open.op_file;

	if (w->wt_error != 0 || file->fil_type != PW_FILE_REGULAR) {
		pw_file_unref(&c->open.op_file);
		leave(c);
		return;
	}
	c->send.snd_path = pw_send_default();
	c->send.snd_loop = loop;
	c->send.snd_sock = c->sock;
	c->send.snd_file = file;
	c->send.snd_off = 0;
	c->send.snd_len = file->fil_size;
	c->send.snd_done = on_sent;
	pw_send_start(&c->send); /* adds a reference to the file */
	pw_file_unref(&c->open.op_file);
	step(c);
}

static void
on_client(int sock, struct pw_root *root, const char *path)
{
	struct client *c = clients;

	while (c < clients + CLIENTS && c->sock != -1)
		c++;
	if (sock == -1)
		return;
	if (c == clients + CLIENTS) {
		close(sock);
		return;
	}
	c->sock = sock;
	memset(&c->open, 0, sizeof(c->open));
	c->open.op_waiter.wt_done = on_open;
	c->open.op_waiter.wt_error =
	    pw_file_open(loop, root, path, pw_now(), &c->open);
	if (c->open.op_waiter.wt_error != -EINPROGRESS)
		on_open(&c->open.op_waiter);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct pollfd fds[CLIENTS + 2];
	struct pw_pool *pool;
	struct pw_root *root;
	uint64_t ticked = 0;
	int i, busy, listener;

	signal(SIGPIPE, SIG_IGN);
	pw_process_prepare(); /* optional, so errors are ignored */
	if (argc != 4 || pw_pool_create(NULL, &pool) != 0 ||
	    pw_pool_start(pool) != 0 ||
	    pw_loop_create(pool, NULL, &loop) != 0 ||
	    pw_root_open(argv[1], &root) != 0)
		return 1;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	sin.sin_port = htons((in_port_t)atoi(argv[3]));
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&sin, sizeof(sin)) != 0 ||
	    listen(listener, 128) != 0)
		return 1;
	for (i = 0; i < CLIENTS; i++)
		clients[i].sock = -1;
	for (;;) {
		fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
		fds[1] =
		    (struct pollfd){.fd = pw_loop_fd(loop), .events = POLLIN};
		busy = 0;
		for (i = 0; i < CLIENTS; i++) {
			fds[i + 2].fd = clients[i].full ? clients[i].sock : -1;
			fds[i + 2].events = POLLOUT;
			busy |= clients[i].again;
		}
		poll(fds, CLIENTS + 2, busy ? 0 : 250);
		for (i = 0; i < CLIENTS; i++)
			if (clients[i].again ||
			    (clients[i].full && fds[i + 2].revents != 0))
				step(&clients[i]);
		if (fds[0].revents != 0)
			on_client(accept4(listener, NULL, NULL, SOCK_NONBLOCK),
			    root, argv[2]);
		if (fds[1].revents != 0)
			pw_loop_drain(loop);
		if (pw_now() > ticked + 250000) {
			ticked = pw_now();
			pw_loop_tick(loop, ticked);
		}
	}
}
