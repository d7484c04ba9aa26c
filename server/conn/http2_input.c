/*
 * http2_input: stores received frames that the session does not accept yet, because it has read
 * H2_REQUESTS requests in this time slice, or the heads of its streams occupy too much memory.
 */
#include <stdlib.h>
#include <string.h>

#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"

bool
conn_http2_give(struct conn *c, const char *data, size_t len)
{
	struct conn_http2 *ch = c->cn_h2;
	size_t taken;

	if (!h2_receive(ch->ch_session, data, len, &taken))
		return false;
	if (taken == len)
		return true;
	ch->ch_in = malloc(len - taken);
	if (ch->ch_in == NULL) {
		h2_break(ch->ch_session);
		return false;
	}
	memcpy(ch->ch_in, data + taken, len - taken);
	ch->ch_in_at = 0;
	ch->ch_in_len = len - taken;
	return true;
}

static void
conn_http2_input_forget_in(struct conn_http2 *ch)
{
	free(ch->ch_in);
	ch->ch_in = NULL;
}

bool
conn_http2_go_on(struct conn *c)
{
	struct conn_http2 *ch = c->cn_h2;
	size_t taken;

	if (ch->ch_in == NULL)
		return true;
	if (h2_is_sated(ch->ch_session))
		return false;
	if (!h2_receive(ch->ch_session, ch->ch_in + ch->ch_in_at,
		ch->ch_in_len - ch->ch_in_at, &taken)) {
		conn_http2_input_forget_in(ch);
		return false;
	}
	ch->ch_in_at += taken;
	if (ch->ch_in_at < ch->ch_in_len)
		return false;
	conn_http2_input_forget_in(ch);
	return true;
}
