/*
 * invariants: checks the rules of conn.h while the server runs.  Compiled only with PW_DEBUG: in
 * the debug build and in the builds with sanitizers.
 */
#ifdef PW_DEBUG
#include <stdio.h>
#include <stdlib.h>

#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"
#include "server/content/autoindex_stream.h"

#define RULE(c, holds)                                               \
	do {                                                         \
		if (!(holds))                                        \
			conn_invariants_broken(c, __LINE__, #holds); \
	} while (0)

static const char *const states[] = {[CONN_PROXY] = "proxy",
    [CONN_TLS] = "tls",
    [CONN_READ] = "read",
    [CONN_LOOKUP] = "lookup",
    [CONN_SEND] = "send",
    [CONN_SKIP] = "skip",
    [CONN_HTTP2] = "http2",
    [CONN_LINGER] = "linger"};
static const char *const timers[TIMERS] = {[TIMER_NONE] = "none",
    [TIMER_HEAD] = "head",
    [TIMER_IDLE] = "idle",
    [TIMER_REST] = "rest",
    [TIMER_SEND] = "send",
    [TIMER_DISK] = "disk",
    [TIMER_CLOSED] = "closed",
    [TIMER_LINGER] = "linger",
    [TIMER_PAUSE] = "pause",
    [TIMER_GRACE] = "grace"};

static void
conn_invariants_print(const struct conn *c)
{
	fprintf(stderr,
	    "connection: state %s, timer %s, phase %d, fd %d,%s%s%s%s%s%s%s "
	    "in %zu, body %u, requests %u\n",
	    states[c->cn_state], timers[c->cn_item.it_timer],
	    (int)c->cn_item.it_phase, c->cn_transport.tr_fd,
	    c->cn_readable ? " readable," : "",
	    c->cn_writable ? " writable," : "", c->cn_hup ? " hup," : "",
	    conn_waits(c) ? " waiting," : "", c->cn_dying ? " dying," : "",
	    c->cn_item.it_queued ? " queued," : "",
	    c->cn_ex ? " exchange," : "", c->cn_in.b_len, c->cn_body.bd_left,
	    c->cn_requests);
}

static void
conn_invariants_broken(const struct conn *c, int line, const char *rule)
{
	fprintf(stderr, "invariants.c:%d: check failed: %s\n", line, rule);
	conn_invariants_print(c);
	abort();
}

/* Returns the number of pending completions of the exchange.  The caller requires 1. */
static int
conn_invariants_pending(const struct conn *c)
{
	const struct response *rs = &c->cn_ex->ex_response;

	if (c->cn_state == CONN_LOOKUP)
		return 1;
	return rs->rs_send.snd_pending +
	       (rs->rs_stream != NULL && !rs->rs_send.snd_pending);
}

static void
conn_invariants_check_shaking(const struct conn *c)
{
	RULE(c, c->cn_state == CONN_TLS && c->cn_ex == NULL);
	RULE(c, c->cn_transport.tr_tls != NULL);
	RULE(c, !c->cn_item.it_queued);
	RULE(c, c->cn_dying ? c->cn_item.it_timer == TIMER_NONE
			    : c->cn_item.it_timer == TIMER_HEAD ||
				  c->cn_item.it_timer == TIMER_GRACE);
}

static void
conn_invariants_check_waiting(const struct conn *c)
{
	if (c->cn_shaking) {
		conn_invariants_check_shaking(c);
		return;
	}
	RULE(c, c->cn_state == CONN_LOOKUP || c->cn_state == CONN_SEND);
	RULE(c, c->cn_ex != NULL);
	RULE(c, conn_invariants_pending(c) == 1);
	RULE(c, !c->cn_item.it_queued);
	RULE(c, c->cn_item.it_phase == PHASE_DISK);
	RULE(c, c->cn_ex->ex_pace.pc_since == 0);
	if (c->cn_dying) {
		RULE(c, c->cn_item.it_timer == TIMER_NONE);
		RULE(c, !c->cn_ex->ex_open);
		return;
	}
	RULE(c, c->cn_item.it_timer == TIMER_DISK ||
		    c->cn_item.it_timer == TIMER_CLOSED);
	RULE(c, c->cn_ex->ex_open);
}

static void
conn_invariants_check_read(const struct conn *c)
{
	RULE(c, c->cn_ex == NULL);
	RULE(c, body_ended(&c->cn_body));
	RULE(c, c->cn_item.it_timer == TIMER_NONE ||
		    c->cn_item.it_timer == TIMER_IDLE ||
		    c->cn_item.it_timer == TIMER_REST ||
		    c->cn_item.it_timer == TIMER_HEAD ||
		    c->cn_item.it_timer == TIMER_GRACE);
	RULE(c, c->cn_head.hd_scanned <= c->cn_in.b_len);
	if (c->cn_item.it_timer == TIMER_IDLE ||
	    c->cn_item.it_timer == TIMER_REST) {
		RULE(c, c->cn_in.b_data == NULL || c->cn_item.it_queued);
		RULE(c, c->cn_item.it_phase == PHASE_IDLE);
	}
}

static void
conn_invariants_check_send(const struct conn *c)
{
	const struct response *rs = &c->cn_ex->ex_response;

	RULE(c, c->cn_ex != NULL);
	RULE(c, c->cn_ex->ex_owner == c && c->cn_ex->ex_open);
	RULE(c, rs->rs_status >= 200);
	RULE(c, !rs->rs_send.snd_pending);
	RULE(c,
	    c->cn_item.it_timer == TIMER_NONE ||
		c->cn_item.it_timer == TIMER_SEND ||
		c->cn_item.it_timer == TIMER_PAUSE ||
		(c->cn_item.it_timer == TIMER_CLOSED && c->cn_item.it_queued));
	RULE(c, c->cn_item.it_timer != TIMER_PAUSE || c->cn_ex->ex_paced);
	/* If the socket has space, the connection is queued or paused; otherwise a timer runs. */
	RULE(c, !c->cn_writable || c->cn_item.it_queued ||
		    c->cn_item.it_timer == TIMER_PAUSE);
	RULE(c, c->cn_writable || c->cn_item.it_timer == TIMER_SEND ||
		    c->cn_item.it_timer == TIMER_PAUSE);
	RULE(c, c->cn_item.it_phase == PHASE_SEND || c->cn_item.it_queued);
}

static void
conn_invariants_check_http2(const struct conn *c)
{
	const struct conn_http2 *ch = c->cn_h2;

	RULE(c, c->cn_ex == NULL && c->cn_in.b_data == NULL);
	RULE(c, (ch->ch_rest != NULL) == (ch->ch_at < ch->ch_len));
	h2_check(ch->ch_session);
	if (c->cn_dying) {
		RULE(c, c->cn_item.it_timer == TIMER_NONE);
		RULE(c, ch->ch_session->h2_stopped && conn_http2_waits(c));
		return;
	}
	RULE(c, ch->ch_rest == NULL || c->cn_item.it_queued ||
		    c->cn_item.it_timer == TIMER_SEND);
	RULE(c, c->cn_item.it_timer == TIMER_NONE ||
		    c->cn_item.it_timer == TIMER_IDLE ||
		    c->cn_item.it_timer == TIMER_REST ||
		    c->cn_item.it_timer == TIMER_HEAD ||
		    c->cn_item.it_timer == TIMER_SEND ||
		    c->cn_item.it_timer == TIMER_GRACE);
	RULE(c, c->cn_item.it_timer != TIMER_NONE || c->cn_item.it_queued ||
		    !h2_is_idle(ch->ch_session));
}

static void
conn_invariants_check_state(const struct conn *c)
{
	switch (c->cn_state) {
	case CONN_TLS:
		RULE(c, c->cn_ex == NULL && body_ended(&c->cn_body));
		RULE(c, c->cn_transport.tr_tls != NULL);
		RULE(c, c->cn_item.it_timer == TIMER_HEAD ||
			    c->cn_item.it_timer == TIMER_GRACE ||
			    c->cn_item.it_queued);
		RULE(c,
		    c->cn_item.it_queued ||
			(c->cn_item.it_phase == PHASE_TLS) == conn_shakes(c));
		break;
	case CONN_PROXY:
		RULE(c, c->cn_ex == NULL && body_ended(&c->cn_body));
		RULE(c, c->cn_requests == 0);
		RULE(c, c->cn_item.it_timer == TIMER_HEAD ||
			    c->cn_item.it_timer == TIMER_GRACE ||
			    c->cn_item.it_queued);
		RULE(c, c->cn_item.it_phase == PHASE_HEAD);
		break;
	case CONN_READ:
		conn_invariants_check_read(c);
		break;
	case CONN_LOOKUP:
		/* The lookup is complete, and the connection must wait for its time slice. */
		RULE(c, c->cn_item.it_queued);
		break;
	case CONN_SEND:
		conn_invariants_check_send(c);
		break;
	case CONN_SKIP:
		RULE(c, c->cn_ex == NULL && !body_ended(&c->cn_body));
		RULE(c, c->cn_item.it_timer == TIMER_HEAD);
		RULE(c, c->cn_item.it_phase == PHASE_BODY);
		break;
	case CONN_HTTP2:
		conn_invariants_check_http2(c);
		break;
	case CONN_LINGER:
		RULE(c, c->cn_ex == NULL && c->cn_in.b_data == NULL);
		RULE(c, c->cn_item.it_timer == TIMER_LINGER ||
			    c->cn_item.it_timer == TIMER_GRACE);
		RULE(c, c->cn_item.it_phase == PHASE_LINGER);
		break;
	}
}

void
conn_check(const struct conn *c)
{
	const struct worker *wk = c->cn_worker;

	RULE(c, !c->cn_dying || conn_waits(c) || conn_http2_waits(c));
	RULE(c, c->cn_dying || c->cn_transport.tr_fd >= 0);
	RULE(c, c->cn_item.it_timer != TIMER_GRACE || wk->wk_draining);
	RULE(c, c->cn_dying == !event_pending(&c->cn_event,
				   EV_READ | EV_WRITE | EV_CLOSED, NULL));
	/*
	 * A connection that is not queued and has no timer is dying, or uses HTTP/2, whose streams
	 * have timers.
	 */
	RULE(c, c->cn_item.it_timer != TIMER_NONE || c->cn_item.it_queued ||
		    c->cn_dying || c->cn_state == CONN_HTTP2);
	RULE(c,
	    wk->wk_service.svc_conf->conf_max_requests == 0 ||
		c->cn_requests <= wk->wk_service.svc_conf->conf_max_requests);
	RULE(c, (c->cn_client != NULL) ==
		    (wk->wk_service.svc_conf->conf_max_per_address > 0 &&
			!conf_trusts(wk->wk_service.svc_conf, &c->cn_peer.sa) &&
			c->cn_peer.sa.sa_family != AF_UNIX));
	if (conn_waits(c))
		conn_invariants_check_waiting(c);
	else if (!c->cn_dying || c->cn_state == CONN_HTTP2)
		conn_invariants_check_state(c);
}
#else
typedef int conn_check_is_empty; /* ISO C requires a declaration */
#endif
