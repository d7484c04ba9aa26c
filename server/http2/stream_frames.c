/* stream_frames: copies the bytes of a response into DATA frames: see h2_stream_read. */
#include <errno.h>
#include <string.h>

#include "server/http2/stream_priv.h"

#define STEPS 4 /* maximum steps of a response per frame */

static struct h2_stream *
h2_stream_frames_stream_of(struct pw_sink *sk)
{
	return (
	    struct h2_stream *)(void *)((char *)sk -
					offsetof(struct h2_stream, sm_sink));
}

static char *
h2_stream_frames_sink_room(struct pw_sink *sk, size_t *room)
{
	struct h2_stream *sm = h2_stream_frames_stream_of(sk);

	*room = sm->sm_room;
	return sm->sm_to;
}

static int
h2_stream_frames_sink_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct h2_stream *sm = h2_stream_frames_stream_of(sk);
	size_t n = len < sm->sm_room ? len : sm->sm_room;

	(void)more;
	*taken = n;
	if (n == 0)
		return -EAGAIN;
	if (mem != sm->sm_to)
		memcpy(sm->sm_to, mem, n);
	sm->sm_to += n;
	sm->sm_room -= n;
	sm->sm_taken += n;
	return 0;
}

/* Returns 0, because frames have copies of the bytes: the page cache may drop the originals. */
static long
h2_stream_frames_sink_unacked(struct pw_sink *sk)
{
	(void)sk;
	return 0;
}

const struct pw_sink_ops h2_stream_sink_ops = {
    .take = h2_stream_frames_sink_take,
    .unacked = h2_stream_frames_sink_unacked,
    .room = h2_stream_frames_sink_room};

/* Runs steps until the frame is full or the response has no further bytes now. */
static enum pw_send_status
h2_stream_frames_fill(struct h2_stream *sm)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	for (int n = 0; n < STEPS && status == PW_SEND_AGAIN; n++) {
		if (!h2_stream_may_go_on(sm))
			return PW_SEND_PENDING;
		status = response_step(sm->sm_ex);
		exchange_sent(sm->sm_ex);
	}
	if (status == PW_SEND_PENDING)
		h2_stream_await_disk(sm);
	return status;
}

/*
 * Fills a frame with the available bytes of the response.  The client's windows have space for the
 * frame.
 */
static ssize_t
h2_stream_frames_read_response(struct h2_stream *sm, uint32_t *flags)
{
	enum pw_send_status status = PW_SEND_ERROR;

	if (!sm->sm_failed)
		status = h2_stream_frames_fill(sm);
	if (status == PW_SEND_DONE) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		h2_stream_end_exchange(sm);
	} else if (status == PW_SEND_ERROR) {
		sm->sm_failed = true;
		if (sm->sm_taken == 0) {
			if (sm->sm_ex->ex_response.rs_send.snd_error != 0)
				(void)response_replaced(sm->sm_ex);
			sm->sm_ours = sm->sm_session->h2_tore = true;
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	} else if (status != PW_SEND_PENDING && sm->sm_taken == 0)
		h2_stream_set_due(sm);
	if (sm->sm_taken == 0 && status != PW_SEND_DONE)
		return NGHTTP2_ERR_DEFERRED;
	return (ssize_t)sm->sm_taken;
}

static ssize_t
h2_stream_frames_read_rest(struct h2_stream *sm, uint32_t *flags)
{
	size_t left = sm->sm_rest.b_len - sm->sm_rest_at;
	size_t n = left < sm->sm_room ? left : sm->sm_room;

	memcpy(sm->sm_to, sm->sm_rest.b_data + sm->sm_rest_at, n);
	sm->sm_rest_at += n;
	if (n == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* Returns true if the stream waits for a time slice, a completion, or the end of a pause. */
static bool
h2_stream_frames_is_held_up(const struct h2_stream *sm)
{
	return sm->sm_due || sm->sm_ex->ex_pending ||
	       sm->sm_item.it_timer == TIMER_PAUSE;
}

static ssize_t
h2_stream_frames_read_some(struct h2_stream *sm, uint32_t *flags)
{
	ssize_t n;

	if (sm->sm_state == H2_LATE)
		return h2_stream_frames_read_rest(sm, flags);
	if (sm->sm_state != H2_READY)
		return h2_stream_frames_is_held_up(sm)
			   ? NGHTTP2_ERR_DEFERRED
			   : h2_stream_frames_read_response(sm, flags);
	n = h2_ready_read(sm, flags);
	if (*flags & NGHTTP2_DATA_FLAG_EOF) {
		h2_stream_timer(sm, TIMER_NONE);
		sm->sm_state = H2_DONE;
	}
	return n;
}

ssize_t
h2_stream_read(struct h2_stream *sm, size_t len, uint32_t *flags)
{
	struct h2 *h2 = sm->sm_session;
	ssize_t n;

	if (h2->h2_room - h2->h2_len < H2_FRAME_HEAD + len)
		return NGHTTP2_ERR_PAUSE;
	sm->sm_to = h2->h2_out + h2->h2_len + H2_FRAME_HEAD;
	sm->sm_room = len;
	sm->sm_taken = 0;
	n = h2_stream_frames_read_some(sm, flags);
	sm->sm_to = NULL;
	sm->sm_room = 0;
	if (n >= 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
		sm->sm_sent += (uint64_t)n;
		h2->h2_sent += (uint64_t)n;
	}
	return n;
}
