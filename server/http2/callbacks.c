/*
 * callbacks: see callbacks.h.
 */
#include <string.h>

#include "lib/util/clock.h"
#include "server/http2/callbacks.h"
#include "server/http2/hold.h"
#include "server/http2/stream.h"
#include "server/worker/worker.h"

/* limit of the decoded bytes of a request's fields, as a multiple of max_head_size plus BUF_SIZE */
#define HEADS 4

static const struct conf *
h2_callbacks_conf_of(const struct h2 *h2)
{
	return h2->h2_owner.ho_worker->wk_service.svc_conf;
}

static struct buf_list *
h2_callbacks_bufs_of(const struct h2 *h2)
{
	return &h2->h2_owner.ho_worker->wk_service.svc_bufs;
}

static struct h2_stream *
h2_callbacks_find(const struct h2 *h2, int32_t id)
{
	return nghttp2_session_get_stream_user_data(h2->h2_session, id);
}

/* ------------------------------------------------------------------ abuse */

static void
h2_callbacks_tell_flood(struct h2 *h2)
{
	struct worker *wk = h2->h2_owner.ho_worker;
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell_of(wk->wk_service.svc_told, TOLD_FRAMES,
		clock_now(), h2->h2_owner.ho_peer, text))
		return;
	log_warn(wk->wk_service.svc_log,
	    "aborted an HTTP/2 connection from %s: the client sent a flood of "
	    "control frames, such as PING or resets",
	    text);
}

void
h2_calm_down(struct h2 *h2)
{
	struct worker *wk = h2->h2_owner.ho_worker;

	if (h2->h2_failed)
		return;
	counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_FRAMES], 1);
	h2_callbacks_tell_flood(h2);
	h2_fail(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void
h2_callbacks_pay(struct h2 *h2, unsigned tokens)
{
	/* Reads the clock only if it decides: a client may send a million frames a second. */
	uint64_t now = h2->h2_flood.fl_tokens < tokens ? clock_now() : 0;

	if (!h2_flood_pay(&h2->h2_flood, tokens, now))
		h2_calm_down(h2);
}

/* --------------------------------------------------------------- received */

/*
 * Returns true for a HEADERS or DATA frame of a stream that has ended, or whose number the client
 * skipped (RFC 9113, 5.1 and 5.1.1).  Always returns false after the server has reset a stream:
 * frames in flight may belong to this stream, and the session does not store its number.
 */
static bool
h2_callbacks_is_too_late(const struct h2 *h2, const struct h2_walk_frame *wf)
{
	return (wf->wf_type == NGHTTP2_HEADERS ||
		   wf->wf_type == NGHTTP2_DATA) &&
	       wf->wf_stream > 0 && wf->wf_stream <= h2->h2_last &&
	       !h2->h2_tore && h2_callbacks_find(h2, wf->wf_stream) == NULL;
}

/*
 * Returns true for a frame that the client must pay for.  HEADERS, CONTINUATION and DATA with bytes
 * are free, as requests and bodies have other limits.  Padded DATA is not free, because the padding
 * may be all that it has.  libnghttp2 reports only some of the other frames.
 */
static bool
h2_callbacks_asks_for_nothing(const struct h2_walk_frame *wf)
{
	return wf->wf_type == NGHTTP2_DATA
		   ? wf->wf_len == 0 ||
			 (wf->wf_flags & NGHTTP2_FLAG_PADDED) != 0
		   : wf->wf_type != NGHTTP2_HEADERS &&
			 wf->wf_type != NGHTTP2_CONTINUATION;
}

/*
 * Finds errors that libnghttp2 ignores, because libnghttp2 stores no closed streams and does not
 * check old priorities.
 */
void
h2_check_frame(struct h2 *h2, const struct h2_walk_frame *wf)
{
	if (h2_callbacks_asks_for_nothing(wf))
		h2_callbacks_pay(h2, H2_FLOOD_FRAME);
	if (wf->wf_type == NGHTTP2_PRIORITY &&
	    (wf->wf_stream == 0 || wf->wf_stream == wf->wf_depends))
		h2_fail(h2, NGHTTP2_PROTOCOL_ERROR);
	else if (h2_callbacks_is_too_late(h2, wf))
		h2_fail(h2, wf->wf_type == NGHTTP2_DATA
				? NGHTTP2_STREAM_CLOSED
				: NGHTTP2_PROTOCOL_ERROR);
}

/*
 * Returns true if memory is short.  A session without open streams then refuses requests, so that
 * it closes and frees its memory.
 */
static bool
h2_callbacks_lacks_memory(struct h2 *h2)
{
	if (!h2_hold_is_short(h2, h2->h2_open))
		return false;
	if (h2_is_idle(h2))
		h2_refuse(h2);
	return true;
}

static int
h2_callbacks_on_begin_headers(
    nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h2 = arg;
	int32_t id = frame->hd.stream_id;
	struct h2_stream *sm;

	h2->h2_fields = 0;
	if (frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	h2->h2_last = id;
	/* A reset stream still counts while it waits for a disk. */
	if (h2->h2_count >=
		2 * h2_callbacks_conf_of(h2)->conf_http2_max_streams ||
	    h2_callbacks_lacks_memory(h2)) {
		h2_reset(h2, id, NGHTTP2_REFUSED_STREAM);
		return 0;
	}
	sm = h2_stream_create(h2, id);
	if (sm == NULL) {
		h2_reset(h2, id, NGHTTP2_INTERNAL_ERROR);
		return 0;
	}
	h2->h2_heading = sm;
	return nghttp2_session_set_stream_user_data(session, id, sm);
}

static struct str
h2_callbacks_text_of(nghttp2_rcbuf *rb)
{
	nghttp2_vec v = nghttp2_rcbuf_get_buf(rb);

	return (struct str){(const char *)v.base, v.len};
}

static int
h2_callbacks_on_header(nghttp2_session *session, const nghttp2_frame *frame,
    nghttp2_rcbuf *name_buf, nghttp2_rcbuf *value_buf, uint8_t flags, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm = h2->h2_heading;
	struct str name = h2_callbacks_text_of(name_buf);
	struct str value = h2_callbacks_text_of(value_buf);
	const struct head_limits limits =
	    service_head_limits(&h2->h2_owner.ho_worker->wk_service);

	(void)session, (void)flags;
	if (sm != NULL && sm->sm_id == frame->hd.stream_id)
		h2_head_add(&sm->sm_head, h2_callbacks_bufs_of(h2), name, value,
		    &limits);
	h2->h2_fields += name.s_len + value.s_len + 32;
	if (h2->h2_fields <= HEADS * (limits.hl_size + BUF_SIZE))
		return 0;
	/*
	 * Stops decoding: each received byte may stand for a 4 KiB entry of the HPACK table, in
	 * requests and in trailers.
	 */
	h2_calm_down(h2);
	return NGHTTP2_ERR_PAUSE;
}

/*
 * Makes streams without a priority share the connection.  By RFC 9218, 4.2, libnghttp2 would send
 * one stream after the other.
 */
static void
h2_callbacks_share(struct h2 *h2, int32_t id)
{
	nghttp2_extpri pri = {
	    .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};

	nghttp2_session_change_extpri_stream_priority(
	    h2->h2_session, id, &pri, 0);
}

static void
h2_callbacks_head_complete(struct h2 *h2, struct h2_stream *sm)
{
	const struct conf *conf = h2_callbacks_conf_of(h2);

	h2->h2_heading = NULL;
	/*
	 * The client sent the request before it received the GOAWAY, and may retry it on another
	 * connection.
	 */
	if (h2->h2_refuses) {
		sm->sm_ours = true;
		h2_reset(h2, sm->sm_id, NGHTTP2_REFUSED_STREAM);
		return;
	}
	if (!sm->sm_head.hh_priority)
		h2_callbacks_share(h2, sm->sm_id);
	h2_stream_begin(sm);
	h2->h2_requests++;
	counter_add(
	    &h2->h2_owner.ho_worker->wk_service.svc_stats.sta_h2_streams, 1);
	if (h2->h2_requests != conf->conf_max_requests)
		return;
	counter_add(&h2->h2_owner.ho_worker->wk_service.svc_stats
			 .sta_capped[CAP_REQUESTS],
	    1);
	h2_refuse(h2);
}

/*
 * Charges the client for resetting a response of which it has accepted nothing, unless the server reset
 * the stream.
 */
static void
h2_callbacks_pay_reset(struct h2 *h2, const struct h2_stream *sm)
{
	bool pending = sm->sm_ex != NULL && sm->sm_ex->ex_pending;

	if (sm->sm_state != H2_DONE && sm->sm_sent == 0 && !sm->sm_ours)
		h2_callbacks_pay(
		    h2, pending ? H2_FLOOD_PENDING : H2_FLOOD_RESET);
}

static int
h2_callbacks_on_frame_recv(
    nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm = h2_callbacks_find(h2, frame->hd.stream_id);

	(void)session;
	if (sm == NULL)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && sm->sm_state == H2_HEAD)
		h2_callbacks_head_complete(h2, sm);
	else if (frame->hd.type == NGHTTP2_RST_STREAM &&
		 frame->rst_stream.error_code == NGHTTP2_NO_ERROR)
		h2_callbacks_pay_reset(h2, sm);
	return 0;
}

static int
h2_callbacks_on_invalid_frame(
    nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
	(void)session, (void)frame;
	/*
	 * Charges less if the client opened too many streams, because it may not know the limit
	 * yet.
	 */
	h2_callbacks_pay(arg, error == NGHTTP2_ERR_REFUSED_STREAM
				  ? H2_FLOOD_FRAME
				  : H2_FLOOD_RESET);
	return 0;
}

/*
 * Discards bytes of a request's body.  Reopens the connection's window, but not the stream's
 * window, which limits the body.
 */
static int
h2_callbacks_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *data, size_t len, void *arg)
{
	struct h2_stream *sm = h2_callbacks_find(arg, id);

	(void)flags, (void)data;
	if (sm != NULL)
		h2_stream_discard(sm, len);
	return nghttp2_session_consume_connection(session, len);
}

static int
h2_callbacks_on_stream_close(
    nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm = h2_callbacks_find(h2, id);

	(void)session;
	if (sm == NULL)
		return 0;
	/*
	 * NO_ERROR also reports a normal end.  For a reset with NO_ERROR,
	 * h2_callbacks_on_frame_recv charges the client.
	 */
	if (error != NGHTTP2_NO_ERROR)
		h2_callbacks_pay_reset(h2, sm);
	h2_stream_closed(sm);
	return 0;
}

/* ------------------------------------------------------------------- sent */

/* Limits the payload of DATA, so that the frame fits into one TLS record. */
static ssize_t
h2_callbacks_on_length(nghttp2_session *session, uint8_t type, int32_t id,
    int32_t window, int32_t stream_window, uint32_t most, void *arg)
{
	ssize_t n = H2_DATA;

	(void)session, (void)type, (void)id, (void)arg;
	if (n > window)
		n = window;
	if (n > stream_window)
		n = stream_window;
	return n > (ssize_t)most ? (ssize_t)most : n;
}

/* Writes the frame head in front of the payload that h2_stream_read has written. */
static int
h2_callbacks_on_send_data(nghttp2_session *session, nghttp2_frame *frame,
    const uint8_t *head, size_t len, nghttp2_data_source *source, void *arg)
{
	struct h2 *h2 = arg;

	(void)session, (void)frame, (void)source;
	memcpy(h2->h2_out + h2->h2_len, head, H2_FRAME_HEAD);
	h2->h2_len += H2_FRAME_HEAD + len;
	h2_flood_earn(&h2->h2_flood, len);
	return 0;
}

static int
h2_callbacks_on_frame_send(
    nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm;

	/* libnghttp2 also calls this function for resets that it sends by itself. */
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		h2->h2_tore = true;
	if ((frame->hd.type != NGHTTP2_DATA &&
		frame->hd.type != NGHTTP2_HEADERS) ||
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	h2_flood_earn(&h2->h2_flood, H2_FLOOD_RESPONSE);
	sm = h2_callbacks_find(h2, frame->hd.stream_id);
	if (sm != NULL && nghttp2_session_get_stream_remote_close(
			      session, frame->hd.stream_id) == 0)
		h2_stream_responded(sm);
	return 0;
}

/* -------------------------------------------------------------------- all */

nghttp2_session_callbacks *
h2_callbacks(void)
{
	nghttp2_session_callbacks *cb;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_headers_callback(
	    cb, h2_callbacks_on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback2(
	    cb, h2_callbacks_on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(
	    cb, h2_callbacks_on_frame_recv);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
	    cb, h2_callbacks_on_invalid_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
	    cb, h2_callbacks_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(
	    cb, h2_callbacks_on_stream_close);
	nghttp2_session_callbacks_set_data_source_read_length_callback(
	    cb, h2_callbacks_on_length);
	nghttp2_session_callbacks_set_send_data_callback(
	    cb, h2_callbacks_on_send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(
	    cb, h2_callbacks_on_frame_send);
	return cb;
}
