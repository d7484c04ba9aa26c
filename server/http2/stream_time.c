/* stream_time: handles timeouts of disks and of clients. */
#include "lib/os/os.h"
#include "server/http2/hold.h"
#include "server/http2/stream_priv.h"

/*
 * Handles a disk timeout unless the disk gets more time: cancels the exchange, and sends a 503 or,
 * if the response has begun, resets the stream.
 */
static void
h2_stream_time_disk_late(struct h2_stream *sm)
{
	struct exchange *ex = sm->sm_ex;

	if (exchange_has_patience(ex)) {
		h2_stream_timer(sm, TIMER_DISK);
		return;
	}
	exchange_disk_late(ex);
	if (sm->sm_state != H2_BODY)
		exchange_503(ex);
	if (sm->sm_state == H2_LATE)
		h2_stream_watch(sm);
	else
		h2_stream_give_up(sm, NGHTTP2_INTERNAL_ERROR);
	exchange_cancel(ex);
	h2_hold_free(sm);
	h2_stream_ask_slice(sm);
}

static bool
h2_stream_time_has_no_window(const struct h2_stream *sm)
{
	return nghttp2_session_get_stream_remote_window_size(
		   sm->sm_session->h2_session, sm->sm_id) <= 0;
}

/* Returns the number of bytes that min_send_rate requires from the connection per send_timeout. */
static uint64_t
h2_stream_time_least(const struct h2_stream *sm)
{
	const struct worker *wk = h2_stream_worker(sm);
	uint64_t ms = wk->wk_sched.sc_timeouts[TIMER_SEND] / 1000;

	return ms * wk->wk_service.svc_conf->conf_min_send_rate / 1000;
}

static bool
h2_stream_time_is_too_few(uint64_t n, uint64_t wanted)
{
	return n == 0 || n < wanted;
}

/*
 * Returns the number of bytes that min_send_rate requires from a stream whose window is closed, per
 * send_timeout.  If the client has acknowledged nearly all sent bytes, the client keeps the window
 * closed by choice, and the stream must reach the full rate.  Otherwise the link is slow, and the
 * streams share the rate.
 */
static uint64_t
h2_stream_time_least_of_stream(const struct h2_stream *sm)
{
	const struct h2 *h2 = sm->sm_session;

	return pw_unacked(h2->h2_owner.ho_fd) > RESPONSE_SLICE
		   ? h2_stream_time_least(sm) / h2->h2_open
		   : h2_stream_time_least(sm);
}

/*
 * Returns true if the client is too slow.  If the window of the stream is open and that of the
 * connection is closed, the bytes of all streams count, because other streams may have used the
 * window.  If both windows are open, the stream waits for the socket or its time slice.
 */
static bool
h2_stream_time_is_too_slow(const struct h2_stream *sm)
{
	const struct h2 *h2 = sm->sm_session;

	if (h2_stream_time_has_no_window(sm))
		return h2_stream_time_is_too_few(sm->sm_sent - sm->sm_then,
		    h2_stream_time_least_of_stream(sm));
	return nghttp2_session_get_remote_window_size(h2->h2_session) <= 0 &&
	       h2_stream_time_is_too_few(
		   h2->h2_sent - sm->sm_all_then, h2_stream_time_least(sm));
}

static void
h2_stream_time_client_late(struct h2_stream *sm)
{
	struct stats *sta = &h2_stream_worker(sm)->wk_service.svc_stats;

	if (sm->sm_state == H2_DONE) {
		h2_stream_give_up(sm, NGHTTP2_NO_ERROR);
		h2_stream_ask_slice(sm);
		return;
	}
	if (!h2_stream_time_is_too_slow(sm)) {
		h2_stream_watch(sm);
		return;
	}
	counter_add(sm->sm_sent == sm->sm_then ? &sta->sta_timeout[TIMER_SEND]
					       : &sta->sta_capped[CAP_RATE],
	    1);
	h2_stream_give_up(sm, NGHTTP2_CANCEL);
	h2_stream_ask_slice(sm);
}

static struct h2_stream *
h2_stream_of_item(const struct sched_item *it)
{
	return (struct h2_stream *)(void *)(uintptr_t)it;
}

static void
h2_stream_on_timeout(struct sched_item *it, enum timer timer)
{
	struct h2_stream *sm = h2_stream_of_item(it);

	if (timer == TIMER_DISK)
		h2_stream_time_disk_late(sm);
	else
		h2_stream_time_client_late(sm);
}

static void
h2_stream_on_slice(struct sched_item *it)
{
	h2_stream_set_due(h2_stream_of_item(it));
}

static const struct sockaddr *
h2_stream_peer(const struct sched_item *it)
{
	return h2_stream_of_item(it)->sm_session->h2_owner.ho_peer;
}

/*
 * Returns 0 for a stopped session: its connection has closed, and its streams only wait for a disk.
 */
static unsigned
h2_stream_responses(const struct sched_item *it)
{
	const struct h2 *h2 = h2_stream_of_item(it)->sm_session;

	return h2->h2_stopped ? 0 : h2->h2_open;
}

static uint64_t
h2_stream_sent_ago(const struct sched_item *it)
{
	return os_sent_ago(h2_stream_of_item(it)->sm_session->h2_owner.ho_fd);
}

static void
h2_stream_on_evict(struct sched_item *it)
{
	const struct h2_owner *ho =
	    &h2_stream_of_item(it)->sm_session->h2_owner;

	ho->ho_evict(ho->ho_arg);
}

#ifdef PW_DEBUG
/* Checks nothing, because h2_check checks the streams. */
static void
h2_stream_on_check(const struct sched_item *it)
{
	(void)it;
}
#endif

const struct sched_ops h2_stream_sched_ops = {
    .run = h2_stream_on_slice,
    .timeout = h2_stream_on_timeout,
    .peer = h2_stream_peer,
    .responses = h2_stream_responses,
    .sent_ago = h2_stream_sent_ago,
    .evict = h2_stream_on_evict,
#ifdef PW_DEBUG
    .check = h2_stream_on_check,
#endif
};
