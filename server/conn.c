/*
 * conn: the life of a connection and the order of things on it: read a head,
 * find the file, send the answer, discard the body, again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"

#define STATUS_CUT	  499 /* nginx' number for: no answer was begun */
#define MAX_BODY	  ((uint64_t)64 << 10) /* bytes discarded at most */
#define REQUESTS_PER_TURN 16
#define LINGER_READS	  8  /* of a buffer's size, in one turn */
#define DISK_LOOKS	  10 /* of disk_timeout, as long as it does something */

static const char body_503[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>503 Service "
    "Unavailable</title></head>\n<body><h1>503 Service Unavailable"
    "</h1></body></html>\n";

#define BODY_503_LEN (sizeof(body_503) - 1)

/* What a step of the connection came to. */
enum next {
	NEXT_GO,    /* the state has changed: go on */
	NEXT_WAIT,  /* for an event, a timer or a completion */
	NEXT_AGAIN, /* more to do, when the others had their turn */
	NEXT_CLOSE,
};

static struct buf_list *
bufs(struct conn *c)
{
	return &c->cn_worker->wk_bufs;
}

/* -------------------------------------------------------------- the end */

/* Once for each exchange: when it ends, or is cut while it waits for a disk. */
static void
log_exchange(struct conn *c)
{
	const struct request *rq = &c->cn_request;
	const struct response *rs = &c->cn_response;
	uint64_t sent = response_sent(rs), head = rs->rs_head_len,
		 duration = worker_now() - c->cn_since;
	bool cut = rs->rs_status == 0 || (c->cn_dying && sent == 0);
	int status = cut ? STATUS_CUT : rs->rs_status;
	struct log_record rec = {
	    .rec_peer = &c->cn_peer.sa,
	    .rec_time = c->cn_time,
	    .rec_line = rq->rq_line,
	    .rec_referer = rq->rq_referer,
	    .rec_agent = rq->rq_agent,
	    .rec_host = rq->rq_host,
	    .rec_duration = duration,
	    .rec_wait = cut ? duration : rs->rs_wait,
	};

	if (c->cn_503 > 0) {
		status = 503;
		sent = c->cn_503;
		head =
		    rq->rq_method == METHOD_HEAD ? sent : sent - BODY_503_LEN;
	}
	rec.rec_status = status;
	rec.rec_bytes = sent;
	rec.rec_body = sent > head ? sent - head : 0;
	log_access(c->cn_worker->wk_log, &rec);
	c->cn_unlogged = false;
}

static void
end_exchange(struct conn *c)
{
	if (c->cn_unlogged)
		log_exchange(c);
	static_finish(c);
	response_finish(c);
	buf_release(&c->cn_path, bufs(c));
	buf_release(&c->cn_request.rq_joined, bufs(c));
	worker_timer(c->cn_worker, c, TIMER_NONE);
}

static void
conn_free(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	end_exchange(c);
	buf_release(&c->cn_in, bufs(c));
	if (!c->cn_dying)
		event_del(&c->cn_event);
	if (c->cn_fd != -1)
		close(c->cn_fd);
	worker_conn_removed(wk, c);
	free(c);
}

/* What waits for the disk stays until it answers, which may be never. */
static void
cut(struct conn *c)
{
	c->cn_dying = true;
	if (c->cn_unlogged)
		log_exchange(c);
	worker_timer(c->cn_worker, c, TIMER_NONE);
	event_del(&c->cn_event);
	if (c->cn_response.rs_send.snd_pending)
		pw_send_cancel(&c->cn_response.rs_send);
	shutdown(c->cn_fd, SHUT_RDWR);
}

void
conn_close(struct conn *c)
{
	if (!c->cn_waiting)
		conn_free(c);
	else if (!c->cn_dying)
		cut(c);
}

static void
tell_disk(struct conn *c)
{
	struct worker *wk = c->cn_worker;
	struct str line = c->cn_request.rq_line;

	if (limit_tell(&wk->wk_told_disk, worker_now()))
		log_error(wk->wk_log,
		    "\"%.*s\": the disk has not answered for %u s",
		    (int)line.s_len, line.s_ptr,
		    wk->wk_conf->conf_disk_timeout);
}

/* Not through cn_response: what waits for the disk still uses that. */
static void
send_503(struct conn *c)
{
	struct worker *wk = c->cn_worker;
	char text[400];
	ssize_t n;
	int len;

	worker_time(wk);
	len = snprintf(text, sizeof(text),
	    "HTTP/1.1 503 Service Unavailable\r\nServer: pagewise\r\n"
	    "Date: %s\r\nRetry-After: %u\r\n"
	    "Content-Type: text/html; charset=utf-8\r\n"
	    "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
	    wk->wk_date, wk->wk_conf->conf_disk_timeout, BODY_503_LEN,
	    c->cn_request.rq_method == METHOD_HEAD ? "" : body_503);
	n = send(c->cn_fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The answer before it may still fill the socket. */
	if (n == len)
		c->cn_503 = (size_t)n;
}

/* A socket that is closed with unread input resets, and the answer with it. */
static void
forget_input(struct conn *c)
{
	char trash[BUF_SIZE];
	int n;

	for (n = 0; n < LINGER_READS; n++)
		if (recv(c->cn_fd, trash, sizeof(trash), MSG_DONTWAIT) <= 0)
			break;
}

/*
 * The disk may answer later, or never: what waits for it stays until then, but the
 * client need not, and its descriptor is free at once, unless a pool thread has it.
 * An answer that was begun can only be cut.  A disk that is only busy gets more time.
 */
static void
give_up(struct conn *c)
{
	struct response *rs = &c->cn_response;
	bool lent = rs->rs_send.snd_lent;

	if (c->cn_state == CONN_SEND && c->cn_looks++ < DISK_LOOKS &&
	    !pw_send_stuck(&rs->rs_send)) {
		worker_timer(c->cn_worker, c, TIMER_DISK);
		return;
	}
	tell_disk(c);
	if (response_sent(rs) == 0 && !lent)
		send_503(c);
	if (!lent)
		forget_input(c);
	cut(c);
	if (lent)
		return;
	close(c->cn_fd);
	c->cn_fd = -1;
}

/* The client reads what is under way, then our end, then it closes (RFC 9112,
 * 9.6): a socket that is closed with unread input resets, and the answer with it. */
static enum next
linger(struct conn *c)
{
	if (shutdown(c->cn_fd, SHUT_WR) == -1)
		return NEXT_CLOSE;
	buf_release(&c->cn_in, bufs(c));
	c->cn_state = CONN_LINGER;
	worker_timer(c->cn_worker, c, TIMER_LINGER);
	return NEXT_GO;
}

/* ------------------------------------------------------------- receiving */

/*
 * NEXT_GO: something was received.  A short count mostly means that the socket
 * is empty; but the client may have closed or reset the connection at the same
 * time, and for that there is no further edge.
 */
static enum next
receive(struct conn *c, char *to, size_t room, size_t *got)
{
	ssize_t n;

	*got = 0;
	if (!c->cn_readable)
		return NEXT_WAIT;
	do
		n = recv(c->cn_fd, to, room, 0);
	while (n == -1 && errno == EINTR);
	if (n > 0) {
		*got = (size_t)n;
		c->cn_drained = (size_t)n < room && !c->cn_hup;
		return NEXT_GO;
	}
	if (n == -1 && errno == EAGAIN) {
		c->cn_readable = false;
		return NEXT_WAIT;
	}
	return NEXT_CLOSE;
}

static enum next
discard(struct conn *c, uint64_t *limit)
{
	char trash[BUF_SIZE];
	enum next next = NEXT_GO;
	size_t got, room;
	int n;

	for (n = 0; n < LINGER_READS && next == NEXT_GO; n++) {
		room = *limit < sizeof(trash) ? (size_t)*limit : sizeof(trash);
		if (room == 0)
			return NEXT_GO;
		next = receive(c, trash, room, &got);
		*limit -= got;
	}
	return next == NEXT_GO ? NEXT_AGAIN : next;
}

/* -------------------------------------------------------------- requests */

static enum next
refuse(struct conn *c, int status)
{
	c->cn_request.rq_keepalive = false;
	respond_error(c, status);
	c->cn_state = CONN_SEND;
	return NEXT_GO;
}

static void
begin_exchange(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	worker_timer(wk, c, TIMER_NONE);
	c->cn_request = (struct request){0};
	c->cn_unlogged = log_access_on(wk->wk_log);
	c->cn_since = worker_now();
	c->cn_time = worker_time(wk);
	c->cn_skip = 0;
	c->cn_503 = 0;
}

/* What was received of a request line that never became a request. */
static struct str
broken_line(const struct conn *c)
{
	const char *p = c->cn_in.b_data, *end = p + c->cn_in.b_len;
	const char *start;

	while (p < end && (*p == '\r' || *p == '\n'))
		p++;
	for (start = p; p < end && *p != '\r' && *p != '\n'; p++)
		continue;
	return (struct str){start, (size_t)(p - start)};
}

static enum next
refuse_head(struct conn *c, int status)
{
	begin_exchange(c);
	c->cn_request.rq_line = broken_line(c);
	return refuse(c, status);
}

static int
find_target(struct conn *c)
{
	struct request *rq = &c->cn_request;
	size_t size = rq->rq_target.s_len + 2;
	int status;

	if (!buf_reserve(&c->cn_path, bufs(c), size))
		return 503;
	status =
	    target_parse(rq->rq_target, c->cn_path.b_data, size, &c->cn_target);
	if (status == 0 && c->cn_target.tgt_asterisk &&
	    rq->rq_method != METHOD_OPTIONS)
		status = 400;
	return status;
}

static enum next
looked_up(struct conn *c, bool ready)
{
	c->cn_state = ready ? CONN_SEND : CONN_LOOKUP;
	c->cn_waiting = !ready;
	if (!ready)
		worker_timer(c->cn_worker, c, TIMER_DISK);
	return ready ? NEXT_GO : NEXT_WAIT;
}

static enum next
answer(struct conn *c)
{
	int status;

	if (c->cn_request.rq_method == METHOD_OTHER) {
		respond_error(c, 405);
		return NEXT_GO;
	}
	status = find_target(c);
	if (status != 0)
		return refuse(c, status);
	if (c->cn_request.rq_method == METHOD_OPTIONS) {
		respond_options(c);
		return NEXT_GO;
	}
	return looked_up(c, static_begin(c));
}

static enum next
begin_request(struct conn *c)
{
	struct request *rq = &c->cn_request;
	struct str head = {c->cn_in.b_data + c->cn_head.hd_skip,
	    c->cn_head.hd_len - c->cn_head.hd_skip};
	int status;

	begin_exchange(c);
	/* A whole request and no more: what comes next comes with an edge. */
	if (c->cn_drained)
		c->cn_readable = false;
	status = request_parse(rq, head, MAX_BODY, bufs(c));
	if (status != 0)
		return refuse(c, status);
	c->cn_skip = rq->rq_body;
	/* It may never send the body that it has announced. */
	if (rq->rq_expect.s_ptr != NULL && rq->rq_body > 0)
		rq->rq_keepalive = false;
	c->cn_state = CONN_SEND;
	return answer(c);
}

/* Nothing is held while a client thinks. */
static enum next
await_request(struct conn *c)
{
	if (c->cn_in.b_len == 0) {
		buf_release(&c->cn_in, bufs(c));
		if (c->cn_worker->wk_draining)
			return NEXT_CLOSE;
		if (c->cn_timer == TIMER_NONE)
			worker_timer(c->cn_worker, c, TIMER_IDLE);
	} else if (c->cn_timer != TIMER_HEAD)
		worker_timer(c->cn_worker, c, TIMER_HEAD);
	return NEXT_WAIT;
}

static enum next
receive_head(struct conn *c)
{
	struct buf *in = &c->cn_in;
	enum next next;
	size_t got;

	if (!buf_reserve(in, bufs(c), in->b_len + 1))
		return NEXT_CLOSE;
	next = receive(c, in->b_data + in->b_len, in->b_cap - in->b_len, &got);
	in->b_len += got;
	return next == NEXT_WAIT ? await_request(c) : next;
}

static enum next
read_request(struct conn *c)
{
	const struct conf *conf = c->cn_worker->wk_conf;
	const struct head_limits limits = {
	    conf->conf_max_head, conf->conf_max_target, conf->conf_max_fields};
	int status = HEAD_MORE;

	if (c->cn_in.b_len > c->cn_head.hd_scanned)
		status = head_check(
		    c->cn_in.b_data, c->cn_in.b_len, &limits, &c->cn_head);
	if (status == HEAD_MORE)
		return receive_head(c);
	if (status != 0)
		return refuse_head(c, status);
	return begin_request(c);
}

/* ---------------------------------------------------------------- answers */

static enum next
skip_body(struct conn *c)
{
	enum next next = discard(c, &c->cn_skip);

	if (c->cn_skip > 0)
		return next;
	c->cn_state = CONN_READ;
	worker_timer(c->cn_worker, c, TIMER_NONE);
	return NEXT_GO;
}

static void
next_request(struct conn *c)
{
	struct buf *in = &c->cn_in;
	size_t n;

	buf_consume(in, c->cn_head.hd_len);
	n = in->b_len < c->cn_skip ? in->b_len : (size_t)c->cn_skip;
	buf_consume(in, n);
	c->cn_skip -= n;
	c->cn_head = (struct head){0};
	c->cn_state = c->cn_skip > 0 ? CONN_SKIP : CONN_READ;
	if (c->cn_skip > 0)
		worker_timer(c->cn_worker, c, TIMER_HEAD);
}

static enum next
sent(struct conn *c)
{
	bool end = c->cn_response.rs_close || c->cn_worker->wk_draining;

	c->cn_turn_sent += response_sent(&c->cn_response);
	end_exchange(c);
	if (end)
		return linger(c);
	next_request(c);
	return c->cn_turn_sent > CONN_SHARE ? NEXT_AGAIN : NEXT_GO;
}

/* The client must take something in each stretch of send_timeout. */
static enum next
await_client(struct conn *c)
{
	uint64_t progress = response_sent(&c->cn_response);

	c->cn_writable = false;
	if (c->cn_timer != TIMER_SEND || progress != c->cn_progress) {
		c->cn_progress = progress;
		worker_timer(c->cn_worker, c, TIMER_SEND);
	}
	return NEXT_WAIT;
}

static enum next
send_answer(struct conn *c)
{
	if (!c->cn_writable)
		return NEXT_WAIT;
	switch (response_step(c)) {
	case PW_SEND_DONE:
		return sent(c);
	case PW_SEND_WANT_WRITE:
		return await_client(c);
	case PW_SEND_AGAIN:
		return NEXT_AGAIN;
	case PW_SEND_PENDING:
		worker_timer(c->cn_worker, c, TIMER_DISK);
		c->cn_looks = 0;
		c->cn_waiting = true;
		return NEXT_WAIT;
	case PW_SEND_ERROR:
		break;
	}
	return response_replaced(c) ? NEXT_GO : NEXT_CLOSE;
}

/* ------------------------------------------------------------- the machine */

static enum next
step(struct conn *c)
{
	uint64_t all = UINT64_MAX;
	enum next next;

	switch (c->cn_state) {
	case CONN_READ:
		return read_request(c);
	case CONN_SEND:
		return send_answer(c);
	case CONN_SKIP:
		return skip_body(c);
	case CONN_LINGER:
		next = discard(c, &all);
		/* The end of the server does not wait for a client's. */
		return c->cn_worker->wk_draining ? NEXT_CLOSE : next;
	case CONN_LOOKUP:
		return looked_up(c, static_continue(c));
	}
	return NEXT_CLOSE;
}

void
conn_run(struct conn *c)
{
	enum next next = NEXT_GO;
	int n;

	if (c->cn_waiting)
		return;
	c->cn_turn_sent = 0;
	for (n = 0; next == NEXT_GO && n < 2 * REQUESTS_PER_TURN; n++)
		next = step(c);
	switch (next) {
	case NEXT_GO:
	case NEXT_AGAIN:
		worker_again(c->cn_worker, c);
		break;
	case NEXT_WAIT:
		break;
	case NEXT_CLOSE:
		conn_close(c);
		break;
	}
}

bool
conn_resumed(struct conn *c)
{
	c->cn_waiting = false;
	if (!c->cn_dying) {
		worker_timer(c->cn_worker, c, TIMER_NONE);
		return true;
	}
	conn_free(c);
	return false;
}

/*
 * Downloads in their middle take turns; whatever is new goes at once.
 */
static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	if (what & (EV_READ | EV_CLOSED)) {
		c->cn_readable = true;
		c->cn_drained = false;
	}
	if (what & EV_CLOSED)
		c->cn_hup = true;
	if (what & EV_WRITE)
		c->cn_writable = true;
	if (c->cn_waiting || c->cn_queued)
		return;
	if (c->cn_state == CONN_SEND)
		worker_again(c->cn_worker, c);
	else
		conn_run(c);
}

void
conn_create(
    struct worker *wk, int fd, const struct sockaddr *peer, socklen_t len)
{
	struct conn *c;

	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		close(fd);
		return;
	}
	c->cn_worker = wk;
	c->cn_fd = fd;
	c->cn_writable = true;
	if (len <= sizeof(c->cn_peer))
		memcpy(&c->cn_peer, peer, len);
	event_assign(&c->cn_event, wk->wk_base, fd,
	    EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, on_event, c);
	if (event_add(&c->cn_event, NULL) != 0) {
		close(fd);
		free(c);
		return;
	}
	worker_conn_added(wk, c);
	worker_timer(wk, c, TIMER_HEAD);
}

/* RFC 9110, 15.5.9: a client that has begun a request is told. */
void
conn_timeout(struct conn *c)
{
	if (c->cn_waiting) {
		give_up(c);
		return;
	}
	if (c->cn_state != CONN_READ || c->cn_in.b_len == 0) {
		conn_close(c);
		return;
	}
	refuse_head(c, 408);
	conn_run(c);
}

void
conn_drain(struct conn *c)
{
	if (c->cn_state == CONN_READ && c->cn_in.b_len == 0 && !c->cn_queued)
		conn_close(c);
	else if (c->cn_state == CONN_LINGER)
		conn_run(c);
}

bool
conn_idle(const struct conn *c)
{
	char byte;

	return c->cn_timer == TIMER_IDLE &&
	       recv(c->cn_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 1;
}
