/* state: functions on the state of a connection, for several files. */
#include <errno.h>
#include <limits.h>

#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"

void
conn_patience(struct conn *c, enum timer timer)
{
	struct worker *wk = c->cn_worker;

	conn_timer(c, wk->wk_draining ? TIMER_GRACE : timer);
}

enum next
conn_ended(const struct conn *c)
{
	bool more = c->cn_in.b_len > 0 || c->cn_readable;

	return more && c->cn_slice_sent > RESPONSE_SLICE ? NEXT_AGAIN : NEXT_GO;
}

void
conn_know_peer(struct conn *c)
{
	const struct conf *conf = c->cn_worker->wk_service.svc_conf;

	c->cn_proxied = conf->conf_client_address != FORWARDED_OFF &&
			conf_trusts(conf, &c->cn_peer.sa);
}

bool
conn_begin(struct conn *c)
{
	c->cn_ex = exchange_create(
	    &c->cn_worker->wk_service, &c->cn_ops->co_exchange, c);
	if (c->cn_ex == NULL)
		return false;
	c->cn_ex->ex_peer = &c->cn_peer.sa;
	c->cn_ex->ex_sock = c->cn_transport.tr_fd;
	c->cn_ex->ex_sink = c->cn_transport.tr_sink;
	c->cn_ex->ex_tls = c->cn_transport.tr_tls;
	c->cn_ex->ex_proxied = c->cn_proxied;
	c->cn_ex->ex_rate = c->cn_rate;
	c->cn_ex->ex_bucket = &c->cn_bucket;
	return true;
}

unsigned
conn_requests_left(const struct conn *c)
{
	unsigned max = c->cn_worker->wk_service.svc_conf->conf_max_requests;

	return max == 0 ? UINT_MAX : max - c->cn_requests;
}

void
conn_await_disk(struct conn *c)
{
	if (c->cn_item.it_timer != TIMER_CLOSED)
		conn_timer(c, TIMER_DISK);
	exchange_wait(c->cn_ex);
}

/*
 * Waits for the client to read the rest of the response and our FIN, and then to close (RFC 9112,
 * 9.6).  Closing at once with unread input would cause a reset, which destroys the response.
 */
enum next
conn_linger(struct conn *c)
{
	int error = transport_end(&c->cn_transport);

	c->cn_ending = error == -EAGAIN;
	if (error != 0 && !c->cn_ending)
		return NEXT_CLOSE;
	buf_release(&c->cn_in, conn_bufs(c));
	c->cn_state = CONN_LINGER;
	c->cn_left = 0;
	conn_patience(c, TIMER_LINGER);
	return NEXT_GO;
}

/* Returns true if the handshake belongs to a handshaker thread now. */
static bool
conn_computes(const struct conn *c)
{
	return c->cn_shaking &&
	       !handshaker_rests(&c->cn_transport.tr_tls->tl_handshake);
}

bool
conn_has_news(const struct conn *c)
{
	if (c->cn_state == CONN_TLS)
		return !conn_computes(c) &&
		       tls_awaits(c->cn_transport.tr_tls) != -EAGAIN;
	if (c->cn_state == CONN_PROXY && c->cn_secure)
		return transport_has_more(&c->cn_transport, c->cn_in.b_len);
	return !transport_nothing_came(&c->cn_transport);
}
