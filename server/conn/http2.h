/*
 * http2: a connection in CONN_HTTP2; for server/conn/ only.  See server/http2/session.h.
 */
#ifndef SERVER_CONN_HTTP2_H
#define SERVER_CONN_HTTP2_H

#include "server/conn/conn_priv.h"
#include "server/http2/session.h"

struct conn_http2 {
	struct h2 *ch_session;
	char *
	    ch_in; /* frames that wait until requests have their answers, or NULL */
	size_t ch_in_at;
	size_t ch_in_len;
	char *ch_rest; /* frames that the socket did not take, or NULL */
	size_t ch_at;
	size_t ch_len;
	uint64_t ch_given; /* bytes, of the connection */
	bool ch_draining;  /* a GOAWAY is to be sent: see tell_drain */
	struct pace ch_pace;
};

/* Nothing of it is in use, and its completions have come, or will find nobody. */
static inline bool
conn_http2_waits(const struct conn *c)
{
	return c->cn_h2 != NULL && h2_waits(c->cn_h2->ch_session);
}

/* ------------------------------------------------------------- preface.c */

/* What was received is its preface (RFC 9113, 3.4), and it may speak it. */
bool conn_speaks_http2(const struct conn *);

/* From here on it is in CONN_HTTP2. */
enum next conn_begin_http2(struct conn *);

/* --------------------------------------------------------- http2_input.c */

/*
 * Gives the session what was received.  Keeps what that does not take yet, in memory of its own.
 * Returns false if the session cannot go on.
 */
bool conn_http2_give(struct conn *, const char *, size_t len);

/*
 * Goes on with frames that were kept.  Returns false if some are still kept, or if the session
 * cannot go on.
 */
bool conn_http2_go_on(struct conn *);

/* Returns true if frames are kept that the session takes now: no event comes for them. */
static inline bool
conn_http2_may_go_on(const struct conn *c)
{
	const struct conn_http2 *ch = c->cn_h2;

	return ch->ch_in != NULL && !h2_is_laden(ch->ch_session);
}

/* --------------------------------------------------------------- http2.c */

/* A step in CONN_HTTP2. */
enum next conn_http2(struct conn *);

/* Its timer has ended: it is due. */
void conn_http2_late(struct conn *, enum timer);

/* The server ends. */
void conn_http2_drain(struct conn *);

/* Sends GOAWAY with ENHANCE_YOUR_CALM.  False: there is no room. */
bool conn_http2_say_calm(struct conn *);

/* It is closed: cancels all that is under way. */
void conn_http2_stop(struct conn *);
void conn_http2_free(struct conn *);

#endif
