/*
 * handshake: starts a TLS connection.  The loop runs short steps of a handshake, and the first one
 * while it has time.  Threads run all other steps (handshaker.h); the connection waits for such a
 * step as for a disk.
 */
#include <errno.h>

#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"
#include "server/tls/handshaker.h"
#include "server/tls/session.h"
#include "server/util/client_key.h"

static const char refusal[] =
    "400 Bad Request: this port accepts only HTTPS: use https://\n";
static const struct str plain = {
    .s_ptr = refusal, .s_len = sizeof(refusal) - 1};

bool
conn_open(struct conn *c)
{
	c->cn_state = c->cn_secure ? CONN_TLS : CONN_READ;
	return !c->cn_secure ||
	       transport_start_tls(&c->cn_transport, c->cn_worker->wk_tls);
}

bool
conn_shakes(const struct conn *c)
{
	return c->cn_shaking || c->cn_transport.tr_tls->tl_state != TLS_HELLO;
}

static void
conn_handshake_count(struct conn *c, enum handshake_end end)
{
	counter_add(&c->cn_worker->wk_service.svc_stats.sta_handshakes[end], 1);
}

/* Resets a connection because too many handshakes wait or memory is short. */
static enum next
conn_handshake_refuse(struct conn *c)
{
	conn_handshake_count(c, HANDSHAKE_BUSY);
	transport_forget(&c->cn_transport);
	return NEXT_CLOSE;
}

static enum next
conn_handshake_compute(struct conn *c, void (*done)(struct pw_waiter *))
{
	struct worker *wk = c->cn_worker;
	struct tls *tl = c->cn_transport.tr_tls;
	uint64_t client = client_key(&c->cn_peer.sa);

	tl->tl_owner = c;
	tl->tl_handshake.hk_waiter.wt_done = done;
	if (!handshaker_submit(wk->wk_handshaker, wk->wk_service.svc_loop,
		&tl->tl_handshake,
		client_network(client, client_levels(client) - 1)))
		return conn_handshake_refuse(c);
	/* From now until the completion, tl belongs to a handshaker thread. */
	c->cn_shaking = true;
	c->cn_readable = false;
	return NEXT_WAIT;
}

void
conn_handshake_take_back(struct conn *c)
{
	if (c->cn_shaking &&
	    handshaker_take_back(&c->cn_transport.tr_tls->tl_handshake))
		c->cn_shaking = false;
}

static enum next
conn_handshake_compute_here(struct conn *c)
{
	c->cn_readable = false;
	tls_step_here(c->cn_transport.tr_tls);
	return NEXT_GO;
}

static enum next
conn_handshake_respond_plain(struct conn *c)
{
	conn_handshake_count(c, HANDSHAKE_PLAIN);
	transport_stop_tls(&c->cn_transport);
	c->cn_secure = false;
	conn_timer(c, TIMER_NONE);
	if (!conn_begin(c))
		return NEXT_CLOSE;
	c->cn_ex->ex_request.rq_keepalive = false;
	exchange_refuse_text(c->cn_ex, 400, plain);
	c->cn_state = CONN_SEND;
	return NEXT_GO;
}

static enum next
conn_handshake_begin_requests(struct conn *c)
{
	const struct tls *tl = c->cn_transport.tr_tls;

	conn_handshake_count(
	    c, tls_is_resumed(tl) ? HANDSHAKE_RESUMED : HANDSHAKE_FULL);
	pw_histogram_add(&c->cn_worker->wk_service.svc_stats.sta_handshake_time,
	    tl->tl_log.lt_handshake);
	transport_tls_opened(&c->cn_transport);
	c->cn_state = CONN_READ;
	/* The session may already hold the bytes of the first request. */
	c->cn_readable = c->cn_writable = true;
	conn_patience(c, TIMER_HEAD);
	return tl->tl_http2 ? conn_begin_http2(c) : NEXT_GO;
}

/* Counts the failed handshake.  Lingers, so that the client can read the alert. */
static enum next
conn_handshake_fail(struct conn *c)
{
	static const enum handshake_end ends[TLS_FAILURES] = {
	    [TLS_FAILURE_ALERT] = HANDSHAKE_ALERT,
	    [TLS_FAILURE_NONE_SHARED] = HANDSHAKE_NOTHING,
	    [TLS_FAILURE_CERTIFICATE] = HANDSHAKE_VERIFY,
	    [TLS_FAILURE_CLOSED] = HANDSHAKE_CLOSED,
	    [TLS_FAILURE_BROKEN] = HANDSHAKE_BROKEN,
	    [TLS_FAILURE_OURS] = HANDSHAKE_INTERNAL,
	};

	conn_handshake_count(c, ends[c->cn_transport.tr_tls->tl_failure]);
	return conn_linger(c);
}

/* Runs a step that is due. */
static enum next
conn_handshake_step(struct conn *c, void (*done)(struct pw_waiter *))
{
	const struct tls *tl = c->cn_transport.tr_tls;
	bool begins = tl->tl_state == TLS_HELLO;

	if (begins && conn_lacks_memory(c))
		return conn_handshake_refuse(c);
	/* A handshake that begins during a drain gets the full timeout. */
	if (begins && c->cn_worker->wk_draining)
		conn_timer(c, TIMER_HEAD);
	return tls_step_is_short(tl) ||
		       (begins && worker_has_time(c->cn_worker))
		   ? conn_handshake_compute_here(c)
		   : conn_handshake_compute(c, done);
}

enum next
conn_handshake(struct conn *c, void (*done)(struct pw_waiter *))
{
	const struct tls *tl = c->cn_transport.tr_tls;

	if (tl->tl_state == TLS_OPEN)
		return conn_handshake_begin_requests(c);
	if (tl->tl_state == TLS_FAILED)
		return conn_handshake_fail(c);
	if (tl->tl_state == TLS_WANT_READ && !c->cn_readable)
		return NEXT_WAIT;
	/* A short step finds out at the cost of a poll whether it is due. */
	switch (tls_step_is_short(tl) ? 0 : tls_awaits(tl)) {
	case 0:
		return conn_handshake_step(c, done);
	case -EAGAIN:
		return NEXT_WAIT;
	case -EPROTO:
		return conn_handshake_respond_plain(c);
	default:
		if (tl->tl_state != TLS_HELLO)
			conn_handshake_count(c, HANDSHAKE_CLOSED);
		return NEXT_CLOSE;
	}
}
