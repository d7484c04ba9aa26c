/*
 * session: see session.h.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/http2/callbacks.h"
#include "server/http2/stream.h"
#include "server/worker/worker.h"

#define STREAMS_PER_SLICE 32
#define ACKS		  64 /* maximum ACKs that wait for the socket */

static const struct conf *
h2_session_conf_of(const struct h2 *h2)
{
	return h2->h2_owner.ho_worker->wk_service.svc_conf;
}

/* ----------------------------------------------------------- begin and end */

/*
 * libnghttp2 1.57, and distributions' patches of older versions, have this function and a limit of resets;
 * others have neither.
 */
void nghttp2_option_set_stream_reset_rate_limit(
    nghttp2_option *, uint64_t burst, uint64_t rate) __attribute__((weak));

static nghttp2_option *
h2_session_options(void)
{
	nghttp2_option *op;

	if (nghttp2_option_new(&op) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(op, 1);
	nghttp2_option_set_no_closed_streams(op, 1);
	nghttp2_option_set_max_outbound_ack(op, ACKS);
	/* flood.h limits resets by their cost; libnghttp2 counts them. */
	if (nghttp2_option_set_stream_reset_rate_limit != NULL)
		nghttp2_option_set_stream_reset_rate_limit(
		    op, UINT32_MAX, UINT32_MAX);
	nghttp2_option_set_builtin_recv_extension_type(
	    op, NGHTTP2_PRIORITY_UPDATE);
	return op;
}

static bool
h2_session_begin(struct h2 *h2)
{
	const struct conf *conf = h2_session_conf_of(h2);
	const nghttp2_settings_entry settings[] = {
	    {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		conf->conf_http2_max_streams},
	    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
		(uint32_t)conf->conf_max_head},
	    {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	nghttp2_mem mem = h2_frame_buffer_memory(&h2->h2_frame_buffer);
	nghttp2_session_callbacks *cb = h2_callbacks();
	nghttp2_option *op = h2_session_options();
	bool done =
	    cb != NULL && op != NULL &&
	    nghttp2_session_server_new3(&h2->h2_session, cb, h2, op, &mem) == 0;

	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(op);
	return done &&
	       nghttp2_submit_settings(h2->h2_session, NGHTTP2_FLAG_NONE,
		   settings, sizeof(settings) / sizeof(settings[0])) == 0;
}

struct h2 *
h2_create(const struct h2_owner *ho)
{
	struct h2 *h2 = calloc(1, sizeof(*h2));

	if (h2 == NULL)
		return NULL;
	h2->h2_owner = *ho;
	TAILQ_INIT(&h2->h2_all);
	TAILQ_INIT(&h2->h2_due);
	h2_flood_begin(&h2->h2_flood, clock_now());
	counter_add(&ho->ho_worker->wk_service.svc_stats.sta_h2_connections, 1);
	if (!h2_session_begin(h2))
		h2_destroy(&h2);
	return h2;
}

void
h2_stop(struct h2 *h2)
{
	struct h2_stream *sm, *next;

	if (h2->h2_stopped)
		return;
	h2->h2_stopped = true;
	for (sm = TAILQ_FIRST(&h2->h2_all); sm != NULL; sm = next) {
		next = TAILQ_NEXT(sm, sm_all);
		if (!sm->sm_closed)
			h2_stream_closed(sm);
	}
	/* Prevents calls of h2_callbacks_on_stream_close, since the streams are freed. */
	nghttp2_session_del(h2->h2_session);
	h2->h2_session = NULL;
}

void
h2_destroy(struct h2 **h2p)
{
	struct h2 *h2 = *h2p;

	if (h2 == NULL)
		return;
	*h2p = NULL;
	nghttp2_session_del(h2->h2_session);
	free(h2);
}

/* ------------------------------------------------------- input and output */

/*
 * Passes bytes to libnghttp2.  An error means that the client violated HTTP/2 or that memory is
 * short: a callback fails only if memory is short.
 */
static void
h2_session_give(struct h2 *h2, const unsigned char *data, size_t len)
{
	ssize_t n = 0;

	if (len > 0 && !h2->h2_failed)
		n = nghttp2_session_mem_recv(h2->h2_session, data, len);
	/* The client sends PING and SETTINGS, but does not read the ACKs. */
	if (n == NGHTTP2_ERR_FLOODED)
		h2_calm_down(h2);
	else if (n == NGHTTP2_ERR_NOMEM || n == NGHTTP2_ERR_CALLBACK_FAILURE)
		h2_break(h2);
	else if (n < 0)
		h2_fail(h2, NGHTTP2_PROTOCOL_ERROR);
}

/*
 * Returns true if the frame starts a request that the session must not read yet.  The frame and all
 * input after it must then wait.  The reset of a request never waits alone, so that the server does
 * not start a response that the client has already cancelled.
 */
static bool
h2_session_must_wait(struct h2 *h2, const struct h2_walk_frame *wf)
{
	if (wf->wf_type != NGHTTP2_HEADERS || h2->h2_failed)
		return false;
	if (h2_is_sated(h2))
		return true;
	h2->h2_slice++;
	return false;
}

/* Checks each frame when libnghttp2 has processed all frames before it. */
bool
h2_receive(struct h2 *h2, const char *text, size_t len, size_t *taken)
{
	const unsigned char *data = (const unsigned char *)text;
	struct h2_walk_frame frame;
	size_t given = 0, at = h2->h2_ahead, begin;

	h2->h2_ahead = 0;
	*taken = len;
	while (!h2->h2_failed &&
	       h2_walk(&h2->h2_walk, data, len, &at, &begin, &frame)) {
		h2_session_give(h2, data + given, begin - given);
		given = begin;
		if (!h2->h2_failed)
			h2_check_frame(h2, &frame);
		if (h2_session_must_wait(h2, &frame)) {
			h2->h2_ahead = at - begin;
			*taken = begin;
			return true;
		}
	}
	h2_session_give(h2, data + given, len - given);
	return !h2->h2_failed;
}

bool
h2_run(struct h2 *h2)
{
	struct h2_stream *sm;

	for (int n = 0; n < STREAMS_PER_SLICE; n++) {
		sm = TAILQ_FIRST(&h2->h2_due);
		if (sm == NULL || h2->h2_broken)
			return false;
		if (h2->h2_queued > H2_QUEUED)
			return true;
		h2_stream_run(sm);
	}
	return !TAILQ_EMPTY(&h2->h2_due);
}

void
h2_look(struct h2 *h2)
{
	struct h2_stream *sm, *next;

	for (sm = TAILQ_FIRST(&h2->h2_due); sm != NULL; sm = next) {
		next = TAILQ_NEXT(sm, sm_due_entry);
		if (h2_stream_may_look(sm))
			h2_stream_look(sm);
	}
}

static void
h2_session_put(struct h2 *h2, const uint8_t *data, size_t len)
{
	memcpy(h2->h2_out + h2->h2_len, data, len);
	h2->h2_len += len;
}

/* Gathers frames until no further frame fits into the buffer. */
static void
h2_session_gather(struct h2 *h2)
{
	const uint8_t *data;
	ssize_t n = 1;

	while (n > 0 && !h2->h2_broken &&
	       h2->h2_room - h2->h2_len >= H2_FRAME + H2_FRAME_HEAD) {
		n = nghttp2_session_mem_send(h2->h2_session, &data);
		if (n < 0)
			h2_break(h2);
		else if ((size_t)n > h2->h2_room - h2->h2_len) {
			h2->h2_held = data;
			h2->h2_held_len = (size_t)n;
			return;
		} else if (n > 0)
			h2_session_put(h2, data, (size_t)n);
	}
}

size_t
h2_gather(struct h2 *h2, char *out, size_t room)
{
	h2->h2_out = out;
	h2->h2_room = room;
	h2->h2_len = 0;
	if (h2->h2_held_len > 0) {
		h2_session_put(h2, h2->h2_held, h2->h2_held_len);
		h2->h2_held_len = 0;
	}
	h2_session_gather(h2);
	h2->h2_out = NULL;
	if (!h2->h2_broken &&
	    nghttp2_session_get_outbound_queue_size(h2->h2_session) == 0)
		h2->h2_queued = 0;
	return h2->h2_len;
}

bool
h2_wants_room(const struct h2 *h2)
{
	return !h2->h2_broken &&
	       (h2->h2_held_len > 0 ||
		   nghttp2_session_want_write(h2->h2_session) != 0);
}

void
h2_settle(struct h2 *h2)
{
	if (h2_is_idle(h2) && !h2_wants_room(h2))
		h2_frame_buffer_release(&h2->h2_frame_buffer, clock_now());
}

bool
h2_is_over(const struct h2 *h2)
{
	return !h2_wants_room(h2) &&
	       (h2->h2_failed ||
		   nghttp2_session_want_read(h2->h2_session) == 0);
}
