/*
 * callbacks: what a session does with each frame that comes or goes, as libnghttp2 calls for it, and
 * what clients pay for frames that ask for nothing (flood.h).  For server/http2/ only.
 */
#ifndef SERVER_HTTP2_CALLBACKS_H
#define SERVER_HTTP2_CALLBACKS_H

#include "server/http2/session.h"

/* Returns NULL if memory is short.  The caller frees them. */
nghttp2_session_callbacks *h2_callbacks(void);

/* Checks what libnghttp2 passes over.  Call for each frame once those before it were read. */
void h2_check_frame(struct h2 *, const struct h2_walk_frame *);

/* Ends a session whose client floods it.  Counts and logs it once. */
void h2_calm_down(struct h2 *);

#endif
