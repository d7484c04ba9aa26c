/*
 * fd_client: replaces client.c.  Sends memory that the library lends, by send(2).  A server with
 * frames or encryption of its own would pass the memory to its encoder instead.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "fd_cache.h"

struct visitor {
	struct client vs_client; /* first member, since it is cast */
	struct cache_open vs_open;
	struct pw_fetch vs_fetch;
	struct pw_file *vs_file; /* file that is sent, or NULL */
	size_t vs_len, vs_sent; /* bytes of cl_head, and those that were sent */
	bool vs_waits;		/* true until the library calls back */
};

#define VISITOR_OF(member, pointer)                             \
	((struct visitor *)(void *)((char *)(pointer)-offsetof( \
	    struct visitor, member)))

struct client *
client_accept(int listener)
{
	int sock = clients_accept(listener);
	struct visitor *v = sock == -1 ? NULL : calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->vs_client.cl_sock = sock;
	return &v->vs_client;
}

/*
 * Ends a client.  While the library uses the visitor, closes only the socket; then the library's
 * callback calls this function again.
 */
void
client_leave(struct client *c)
{
	struct visitor *v = (struct visitor *)c;

	c->cl_state = CLIENT_GONE;
	if (v->vs_waits) {
		close(c->cl_sock);
		c->cl_sock = -1;
		return;
	}
	pw_unpin(&v->vs_fetch);
	pw_file_unref(&v->vs_file);
	loop_close(c);
}

/*
 * Continues after a wait.  After an error, closes the connection, since the response may have
 * begun.
 */
static void
go_on(struct visitor *v, int error)
{
	v->vs_waits = false;
	if (v->vs_client.cl_state == CLIENT_GONE || error != 0)
		client_leave(&v->vs_client);
	else
		client_run(&v->vs_client);
}

/* Chooses the response.  Takes ownership of the reference to the file. */
static void
answer(struct visitor *v, struct pw_file *file, int error)
{
	struct client *c = &v->vs_client;

	v->vs_file = file;
	v->vs_len = clients_head(&c->cl_request, file, error, c->cl_head);
	v->vs_sent = 0;
	if (c->cl_state != CLIENT_GONE)
		c->cl_state = CLIENT_SENDS;
}

static void
on_open(struct cache_open *co, struct pw_file *file, int error)
{
	answer(VISITOR_OF(vs_open, co), file, error);
	go_on(VISITOR_OF(vs_open, co), 0);
}

static void
on_fetched(struct pw_waiter *w)
{
	go_on(VISITOR_OF(vs_fetch, w), w->wt_error);
}

/* Reads a request, and opens its file.  Returns false if the client has left, or must send more. */
static bool
read_request(struct visitor *v)
{
	struct client *c = &v->vs_client;
	struct pw_file *file = NULL;
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
	v->vs_open.co_name = c->cl_request.rq_name;
	v->vs_open.co_done = on_open;
	error = cache_open(&v->vs_open, &file);
	v->vs_waits = error == -EINPROGRESS;
	if (v->vs_waits)
		loop_watch(c, CLIENT_WAITS);
	else
		answer(v, file, error);
	return true;
}

/* Borrows the window of the next byte.  Returns 0, -EINPROGRESS or -errno. */
static int
borrow(struct visitor *v)
{
	const struct request *rq = &v->vs_client.cl_request;

	if (rq->rq_off == rq->rq_end || v->vs_fetch.ft_mem != NULL)
		return 0;
	v->vs_fetch = (struct pw_fetch){
	    .ft_waiter.wt_done = on_fetched,
	    .ft_file = v->vs_file,
	    .ft_off = rq->rq_off,
	    .ft_len = (size_t)(rq->rq_end - rq->rq_off),
	    .ft_want = PW_FETCH_MEMORY,
	    .ft_cache = PW_CACHE_AUTO,
	    .ft_begun = v->vs_sent > 0,
	};
	return pw_fetch(&v->vs_fetch);
}

/* Sends some of the head, or of the borrowed window.  Returns as send(2). */
static ssize_t
send_some(struct visitor *v)
{
	struct client *c = &v->vs_client;
	struct pw_fetch *ft = &v->vs_fetch;
	size_t at = (size_t)(c->cl_request.rq_off - ft->ft_off);
	ssize_t n;

	if (v->vs_sent < v->vs_len) {
		n = send(c->cl_sock, c->cl_head + v->vs_sent,
		    v->vs_len - v->vs_sent, 0);
		v->vs_sent += n > 0 ? (size_t)n : 0;
		return n;
	}
	n = send(c->cl_sock, ft->ft_mem + at, ft->ft_have - at, 0);
	c->cl_request.rq_off += n > 0 ? n : 0;
	/*
	 * The socket has copied the accepted bytes.  The rest is borrowed again when the socket is
	 * writable.
	 */
	pw_unpin(ft);
	return n;
}

/* Sends the response.  Returns false if the client has to wait, or has left. */
static bool
send_answer(struct visitor *v)
{
	struct client *c = &v->vs_client;
	struct request *rq = &c->cl_request;
	ssize_t n;
	int error;

	while (v->vs_sent < v->vs_len || rq->rq_off < rq->rq_end) {
		error = borrow(v);
		v->vs_waits = error == -EINPROGRESS;
		if (v->vs_waits) {
			loop_watch(c, CLIENT_WAITS);
			return false;
		}
		n = error == 0 ? send_some(v) : -1;
		if (error == 0 && n == -1 && errno == EAGAIN)
			loop_watch(c, CLIENT_WANTS_WRITE);
		else if (n == -1)
			client_leave(c);
		if (n == -1)
			return false;
	}
	pw_file_unref(&v->vs_file);
	c->cl_state = CLIENT_READS;
	return true;
}

void
client_run(struct client *c)
{
	struct visitor *v = (struct visitor *)c;
	bool more = true;

	while (more && !v->vs_waits)
		more = c->cl_state == CLIENT_READS ? read_request(v)
						   : send_answer(v);
}
