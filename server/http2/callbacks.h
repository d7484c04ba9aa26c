/*
 * callbacks: defines the functions that libnghttp2 calls for received and sent frames, and charges
 * the client for frames that request nothing (flood.h).  For server/http2/ only.
 */
#ifndef SERVER_HTTP2_CALLBACKS_H
#define SERVER_HTTP2_CALLBACKS_H

#include "server/http2/session.h"

/* Returns the callbacks, which the caller frees, or NULL if memory is short. */
nghttp2_session_callbacks *h2_callbacks(void);

/*
 * Charges the client for a frame, and checks the frame for errors that libnghttp2 ignores.  Call
 * when all earlier frames were processed.
 */
void h2_check_frame(struct h2 *, const struct h2_walk_frame *);

/*
 * Closes a session because the client floods it, and ignores further input.  Counts and logs the
 * flood once.
 */
void h2_calm_down(struct h2 *);

#endif
