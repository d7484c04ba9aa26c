/*
 * conn: runs a connection step by step: reads a head, finds the file, sends the response, discards
 * the body, and reads the next head.  Input is in read.c, output in send.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"

#define REQUESTS_PER_SLICE 16

/* -------------------------------------------------------------- the end */

static void
conn_free(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	exchange_free(&c->cn_ex);
	conn_http2_free(c);
	conn_timer(c, TIMER_NONE);
	buf_release(&c->cn_in, conn_bufs(c));
	if (!c->cn_dying) {
		event_del(&c->cn_event);
		limits_leave(wk->wk_clients, c->cn_client);
	}
	unacked_forget(&wk->wk_unacked, &c->cn_unacked);
	transport_destroy(&c->cn_transport);
	worker_removed(wk, &c->cn_item);
	free(c);
}

void
conn_close(struct conn *c)
{
	conn_handshake_take_back(c);
	/*
	 * Here no response is in flight, so the server sends a close_notify, even if a timeout or
	 * the worker closes the connection.
	 */
	if (c->cn_state == CONN_READ || c->cn_state == CONN_SKIP)
		transport_say_end(&c->cn_transport);
	if (c->cn_h2 != NULL)
		conn_http2_stop(c);
	if (!conn_waits(c) && !conn_http2_waits(c))
		conn_free(c);
	else if (!c->cn_dying)
		conn_abort(c);
}

/*
 * Evicts the connection.  HTTP/2 sends a GOAWAY if the socket has space for one.  Otherwise the
 * close is a reset, and the kernel discards all unsent data.
 */
static void
conn_evict(void *arg)
{
	struct conn *c = arg;

	if (c->cn_h2 == NULL || !conn_http2_say_calm(c))
		transport_forget(&c->cn_transport);
	conn_close(c);
}

/* ------------------------------------------------------------ completions */

/* Queues the connection after its completion, or frees it if it is dying. */
static void
conn_resume(struct conn *c)
{
	if (c->cn_dying)
		conn_free(c);
	else
		sched_again(&c->cn_worker->wk_sched, &c->cn_item);
}

static void
conn_on_resumed(struct exchange *ex)
{
	struct conn *c = ex->ex_owner;

	if (!c->cn_dying && c->cn_item.it_timer != TIMER_CLOSED)
		conn_timer(c, TIMER_NONE);
	conn_resume(c);
}

static void
conn_on_step(struct pw_waiter *w)
{
	struct conn *c = tls_of_waiter(w)->tl_owner;

	c->cn_shaking = false;
	conn_resume(c);
}

/*
 * Queues the connection if one of its HTTP/2 streams can continue.  Frees a dying connection after
 * the last completion of its streams.
 */
static void
conn_on_session_wake(void *arg)
{
	struct conn *c = arg;

	if (!c->cn_dying || !conn_http2_waits(c))
		conn_resume(c);
}

/* ------------------------------------------------------------- the machine */

static enum next
conn_step(struct conn *c)
{
	switch (c->cn_state) {
	case CONN_READ:
		return conn_read(c);
	case CONN_SEND:
		return conn_send(c);
	case CONN_SKIP:
		return conn_skip(c);
	case CONN_LINGER:
		if (c->cn_ending)
			c->cn_ending =
			    transport_end(&c->cn_transport) == -EAGAIN;
		return conn_discard(c);
	case CONN_LOOKUP:
		return conn_look(c);
	case CONN_PROXY:
		return conn_proxy(c);
	case CONN_TLS:
		return conn_handshake(c, conn_on_step);
	case CONN_HTTP2:
		return conn_http2(c);
	}
	return NEXT_CLOSE;
}

static enum phase
conn_phase_of_streams(const struct h2 *h2)
{
	if (h2_is_idle(h2))
		return PHASE_IDLE;
	return h2->h2_pending == h2->h2_count ? PHASE_DISK : PHASE_SEND;
}

static enum phase
conn_other_phase(const struct conn *c)
{
	switch (c->cn_state) {
	case CONN_TLS:
		return conn_shakes(c) ? PHASE_TLS : PHASE_HEAD;
	case CONN_PROXY:
		return PHASE_HEAD;
	case CONN_READ:
		return c->cn_item.it_timer == TIMER_NONE ||
			       c->cn_item.it_timer == TIMER_HEAD
			   ? PHASE_HEAD
			   : PHASE_IDLE;
	case CONN_LOOKUP:
		return PHASE_DISK;
	case CONN_SEND:
		return conn_waits(c) ? PHASE_DISK : PHASE_SEND;
	case CONN_SKIP:
		return PHASE_BODY;
	case CONN_HTTP2:
		return conn_phase_of_streams(c->cn_h2->ch_session);
	case CONN_LINGER:
		break;
	}
	return PHASE_LINGER;
}

/* Returns the phase.  Inlines the most frequent case: a connection between two requests. */
static inline enum phase
conn_phase(const struct conn *c)
{
	return c->cn_state == CONN_READ && c->cn_item.it_timer == TIMER_IDLE
		   ? PHASE_IDLE
		   : conn_other_phase(c);
}

static void
conn_count_phase(struct conn *c)
{
	_Atomic uint64_t *counts = c->cn_worker->wk_service.svc_stats.sta_phase;
	enum phase now = conn_phase(c);

	if (now == c->cn_item.it_phase)
		return;
	counter_add(&counts[c->cn_item.it_phase], -(uint64_t)1);
	counter_add(&counts[now], 1);
	c->cn_item.it_phase = now;
}

static void
conn_run(struct conn *c)
{
	enum next next = NEXT_GO;
	int n;

	if (conn_waits(c) || c->cn_dying)
		return;
	c->cn_slice_sent = 0;
	for (n = 0; next == NEXT_GO && n < 2 * REQUESTS_PER_SLICE; n++)
		next = conn_step(c);
	conn_count_phase(c);
	if (worker_may_look(c->cn_worker))
		worker_look(
		    c->cn_worker, &c->cn_unacked, c->cn_transport.tr_fd);
	switch (next) {
	case NEXT_GO:
	case NEXT_AGAIN:
		sched_again(&c->cn_worker->wk_sched, &c->cn_item);
		break;
	case NEXT_WAIT:
		break;
	case NEXT_CLOSE:
		conn_close(c);
		return;
	}
	conn_check(c);
}

/*
 * Returns true if the connection must close after this response: the worker drains, and the client
 * has pipelined no further request or the grace period has ended.
 */
static bool
conn_is_last(const struct exchange *ex)
{
	const struct conn *c = ex->ex_owner;
	const struct worker *wk = c->cn_worker;

	return wk->wk_draining && (c->cn_in.b_len <= c->cn_head.hd_len ||
				      clock_now() >= wk->wk_drain_until);
}

static bool
conn_send_now(struct exchange *ex, const char *text, size_t len)
{
	struct conn *c = ex->ex_owner;

	return transport_send(&c->cn_transport, text, len) == (long)len;
}

static const struct conn_ops conn_ops = {
    .co_exchange = {.resumed = conn_on_resumed,
	.last = conn_is_last,
	.send_now = conn_send_now},
    .co_wake = conn_on_session_wake,
    .co_evict = conn_evict};

/*
 * Handles an edge of the socket.  Downloads in progress are queued, so that each sends one time
 * slice per loop iteration.  Other connections run at once, unless this loop iteration is already
 * long: thousands of clients may close at the same moment, and each close takes 15 us.
 */
static void
conn_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	worker_lap(c->cn_worker, LOOP_EVENTS);
	if (what & (EV_READ | EV_CLOSED)) {
		c->cn_readable = true;
		c->cn_drained = false;
	}
	if (what & EV_CLOSED)
		c->cn_hup = true;
	if (what & EV_WRITE)
		c->cn_writable = true;
	if (c->cn_writable && c->cn_item.it_timer == TIMER_SEND)
		min_rate_room(c);
	conn_handshake_take_back(c);
	if (conn_waits(c) || c->cn_item.it_queued) {
		if ((what & (EV_READ | EV_CLOSED)) && c->cn_ex != NULL &&
		    c->cn_ex->ex_pending && !conn_client_stays(c))
			conn_close(c);
		return;
	}
	/*
	 * Closes a reset connection at once, so that other connections get its share of the rate.
	 */
	if (c->cn_item.it_timer == TIMER_PAUSE) {
		if ((what & EV_READ) && transport_is_broken(&c->cn_transport))
			conn_close(c);
		return;
	}
	if (c->cn_state == CONN_SEND || worker_late(c->cn_worker))
		sched_again(&c->cn_worker->wk_sched, &c->cn_item);
	else
		conn_run(c);
}

/* Sends 408 to a client that has sent an incomplete request (RFC 9110, 15.5.9). */
static void
conn_refuse_late(struct conn *c)
{
	if (conn_refuse_head(c, 408) == NEXT_CLOSE)
		conn_close(c);
	else
		conn_run(c);
}

/*
 * Closes an idle connection at the end of the grace period, unless a request has arrived.  An
 * incomplete PROXY header does not count as a request.  A client that has sent a part of a TLS
 * record gets TIMER_HEAD once to send the rest.
 */
static void
conn_end_idle(struct conn *c, enum timer timer)
{
	bool news = c->cn_state == CONN_PROXY
			? conn_has_news(c)
			: !transport_nothing_came(&c->cn_transport);

	if (!news && timer != TIMER_HEAD && c->cn_state == CONN_READ &&
	    transport_has_part(&c->cn_transport))
		conn_timer(c, TIMER_HEAD);
	else if (!news && conn_linger(c) == NEXT_CLOSE)
		conn_close(c);
	else
		conn_run(c);
}

/*
 * Restarts the timer while the client acknowledges the last response fast enough.  When no data is
 * left, TIMER_IDLE follows TIMER_REST.  Returns false if the connection must close.
 */
static bool
conn_extend_rest(struct conn *c, enum timer timer)
{
	switch (min_rate_rest(c)) {
	case REST_SOME:
		conn_patience(c, timer);
		return true;
	case REST_LOST:
		return false;
	case REST_NONE:
		break;
	}
	if (timer == TIMER_REST) {
		conn_patience(c, TIMER_IDLE);
		return true;
	}
	counter_add(&c->cn_worker->wk_service.svc_stats.sta_timeout[timer], 1);
	return false;
}

static bool
conn_extend_time(struct conn *c, enum timer timer)
{
	switch (timer) {
	case TIMER_SEND:
		return min_rate_late(c);
	case TIMER_REST:
	case TIMER_IDLE:
	case TIMER_LINGER:
		return conn_extend_rest(c, timer);
	case TIMER_GRACE:
		return false;
	default:
		counter_add(
		    &c->cn_worker->wk_service.svc_stats.sta_timeout[timer], 1);
		return false;
	}
}

static struct conn *
conn_of(const struct sched_item *it)
{
	return (struct conn *)(void *)(uintptr_t)it;
}

/* Returns true if the connection waits for a request, or for a PROXY header. */
static bool
conn_is_reading(const struct conn *c)
{
	return c->cn_state == CONN_READ || c->cn_state == CONN_PROXY;
}

static void
conn_on_slice(struct sched_item *it)
{
	conn_run(conn_of(it));
}

static void
conn_handshake_late(struct conn *c)
{
	struct stats *sta = &c->cn_worker->wk_service.svc_stats;

	counter_add(&sta->sta_timeout[TIMER_HEAD], 1);
	counter_add(&sta->sta_handshakes[HANDSHAKE_TIMEOUT], 1);
	conn_close(c);
}

/*
 * Returns true if the loop is late: the connection is on the run queue, so the loop has not yet read the input that
 * the timer waits for, or not yet sent the response to a client that closed its side.  A timer for input starts
 * again, once for each request.
 */
static bool
conn_loop_is_late(struct conn *c, enum timer timer)
{
	bool input = timer == TIMER_HEAD || timer == TIMER_IDLE ||
		     timer == TIMER_REST || timer == TIMER_GRACE;

	if (!c->cn_item.it_queued)
		return false;
	if (timer == TIMER_CLOSED)
		return true;
	if (!input || c->cn_spared || c->cn_state == CONN_LINGER)
		return false;
	c->cn_spared = true;
	conn_timer(c, timer);
	return true;
}

static void
conn_on_timeout(struct sched_item *it, enum timer timer)
{
	struct conn *c = conn_of(it);

	if (conn_loop_is_late(c, timer))
		return;
	if (c->cn_state == CONN_TLS)
		conn_handshake_late(c);
	else if (conn_waits(c))
		conn_give_up(c, timer);
	else if (conn_extend_time(c, timer))
		return;
	else if (c->cn_state == CONN_HTTP2 && timer != TIMER_SEND) {
		conn_http2_late(c, timer);
		conn_run(c);
	} else if (!conn_is_reading(c))
		conn_close(c);
	else if (c->cn_in.b_len > 0 && c->cn_state == CONN_READ)
		conn_refuse_late(c);
	else if (c->cn_worker->wk_draining)
		conn_end_idle(c, timer);
	else
		conn_close(c);
}

/*
 * Starts the grace period of an idle connection.  A request that arrives during the grace period
 * still gets a response, with "Connection: close" (RFC 9112, 9.6).
 */
static void
conn_on_drain(struct sched_item *it)
{
	struct conn *c = conn_of(it);

	if (c->cn_dying)
		return;
	if (c->cn_state == CONN_HTTP2)
		conn_http2_drain(c);
	else if (c->cn_state == CONN_LINGER ||
		 (conn_is_reading(c) && c->cn_in.b_len == 0) ||
		 (c->cn_state == CONN_TLS && !conn_shakes(c)))
		conn_timer(c, TIMER_GRACE);
}

static void
conn_on_close(struct sched_item *it)
{
	conn_close(conn_of(it));
}

static uint64_t
conn_unacked(const struct sched_item *it)
{
	const struct conn *c = conn_of(it);

	/*
	 * A connection with open streams is not idle.  One of its streams may even need the
	 * descriptor that the worker tries to free.
	 */
	if (c->cn_h2 != NULL && h2_is_responding(c->cn_h2->ch_session))
		return UINT64_MAX;
	return conn_has_news(c) ? UINT64_MAX
				: transport_unacked(&c->cn_transport);
}

static enum hoard_progress
conn_progress(const struct sched_item *it)
{
	const struct conn *c = conn_of(it);
	bool shakes = c->cn_state == CONN_TLS ? conn_shakes(c) : c->cn_secure;
	bool part = c->cn_in.b_len > 0 ||
		    (c->cn_state != CONN_TLS && !conn_is_reading(c));

	if (c->cn_state == CONN_PROXY || !shakes)
		return part ? HOARD_PART : HOARD_SILENT;
	return part ? HOARD_SECURE_PART : HOARD_HANDSHAKE;
}

static const struct sockaddr *
conn_peer(const struct sched_item *it)
{
	return &conn_of(it)->cn_peer.sa;
}

/*
 * Closes an idle connection, so that a new connection gets its slot.  The kernel discards unsent
 * data.
 */
static void
conn_on_reclaim(struct sched_item *it)
{
	struct conn *c = conn_of(it);

	counter_add(&c->cn_worker->wk_service.svc_stats.sta_reclaimed, 1);
	if (transport_unacked(&c->cn_transport) > 0)
		transport_forget(&c->cn_transport);
	conn_close(c);
}

static void
conn_on_reset(struct sched_item *it)
{
	struct conn *c = conn_of(it);

	counter_add(&c->cn_worker->wk_service.svc_stats.sta_evicted, 1);
	transport_forget(&c->cn_transport);
	conn_close(c);
}

static unsigned
conn_responses(const struct sched_item *it)
{
	const struct conn *c = conn_of(it);

	return c->cn_h2 != NULL ? c->cn_h2->ch_session->h2_open : 1;
}

static uint64_t
conn_sent_ago(const struct sched_item *it)
{
	return os_sent_ago(conn_of(it)->cn_transport.tr_fd);
}

static void
conn_on_evict(struct sched_item *it)
{
	conn_evict(conn_of(it));
}

#ifdef PW_DEBUG
static void
conn_on_check(const struct sched_item *it)
{
	conn_check(conn_of(it));
}
#endif

static const struct sched_ops sched_ops = {
    .run = conn_on_slice,
    .timeout = conn_on_timeout,
    .drain = conn_on_drain,
    .close = conn_on_close,
    .unacked = conn_unacked,
    .progress = conn_progress,
    .peer = conn_peer,
    .reclaim = conn_on_reclaim,
    .reset = conn_on_reset,
    .responses = conn_responses,
    .sent_ago = conn_sent_ago,
    .evict = conn_on_evict,
#ifdef PW_DEBUG
    .check = conn_on_check,
#endif
};

/*
 * Enters the first state of a connection that the listener accepted.  Returns false if memory is
 * short.
 */
static bool
conn_set_state(struct conn *c, const struct listening *ls)
{
	c->cn_secure = ls->ls_secure;
	c->cn_state = CONN_PROXY;
	return ls->ls_proxied || conn_open(c);
}

void
conn_create(struct listening *ls, int fd, const struct sockaddr *peer,
    struct client *client)
{
	struct worker *wk = ls->ls_worker;
	struct conn *c;

	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		limits_leave(wk->wk_clients, client);
		close(fd);
		return;
	}
	c->cn_worker = wk;
	c->cn_item.it_ops = &sched_ops;
	c->cn_ops = &conn_ops;
	transport_open(&c->cn_transport, fd);
	c->cn_client = client;
	c->cn_writable = true;
	memcpy(&c->cn_peer, peer, sizeof(c->cn_peer));
	conn_know_peer(c);
	event_assign(&c->cn_event, wk->wk_base, fd,
	    EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, conn_on_event,
	    c);
	if (!conn_set_state(c, ls) || event_add(&c->cn_event, NULL) != 0) {
		limits_leave(wk->wk_clients, client);
		transport_destroy(&c->cn_transport);
		free(c);
		return;
	}
	c->cn_item.it_phase = conn_phase(c);
	worker_added(wk, &c->cn_item);
	conn_patience(c, TIMER_HEAD);
}
