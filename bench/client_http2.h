/*
 * client_http2: a connection of HTTP/2 for the load generators, by libnghttp2: with
 * prior knowledge, over TLS by ALPN.  Its windows are those of a browser (Chromium):
 * 15 MiB, 6 MiB for a stream.  Nobody pushes.  For one thread.
 */
#ifndef CLIENT_HTTP2_H
#define CLIENT_HTTP2_H

#include "client.h"

struct http2;

/* A request and its answer; the caller's, until it has ended. */
struct http2_stream {
	int hs_status;	   /* 0 before the head */
	uint64_t *hs_body; /* where bytes of bodies are added up */
};

/*
 * The stream has ended: FAILURE_NONE: with its answer.  FAILURE_UNSENT: the server
 * says that it did not look at it, and it may be asked again, elsewhere.  May call
 * http2_ask, not http2_free.
 */
typedef void http2_end_f(void *owner, struct http2_stream *, enum failure);

/* Before the first connection is opened. */
void http2_start(const struct targets *);

/* Of a descriptor that is connected, which it closes in the end.  Never NULL. */
struct http2 *http2_new(
    int fd, const struct targets *, http2_end_f *, void *owner);
int http2_fd(const struct http2 *);

/* The request goes with the next http2_write. */
void http2_ask(struct http2 *, const struct target *, struct http2_stream *);

/*
 * Takes what can be read now, once.  FAILURE_AGAIN: nothing; anything but that and
 * FAILURE_NONE is the end of the connection, and the streams have not been told.
 */
enum failure http2_read(struct http2 *);

/* FAILURE_AGAIN: to be called again when the descriptor is writable. */
enum failure http2_write(struct http2 *);

/* The server takes no more requests here (GOAWAY). */
bool http2_ending(const struct http2 *);
/* Streams that have not ended. */
unsigned http2_busy(const struct http2 *);

/* Of nothing that is under way anybody is told.  http2_leave: the descriptor stays open. */
void http2_free(struct http2 **);
void http2_leave(struct http2 **);

#endif
