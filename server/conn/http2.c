/*
 * http2: runs an HTTP/2 connection: passes input to the session, sends the frames of the session,
 * and sets the timer of the connection.  Each stream has its own timer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"

#define READS	 8    /* maximum reads in one time slice */
#define RUNS	 32   /* maximum runs of the streams in one time slice */
#define RECEIVED 8192 /* maximum bytes per read */
/* bytes sent per time slice while others wait, or the socket has less space */
#define GIVEN	 ((size_t)4 * H2_FRAME + 1024)

_Static_assert(GIVEN >= H2_ROOM, "a time slice must have the bytes that "
				 "h2_gather requires");
_Static_assert(WORKER_FRAMES >= GIVEN, "the buffer must have a time slice");

/* ------------------------------------------------------------------ input */

/*
 * Returns true if the socket is empty and the session has frames to send.  The caller then need not
 * receive again: one edge may report input and a reset, but the send detects the reset.
 */
static bool
conn_http2_is_drained(const struct conn *c)
{
	const struct conn_http2 *ch = c->cn_h2;

	return c->cn_drained &&
	       (ch->ch_rest != NULL || h2_wants_room(ch->ch_session));
}

/* Passes received frames to the session.  Returns NEXT_GO if the socket may have more input. */
static enum next
conn_http2_read_frames(struct conn *c)
{
	char data[RECEIVED];
	enum next next = NEXT_GO;
	size_t got;

	if (!conn_http2_go_on(c))
		return NEXT_WAIT;
	for (int n = 0; n < READS && next == NEXT_GO; n++) {
		next = conn_receive(c, data, sizeof(data), &got);
		if (got > 0 && !conn_http2_give(c, data, got))
			return NEXT_WAIT;
		if (c->cn_h2->ch_in != NULL)
			return next == NEXT_CLOSE ? next : NEXT_WAIT;
		if (next == NEXT_GO && conn_http2_is_drained(c)) {
			c->cn_readable = false;
			return NEXT_WAIT;
		}
	}
	return next;
}

/* ----------------------------------------------------------------- output */

/*
 * Stores data that the socket did not accept.  The next send begins with this data.  Returns false
 * if memory is short.
 */
static bool
conn_http2_keep(struct conn_http2 *ch, const char *data, size_t len)
{
	ch->ch_rest = malloc(len);
	if (ch->ch_rest == NULL)
		return false;
	memcpy(ch->ch_rest, data, len);
	ch->ch_at = 0;
	ch->ch_len = len;
	return true;
}

static void
conn_http2_forget_rest(struct conn_http2 *ch)
{
	free(ch->ch_rest);
	ch->ch_rest = NULL;
	ch->ch_len = ch->ch_at = 0;
}

/* Returns the number of bytes sent, which is less than `len` if the socket is full, or -errno. */
static long
conn_http2_send_some(struct conn *c, const char *data, size_t len)
{
	size_t sent = 0;
	long n;

	do {
		n = transport_send(&c->cn_transport, data + sent, len - sent);
		if (n > 0)
			sent += (size_t)n;
	} while ((n > 0 || n == -EINTR) && sent < len);
	c->cn_h2->ch_given += sent;
	c->cn_unseen += sent;
	if (n < 0 && n != -EAGAIN && n != -ENOBUFS)
		return n;
	return (long)sent;
}

static enum next
conn_http2_full(struct conn *c)
{
	c->cn_writable = false;
	return min_rate_full(c) ? NEXT_WAIT : NEXT_CLOSE;
}

/* Sends the stored data.  Returns NEXT_GO if none is left. */
static enum next
conn_http2_send_rest(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;
	long n;

	if (ch->ch_rest == NULL)
		return NEXT_GO;
	n = conn_http2_send_some(
	    c, ch->ch_rest + ch->ch_at, ch->ch_len - ch->ch_at);
	if (n < 0)
		return NEXT_CLOSE;
	ch->ch_at += (size_t)n;
	if (ch->ch_at < ch->ch_len)
		return conn_http2_full(c);
	conn_http2_forget_rest(ch);
	return NEXT_GO;
}

/*
 * Returns the number of bytes to gather.  Bytes that the socket refuses are stored, so it is small while
 * the socket's memory is limited, and exceeds GIVEN only if the socket has space.  A connection that is
 * alone on the run queue sends more in a time slice, since each slice costs several calls.
 */
static size_t
conn_http2_room(const struct conn *c)
{
	long space;

	if (c->cn_level != TCP_ALL)
		return H2_ROOM;
	if (!c->cn_h2->ch_has_more || c->cn_worker->wk_sched.sc_runnable > 0)
		return GIVEN;
	space = os_space(c->cn_transport.tr_fd);
	space -= space / 8; /* for the kernel's own memory of each packet */
	if (space <= (long)GIVEN)
		return GIVEN;
	return space < WORKER_FRAMES ? (size_t)space : WORKER_FRAMES;
}

static enum next
conn_http2_send_new(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;
	char *data = c->cn_worker->wk_frames;
	size_t len = h2_gather(ch->ch_session, data, conn_http2_room(c));
	long n;

	ch->ch_has_more = false;
	if (len == 0)
		return NEXT_WAIT;
	n = conn_http2_send_some(c, data, len);
	if (n < 0)
		return NEXT_CLOSE;
	if ((size_t)n == len) {
		ch->ch_has_more = h2_wants_room(ch->ch_session);
		return ch->ch_has_more ? NEXT_AGAIN : NEXT_WAIT;
	}
	return conn_http2_keep(ch, data + n, len - (size_t)n)
		   ? conn_http2_full(c)
		   : NEXT_CLOSE;
}

static enum next
conn_http2_send_frames(struct conn *c)
{
	enum next next;

	if (!c->cn_writable)
		return NEXT_WAIT;
	conn_bound(c);
	next = conn_http2_send_rest(c);
	return next == NEXT_GO ? conn_http2_send_new(c) : next;
}

/* -------------------------------------------------------------------- steps */

/* Stops the session and shuts our side down.  Call when nothing is left to send or receive. */
static enum next
conn_http2_end(struct conn *c)
{
	h2_stop(c->cn_h2->ch_session);
	return conn_linger(c);
}

static void
conn_http2_set_timer(struct conn *c)
{
	struct h2 *h2 = c->cn_h2->ch_session;
	enum timer timer = c->cn_item.it_timer;
	/* The client owes the rest of a head, or only the rest of bodies. */
	bool owes = h2->h2_heading != NULL ||
		    (h2_awaits_bodies(h2) && c->cn_h2->ch_in == NULL);

	if (c->cn_h2->ch_rest != NULL || timer == TIMER_GRACE)
		return;
	if ((!h2_is_idle(h2) || c->cn_h2->ch_in != NULL) && !owes)
		conn_timer(c, TIMER_NONE);
	else if (owes || h2->h2_requests == 0) {
		if (timer != TIMER_HEAD)
			conn_timer(c, TIMER_HEAD);
	} else if (timer != TIMER_IDLE && timer != TIMER_REST) {
		conn_patience(c, min_rate_ended(c));
		h2_settle(h2);
	}
}

/*
 * Refuses further streams when the grace period has ended.  TIMER_GRACE alone does not suffice:
 * another timer may be set, or TIMER_GRACE may restart again and again.
 */
static void
conn_http2_end_grace(struct conn *c)
{
	const struct worker *wk = c->cn_worker;

	if (wk->wk_draining && clock_now() >= wk->wk_drain_until)
		h2_refuse(c->cn_h2->ch_session);
}

/*
 * Queues the GOAWAY that conn_http2_drain scheduled.  Call when the server has read all requests in
 * the socket and has sent all frames that the socket accepts.  Returns true if a GOAWAY was queued.
 */
static bool
conn_http2_tell_drain(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;

	if (!ch->ch_draining)
		return false;
	ch->ch_draining = false;
	h2_drain(ch->ch_session);
	return true;
}

/*
 * Runs the streams.  Passes stored frames to the session as soon as streams have ended.  Starts no
 * response while the socket is full, because the head of the response would occupy memory.  Returns
 * true if another time slice is needed.
 */
static bool
conn_http2_run_streams(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;
	bool more = false;

	if (ch->ch_rest != NULL) {
		h2_look(ch->ch_session);
		return false;
	}
	for (int n = 0; n < RUNS && !more; n++) {
		more = h2_run(ch->ch_session);
		if (ch->ch_in == NULL || h2_is_sated(ch->ch_session))
			break;
		(void)conn_http2_go_on(c);
	}
	return more;
}

enum next
conn_http2(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;
	enum next came, went;
	bool more, was_full;

	h2_begin_slice(ch->ch_session);
	came = conn_http2_read_frames(c);
	if (came == NEXT_CLOSE)
		return NEXT_CLOSE;
	/*
	 * Stops TIMER_IDLE if a stream is open, because a lookup may close connections in
	 * TIMER_IDLE.
	 */
	conn_http2_set_timer(c);
	conn_http2_end_grace(c);
	was_full = ch->ch_rest != NULL;
	more = conn_http2_run_streams(c);
	went = conn_http2_send_frames(c);
	if (went == NEXT_CLOSE)
		return NEXT_CLOSE;
	/* No stream ran while the socket was full, and no event follows. */
	if (was_full && ch->ch_rest == NULL)
		more = true;
	if (ch->ch_rest == NULL && h2_is_over(ch->ch_session))
		return conn_http2_end(c);
	conn_http2_set_timer(c);
	if (came == NEXT_GO || conn_http2_may_go_on(c))
		return NEXT_AGAIN;
	return conn_http2_tell_drain(c) || more || went == NEXT_AGAIN
		   ? NEXT_AGAIN
		   : NEXT_WAIT;
}

/* ---------------------------------------------------------------------- end */

void
conn_http2_late(struct conn *c, enum timer timer)
{
	struct h2 *h2 = c->cn_h2->ch_session;

	if (timer == TIMER_GRACE)
		h2_refuse(h2);
	else
		h2_fail(h2, NGHTTP2_NO_ERROR);
}

void
conn_http2_drain(struct conn *c)
{
	c->cn_h2->ch_draining = true;
	/*
	 * Makes the next step read the socket before it sends the GOAWAY: requests may have arrived
	 * whose event is still pending.
	 */
	c->cn_readable = true;
	if (c->cn_h2->ch_rest == NULL)
		conn_timer(c, TIMER_GRACE);
	sched_again(&c->cn_worker->wk_sched, &c->cn_item);
}

/* Sends the session's last frames.  Returns false if the socket has no space for all of them. */
static bool
conn_http2_send_last(struct conn *c)
{
	char data[H2_ROOM];
	size_t len = h2_gather(c->cn_h2->ch_session, data, sizeof(data));

	return len == 0 || conn_http2_send_some(c, data, len) == (long)len;
}

static bool
conn_http2_refuse_more(struct conn *c)
{
	struct h2 *h2 = c->cn_h2->ch_session;

	if (c->cn_hup || h2_is_over(h2))
		return true;
	h2_refuse(h2);
	return conn_http2_send_last(c);
}

bool
conn_http2_say_calm(struct conn *c)
{
	if (c->cn_h2->ch_rest != NULL)
		return false;
	h2_fail(c->cn_h2->ch_session, NGHTTP2_ENHANCE_YOUR_CALM);
	return conn_http2_send_last(c);
}

/*
 * Sends a GOAWAY, so that the client knows which requests the server did not process, and then a
 * close_notify.  Sends neither if a response is in flight, because an aborted response must not
 * look complete.
 */
static void
conn_http2_say_end(struct conn *c)
{
	if (c->cn_h2->ch_rest == NULL && h2_is_idle(c->cn_h2->ch_session) &&
	    conn_http2_refuse_more(c))
		transport_say_end(&c->cn_transport);
}

void
conn_http2_stop(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;

	if (ch->ch_session->h2_stopped)
		return;
	conn_http2_say_end(c);
	h2_stop(ch->ch_session);
}

void
conn_http2_free(struct conn *c)
{
	if (c->cn_h2 == NULL)
		return;
	h2_destroy(&c->cn_h2->ch_session);
	conn_http2_forget_rest(c->cn_h2);
	free(c->cn_h2->ch_in);
	free(c->cn_h2);
	c->cn_h2 = NULL;
}
