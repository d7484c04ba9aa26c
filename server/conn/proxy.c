/*
 * proxy: reads the PROXY header at the start of a connection (listen = {"... proxy"}).  Afterwards
 * the server treats the connection as if the client named in the header had made it.
 */
#include <errno.h>

#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"
#include "server/http/proxy_header.h"
#include "server/util/sockaddr_text.h"
#include "server/worker/listener.h"

static void
conn_proxy_tell(struct conn *c, const char *what)
{
	struct worker *wk = c->cn_worker;
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell_of(wk->wk_service.svc_told, TOLD_PROXY,
		clock_now(), &c->cn_peer.sa, text))
		return;
	log_warn(wk->wk_service.svc_log,
	    "closed a connection from %s: %s; have this proxy send a PROXY "
	    "header, or remove \"proxy\" from listen",
	    text, what);
}

/*
 * Makes the named client the peer, and counts the connection for this client: see listener_enter.
 */
static enum next
conn_proxy_take_over(struct conn *c, const union sockaddr_any *client)
{
	c->cn_peer = *client;
	conn_know_peer(c);
	if (listener_enter(c->cn_worker, &c->cn_peer.sa, &c->cn_client) == 0)
		return NEXT_GO;
	transport_forget(&c->cn_transport);
	return NEXT_CLOSE;
}

/*
 * Reads the header without removing it, so that the bytes behind the header stay in the socket for
 * the TLS handshake.
 */
static enum next
conn_proxy_look_ahead(struct conn *c)
{
	struct buf *in = &c->cn_in;
	size_t before = in->b_len;
	long n = transport_peek(&c->cn_transport, in->b_data, in->b_cap);

	if (n == 0 || (n < 0 && n != -EAGAIN))
		return NEXT_CLOSE;
	in->b_len = n > 0 ? (size_t)n : 0;
	if (in->b_len > before)
		return NEXT_GO;
	/* Only cn_hup shows the close, since a peek returns old bytes. */
	return c->cn_hup ? NEXT_CLOSE : NEXT_WAIT;
}

static enum next
conn_proxy_receive_some(struct conn *c)
{
	struct buf *in = &c->cn_in;
	enum next next;
	size_t got;

	if (c->cn_secure)
		return conn_proxy_look_ahead(c);
	next = conn_receive(
	    c, in->b_data + in->b_len, in->b_cap - in->b_len, &got);
	in->b_len += got;
	return next;
}

static enum next
conn_proxy_receive_more(struct conn *c)
{
	struct buf *in = &c->cn_in;
	enum next next;

	if (!buf_reserve(in, conn_bufs(c), PROXY_HEADER_MAX))
		return NEXT_CLOSE;
	next = conn_proxy_receive_some(c);
	if (next != NEXT_WAIT)
		return next;
	/* Frees the buffer of a client that has sent nothing. */
	if (in->b_len == 0)
		buf_release(in, conn_bufs(c));
	/*
	 * Starts a timer if none runs.  This happens if the grace period has ended, and
	 * conn_end_idle has run this step because input had arrived.
	 */
	if (c->cn_item.it_timer == TIMER_NONE)
		conn_patience(c, TIMER_HEAD);
	return NEXT_WAIT;
}

static bool
conn_proxy_skip(struct conn *c, size_t len)
{
	struct buf *in = &c->cn_in;

	if (c->cn_secure)
		return transport_skip(&c->cn_transport, in->b_data, len) ==
		       (long)len;
	buf_consume(in, len);
	return true;
}

/* Reads the PROXY header.  Ignores the header of an untrusted peer, which need not send one. */
enum next
conn_proxy(struct conn *c)
{
	bool trusted =
	    conf_trusts(c->cn_worker->wk_service.svc_conf, &c->cn_peer.sa);
	union sockaddr_any client;
	size_t len = 0;

	switch (
	    proxy_header_read(c->cn_in.b_data, c->cn_in.b_len, &len, &client)) {
	case PROXY_MORE:
		return conn_proxy_receive_more(c);
	case PROXY_NONE:
		if (trusted) {
			conn_proxy_tell(c, "the PROXY header is missing");
			return NEXT_CLOSE;
		}
		break;
	case PROXY_BROKEN:
		if (trusted)
			conn_proxy_tell(c, "the PROXY header is malformed");
		return NEXT_CLOSE;
	case PROXY_DONE:
		if (!conn_proxy_skip(c, len))
			return NEXT_CLOSE;
		break;
	}
	if (c->cn_secure)
		buf_release(&c->cn_in, conn_bufs(c));
	if (!conn_open(c))
		return NEXT_CLOSE;
	return trusted && client.sa.sa_family != AF_UNSPEC
		   ? conn_proxy_take_over(c, &client)
		   : NEXT_GO;
}
