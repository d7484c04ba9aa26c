/*
 * preface: switches a connection to HTTP/2.
 */
#include <stdlib.h>
#include <string.h>

#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"

#define PREFACE "PRI * HTTP/2.0"

bool
conn_speaks_http2(const struct conn *c)
{
	const struct buf *in = &c->cn_in;
	size_t len = sizeof(PREFACE) - 1;

	return c->cn_requests == 0 && !c->cn_secure &&
	       c->cn_worker->wk_service.svc_conf->conf_http2 &&
	       in->b_len >= len && memcmp(in->b_data, PREFACE, len) == 0;
}

static struct h2 *
conn_preface_new_session(struct conn *c)
{
	const struct h2_owner ho = {
	    .ho_wake = c->cn_ops->co_wake,
	    .ho_evict = c->cn_ops->co_evict,
	    .ho_arg = c,
	    .ho_worker = c->cn_worker,
	    .ho_peer = &c->cn_peer.sa,
	    .ho_tls = c->cn_transport.tr_tls,
	    .ho_bucket = &c->cn_bucket,
	    .ho_fd = c->cn_transport.tr_fd,
	    .ho_proxied = c->cn_proxied,
	};

	return h2_create(&ho);
}

enum next
conn_begin_http2(struct conn *c)
{
	struct conn_http2 *ch = calloc(1, sizeof(*ch));

	if (ch == NULL)
		return NEXT_CLOSE;
	ch->ch_session = conn_preface_new_session(c);
	if (ch->ch_session == NULL) {
		free(ch);
		return NEXT_CLOSE;
	}
	c->cn_h2 = ch;
	c->cn_state = CONN_HTTP2;
	(void)conn_http2_give(c, c->cn_in.b_data, c->cn_in.b_len);
	buf_release(&c->cn_in, conn_bufs(c));
	c->cn_head = (struct head){0};
	if (c->cn_worker->wk_draining)
		h2_drain(ch->ch_session);
	if (c->cn_worker->wk_short)
		h2_refuse(ch->ch_session);
	return NEXT_GO;
}
