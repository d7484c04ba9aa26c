/*
 * goaway: makes a session refuse new requests (RFC 9113, 6.8): see session.h.
 */
#include "server/http2/stream.h"

void
h2_drain(struct h2 *h2)
{
	if (h2->h2_draining || h2->h2_refuses || h2->h2_failed)
		return;
	/* A request that crosses the GOAWAY has a higher number, so the client may repeat it. */
	if (h2_is_idle(h2) && h2->h2_requests > 0) {
		h2_refuse(h2);
		return;
	}
	h2->h2_draining = true;
	if (nghttp2_submit_shutdown_notice(h2->h2_session) != 0)
		h2_break(h2);
}

void
h2_refuse(struct h2 *h2)
{
	if (h2->h2_refuses || h2->h2_failed || h2->h2_broken)
		return;
	h2->h2_refuses = true;
	if (nghttp2_submit_goaway(h2->h2_session, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(h2->h2_session),
		NGHTTP2_NO_ERROR, NULL, 0) != 0)
		h2_break(h2);
}

void
h2_fail(struct h2 *h2, uint32_t error)
{
	h2->h2_failed = true;
	if (h2->h2_broken)
		return;
	if (nghttp2_session_terminate_session(h2->h2_session, error) != 0)
		h2_break(h2);
}
