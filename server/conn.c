/*
 * conn: the life of a connection and the order of things on it: read a head,
 * find the file, send the answer, discard the body, again.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn_priv.h"
#include "shortcut.h"

#define MAX_BODY	  ((uint64_t)64 << 10) /* bytes discarded at most */
#define REQUESTS_PER_TURN 16

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

static void
conn_free(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	exchange_free(c);
	worker_timer(wk, c, TIMER_NONE);
	buf_release(&c->cn_in, bufs(c));
	if (!c->cn_dying) {
		event_del(&c->cn_event);
		clients_leave(wk->wk_clients, c->cn_client);
	}
	if (c->cn_fd != -1)
		close(c->cn_fd);
	worker_conn_removed(wk, c);
	free(c);
}

void
conn_close(struct conn *c)
{
	if (!c->cn_waiting)
		conn_free(c);
	else if (!c->cn_dying)
		conn_cut(c);
}

/* At the end of the server it is short. */
static void
patience(struct conn *c, enum timer timer)
{
	struct worker *wk = c->cn_worker;

	worker_timer(wk, c, wk->wk_draining ? TIMER_GRACE : timer);
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
	c->cn_left = 0;
	patience(c, TIMER_LINGER);
	return NEXT_GO;
}

/* ------------------------------------------------------------- receiving */

/*
 * NEXT_GO: something was received.  A short count mostly means that the socket
 * is empty; but the client may have closed or reset the connection at the same
 * time, and for that there is no further edge; nor is it seen everywhere (kqueue).
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
		c->cn_drained =
		    (size_t)n < room && !c->cn_hup && c->cn_worker->wk_sees_end;
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

/* An answer has ended; those who have had a share give way, if they would go on. */
static enum next
ended(const struct conn *c)
{
	bool more = c->cn_in.b_len > 0 || c->cn_readable;

	return more && c->cn_turn_sent > CONN_SHARE ? NEXT_AGAIN : NEXT_GO;
}

static enum next
refuse(struct conn *c, int status)
{
	c->cn_ex->ex_request.rq_keepalive = false;
	respond_error(c, status);
	c->cn_state = CONN_SEND;
	return NEXT_GO;
}

unsigned
conn_requests_left(const struct conn *c)
{
	unsigned max = c->cn_worker->wk_conf->conf_max_requests;

	return max == 0 ? UINT_MAX : max - c->cn_requests;
}

static bool
begin_exchange(struct conn *c)
{
	worker_timer(c->cn_worker, c, TIMER_NONE);
	c->cn_skip = 0;
	return exchange_begin(c);
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
	struct str line = broken_line(c);

	if (!begin_exchange(c))
		return NEXT_CLOSE;
	c->cn_ex->ex_request.rq_line = line;
	/* Then a body would be no part of the answer (RFC 9110, 9.3.2). */
	if (str_skip(&line, STR("HEAD ")))
		c->cn_ex->ex_request.rq_method = METHOD_HEAD;
	return refuse(c, status);
}

static int
find_target(struct conn *c)
{
	struct request *rq = &c->cn_ex->ex_request;
	size_t size = rq->rq_target.s_len + 2;
	int status;

	if (!buf_reserve(&c->cn_ex->ex_path, bufs(c), size))
		return 503;
	status = target_parse(rq->rq_target, c->cn_ex->ex_path.b_data, size,
	    &c->cn_ex->ex_target);
	if (status == 0 && c->cn_ex->ex_target.tgt_asterisk &&
	    rq->rq_method != METHOD_OPTIONS)
		status = 400;
	return status;
}

static void
await_disk(struct conn *c)
{
	worker_timer(c->cn_worker, c, TIMER_DISK);
	exchange_wait(c);
}

static enum next
looked_up(struct conn *c, bool ready)
{
	c->cn_state = ready ? CONN_SEND : CONN_LOOKUP;
	if (ready)
		return NEXT_GO;
	await_disk(c);
	return NEXT_WAIT;
}

static enum next
answer(struct conn *c)
{
	int status;

	if (c->cn_ex->ex_request.rq_method == METHOD_OTHER) {
		respond_error(c, 405);
		return NEXT_GO;
	}
	status = find_target(c);
	if (status != 0)
		return refuse(c, status);
	if (c->cn_ex->ex_request.rq_method == METHOD_OPTIONS) {
		respond_options(c);
		return NEXT_GO;
	}
	return looked_up(c, static_begin(c));
}

static void
count_request(struct conn *c)
{
	struct request *rq = &c->cn_ex->ex_request;

	if (conn_requests_left(c) == 1 && rq->rq_keepalive) {
		stat_add(&c->cn_worker->wk_stats.sta_capped[CAP_REQUESTS], 1);
		rq->rq_keepalive = false;
	}
	c->cn_requests++;
}

static enum next
begin_request(struct conn *c)
{
	struct str head = {c->cn_in.b_data + c->cn_head.hd_skip,
	    c->cn_head.hd_len - c->cn_head.hd_skip};
	struct request *rq;
	enum next next;
	int status;

	if (!begin_exchange(c))
		return NEXT_CLOSE;
	rq = &c->cn_ex->ex_request;
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
	count_request(c);
	c->cn_state = CONN_SEND;
	next = answer(c);
	if (c->cn_ex->ex_response.rs_ready != NULL)
		shortcut_learn(c, head);
	return next;
}

/* NEXT_WAIT: there is none, and nothing has changed. */
static enum next
answer_known(struct conn *c)
{
	if (c->cn_in.b_len == 0 || !c->cn_writable || c->cn_worker->wk_draining)
		return NEXT_WAIT;
	switch (shortcut_run(c)) {
	case SHORTCUT_NONE:
		return NEXT_WAIT;
	case SHORTCUT_FAILED:
		return NEXT_CLOSE;
	case SHORTCUT_BEGUN:
		c->cn_state = CONN_SEND;
		break;
	case SHORTCUT_SENT:
		c->cn_head = (struct head){0};
		break;
	}
	worker_timer(c->cn_worker, c, TIMER_NONE);
	if (c->cn_drained)
		c->cn_readable = false;
	return ended(c);
}

/*
 * RFC 9112, 2.2: some clients send an empty line behind a body.  To an idle connection it is
 * nothing, and its time goes on.
 */
static void
forget_blank(struct conn *c)
{
	const struct buf *in = &c->cn_in;
	size_t i;

	if (c->cn_timer == TIMER_HEAD || in->b_len % 2 != 0)
		return;
	for (i = 0; i < in->b_len; i += 2)
		if (memcmp(in->b_data + i, "\r\n", 2) != 0)
			return;
	i += c->cn_head.hd_before;
	if (i > HEAD_BLANK) /* head_check refuses them */
		return;
	buf_consume(&c->cn_in, in->b_len);
	c->cn_head = (struct head){.hd_before = i};
}

/* Nothing is held while a client thinks. */
static enum next
await_request(struct conn *c)
{
	if (c->cn_in.b_len > 0)
		forget_blank(c);
	if (c->cn_in.b_len == 0) {
		buf_release(&c->cn_in, bufs(c));
		if (c->cn_timer == TIMER_NONE)
			patience(c, conn_pace_ended(c));
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
	enum next next = answer_known(c);

	if (next != NEXT_WAIT)
		return next;
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
	uint64_t bytes = response_sent(&c->cn_ex->ex_response);
	bool end = c->cn_ex->ex_response.rs_close;

	c->cn_turn_sent += bytes;
	c->cn_unseen += bytes;
	exchange_free(c);
	worker_timer(c->cn_worker, c, TIMER_NONE);
	if (end)
		return linger(c);
	next_request(c);
	return ended(c);
}

static enum next
send_answer(struct conn *c)
{
	enum pw_send_status status;

	if (!c->cn_writable)
		return NEXT_WAIT;
	status = response_step(c);
	exchange_sent(c);
	switch (status) {
	case PW_SEND_DONE:
		return sent(c);
	case PW_SEND_WANT_WRITE:
		c->cn_writable = false;
		return conn_pace_full(c) ? NEXT_WAIT : NEXT_CLOSE;
	case PW_SEND_AGAIN:
		return NEXT_AGAIN;
	case PW_SEND_PENDING:
		c->cn_looks = 0;
		await_disk(c);
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

	switch (c->cn_state) {
	case CONN_READ:
		return read_request(c);
	case CONN_SEND:
		return send_answer(c);
	case CONN_SKIP:
		return skip_body(c);
	case CONN_LINGER:
		return discard(c, &all);
	case CONN_LOOKUP:
		return looked_up(c, static_continue(c));
	}
	return NEXT_CLOSE;
}

static enum phase
phase(const struct conn *c)
{
	switch (c->cn_state) {
	case CONN_READ:
		return c->cn_timer == TIMER_NONE || c->cn_timer == TIMER_HEAD
			   ? PHASE_HEAD
			   : PHASE_IDLE;
	case CONN_LOOKUP:
		return PHASE_DISK;
	case CONN_SEND:
		return c->cn_waiting ? PHASE_DISK : PHASE_SEND;
	case CONN_SKIP:
		return PHASE_BODY;
	case CONN_LINGER:
		break;
	}
	return PHASE_LINGER;
}

static void
count_phase(struct conn *c)
{
	_Atomic uint64_t *counts = c->cn_worker->wk_stats.sta_phase;
	enum phase now = phase(c);

	if (now == c->cn_phase)
		return;
	stat_add(&counts[c->cn_phase], -(uint64_t)1);
	stat_add(&counts[now], 1);
	c->cn_phase = now;
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
	count_phase(c);
	switch (next) {
	case NEXT_GO:
	case NEXT_AGAIN:
		worker_again(c->cn_worker, c);
		break;
	case NEXT_WAIT:
		break;
	case NEXT_CLOSE:
		conn_close(c);
		return;
	}
	conn_check(c);
}

bool
conn_resumed(struct conn *c)
{
	exchange_resume(c);
	if (!c->cn_dying) {
		worker_timer(c->cn_worker, c, TIMER_NONE);
		return true;
	}
	conn_free(c);
	return false;
}

/*
 * Downloads in their middle take turns; whatever is new goes at once, unless this turn
 * of the loop has been long already: thousands may go in the same moment, too, and to
 * close takes 15 us.
 */
static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	worker_lap(c->cn_worker, LAP_EVENTS);
	if (what & (EV_READ | EV_CLOSED)) {
		c->cn_readable = true;
		c->cn_drained = false;
	}
	if (what & EV_CLOSED)
		c->cn_hup = true;
	if (what & EV_WRITE)
		c->cn_writable = true;
	if (c->cn_writable && c->cn_timer == TIMER_SEND)
		conn_pace_room(c);
	if (c->cn_waiting || c->cn_queued)
		return;
	if (c->cn_state == CONN_SEND || worker_late(c->cn_worker))
		worker_again(c->cn_worker, c);
	else
		conn_run(c);
}

void
conn_create(struct worker *wk, int fd, const struct sockaddr *peer,
    struct client *client)
{
	struct conn *c;

	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		clients_leave(wk->wk_clients, client);
		close(fd);
		return;
	}
	c->cn_worker = wk;
	c->cn_fd = fd;
	c->cn_client = client;
	c->cn_writable = true;
	memcpy(&c->cn_peer, peer, sizeof(c->cn_peer));
	event_assign(&c->cn_event, wk->wk_base, fd,
	    EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, on_event, c);
	if (event_add(&c->cn_event, NULL) != 0) {
		clients_leave(wk->wk_clients, client);
		close(fd);
		free(c);
		return;
	}
	c->cn_phase = PHASE_HEAD;
	worker_conn_added(wk, c);
	patience(c, TIMER_HEAD);
}

/* RFC 9110, 15.5.9: a client that has begun a request is told. */
static void
refuse_late(struct conn *c)
{
	if (refuse_head(c, 408) == NEXT_CLOSE)
		conn_close(c);
	else
		conn_run(c);
}

static bool
nothing_came(const struct conn *c)
{
	char byte;

	return recv(c->cn_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 1;
}

/* At the end of the server: whoever crosses that has not been heard. */
static void
end_idle(struct conn *c)
{
	if (nothing_came(c) && linger(c) == NEXT_CLOSE)
		conn_close(c);
	else
		conn_run(c);
}

/* The last answer is on its way, or has been taken, which is when it begins to be idle. */
static bool
more_rest(struct conn *c, enum timer timer)
{
	switch (conn_pace_rest(c)) {
	case REST_SOME:
		patience(c, timer);
		return true;
	case REST_LOST:
		return false;
	case REST_NONE:
		break;
	}
	if (timer == TIMER_REST) {
		patience(c, TIMER_IDLE);
		return true;
	}
	stat_add(&c->cn_worker->wk_stats.sta_timeout[timer], 1);
	return false;
}

static bool
more_time(struct conn *c, enum timer timer)
{
	switch (timer) {
	case TIMER_SEND:
		return conn_pace_late(c);
	case TIMER_REST:
	case TIMER_IDLE:
	case TIMER_LINGER:
		return more_rest(c, timer);
	case TIMER_GRACE:
		return false;
	default:
		stat_add(&c->cn_worker->wk_stats.sta_timeout[timer], 1);
		return false;
	}
}

void
conn_timeout(struct conn *c, enum timer timer)
{
	if (c->cn_waiting)
		conn_give_up(c);
	else if (more_time(c, timer))
		return;
	else if (c->cn_state != CONN_READ)
		conn_close(c);
	else if (c->cn_in.b_len > 0)
		refuse_late(c);
	else if (c->cn_worker->wk_draining)
		end_idle(c);
	else
		conn_close(c);
}

/*
 * A request may be under way to us: it is answered, with "Connection: close"
 * (RFC 9112, 9.6).
 */
void
conn_drain(struct conn *c)
{
	if (c->cn_state == CONN_LINGER ||
	    (c->cn_state == CONN_READ && c->cn_in.b_len == 0))
		worker_timer(c->cn_worker, c, TIMER_GRACE);
}

uint64_t
conn_idle(const struct conn *c)
{
	return c->cn_timer == TIMER_IDLE && nothing_came(c)
		   ? pw_unacked(c->cn_fd)
		   : UINT64_MAX;
}

void
conn_reclaim(struct conn *c)
{
	stat_add(&c->cn_worker->wk_stats.sta_reclaimed, 1);
	if (pw_unacked(c->cn_fd) > 0)
		conn_pace_forget(c);
	conn_close(c);
}

/* What came together is answered together, but not for ever. */
bool
conn_last(const struct conn *c)
{
	const struct worker *wk = c->cn_worker;

	return wk->wk_draining && (c->cn_in.b_len <= c->cn_head.hd_len ||
				      worker_now() >= wk->wk_drain_until);
}
