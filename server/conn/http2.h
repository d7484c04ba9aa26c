/* http2: an HTTP/2 connection (CONN_HTTP2); for server/conn/ only.  See server/http2/session.h. */
#ifndef SERVER_CONN_HTTP2_H
#define SERVER_CONN_HTTP2_H

#include "server/conn/conn_priv.h"
#include "server/http2/session.h"

struct conn_http2 {
	struct h2 *ch_session;
	char *ch_in; /* frames the session cannot accept yet, or NULL */
	size_t ch_in_at;
	size_t ch_in_len;
	char *ch_rest; /* frames the socket has not accepted, or NULL */
	size_t ch_at;
	size_t ch_len;
	uint64_t ch_given; /* total bytes sent to the socket */
	bool ch_has_more;  /* true if the last time slice left frames to send */
	bool ch_draining;  /* true if conn_http2_tell_drain must send GOAWAY */
	struct pace ch_pace;
};

/* Returns true if a completion is pending for a stream of the connection. */
static inline bool
conn_http2_waits(const struct conn *c)
{
	return c->cn_h2 != NULL && h2_waits(c->cn_h2->ch_session);
}

/* ------------------------------------------------------------- preface.c */

/*
 * Returns true if the input begins with the HTTP/2 preface (RFC 9113, 3.4) and HTTP/2 is allowed on
 * this connection.
 */
bool conn_speaks_http2(const struct conn *);

/*
 * Enters CONN_HTTP2, and passes the received bytes to the session.  Returns NEXT_CLOSE if memory is
 * short.
 */
enum next conn_begin_http2(struct conn *);

/* --------------------------------------------------------- http2_input.c */

/*
 * Passes received bytes to the session, and stores those that the session does not accept yet.
 * Returns false if the session cannot continue.
 */
bool conn_http2_give(struct conn *, const char *, size_t len);

/*
 * Passes the stored frames to the session.  Returns false if stored frames are left or the session
 * cannot continue.
 */
bool conn_http2_go_on(struct conn *);

/* Returns true if the session accepts stored frames in a new time slice.  No event reports this. */
static inline bool
conn_http2_may_go_on(const struct conn *c)
{
	const struct conn_http2 *ch = c->cn_h2;

	return ch->ch_in != NULL && !h2_is_laden(ch->ch_session);
}

/* --------------------------------------------------------------- http2.c */

enum next conn_http2(struct conn *);

/*
 * Handles the end of a timer.  TIMER_GRACE makes the session refuse further streams; any other
 * timer ends all streams with NO_ERROR.  The caller must then run the connection.
 */
void conn_http2_late(struct conn *, enum timer);

/* Schedules a GOAWAY.  Call when the drain of the worker starts. */
void conn_http2_drain(struct conn *);

/* Sends GOAWAY with ENHANCE_YOUR_CALM.  Returns false if the socket has no space for it. */
bool conn_http2_say_calm(struct conn *);

/*
 * Sends a GOAWAY if no stream is open.  Then cancels all streams.  Call when the connection closes.
 */
void conn_http2_stop(struct conn *);
void conn_http2_free(struct conn *);

#endif
