/*
 * client: see client.h.
 */
#include <errno.h>
#include <pagewise.h>
#include <stdlib.h>

#include "client.h"

static const struct pw_send_path *path; /* NULL before the first use */

struct client *
client_accept(int listener)
{
	struct client *c;
	int sock;

	sock = clients_accept(listener);
	if (sock == -1)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		abort();
	c->cl_sock = sock;
	return c;
}

/*
 * Ends a client.  While its transmission is pending, a disk thread may use the client.  Then on_sent calls
 * this function again when the transmission has ended.
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

static void
answer(struct client *c, int error)
{
	struct request *rq = &c->cl_request;
	struct pw_file *file = c->cl_open.op_file;
	struct pw_send *s = &c->cl_send;
	size_t len = clients_head(rq, file, error, c->cl_head);

	if (path == NULL)
		path = pw_send_default();
	*s = (struct pw_send){
	    .snd_path = path,
	    .snd_loop = clients_loop,
	    .snd_sock = c->cl_sock,
	    .snd_mem = c->cl_head,
	    .snd_mem_len = len,
	    .snd_file = rq->rq_end > 0 ? file : NULL,
	    .snd_off = rq->rq_off,
	    .snd_len = rq->rq_end - rq->rq_off,
	    .snd_done = on_sent,
	};
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

/*
 * Reads a request and opens its file.  Returns true, as send_answer does, if
 * client_run can continue at once.
 */
static bool
read_request(struct client *c)
{
	ssize_t n;
	int error;

	while (!clients_parse(&c->cl_request)) {
		n = clients_read(&c->cl_request, c->cl_sock);
		if (n == -1 && errno == EAGAIN)
			loop_watch(c, CLIENT_WANTS_READ);
		else if (n <= 0)
			client_leave(c);
		if (n <= 0)
			return false;
	}
	c->cl_open.op_waiter.wt_done = on_open;
	error = pw_file_open(clients_loop, clients_root, c->cl_request.rq_name,
	    pw_now(), &c->cl_open);
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
