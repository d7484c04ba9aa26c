/*
 * stream: see stream.h.
 */
#include <stdlib.h>
#include <string.h>

#include "server/content/known.h"
#include "server/http/body.h"
#include "server/http2/hold.h"
#include "server/http2/stream_priv.h"

#define FIELDS 48 /* maximum fields of a response head without malloc */

/* ----------------------------------------------------------- request head */

/* Frees the request head, because the client may take long to accept the response. */
static void
h2_stream_settle(struct h2_stream *sm)
{
	long kept = exchange_settle(sm->sm_ex, h2_hold_room(sm));

	if (kept < 0)
		return;
	h2_hold_keep(sm, (size_t)kept);
	h2_hold_free(sm);
}

/* --------------------------------------------------------------- response */

static ssize_t
h2_stream_on_read(nghttp2_session *session, int32_t id, uint8_t *buf,
    size_t len, uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)session, (void)id, (void)buf, (void)arg;
	return h2_stream_read(source->ptr, len, flags);
}

/* Submits a response to libnghttp2.  Returns false if memory is short or the stream has closed. */
static bool
h2_stream_submit_fields(
    struct h2_stream *sm, const nghttp2_nv *nv, size_t n, bool body)
{
	nghttp2_data_provider from = {{.ptr = sm}, h2_stream_on_read};

	return nghttp2_submit_response(sm->sm_session->h2_session, sm->sm_id,
		   nv, n, body ? &from : NULL) == 0;
}

static bool
h2_stream_submit(struct h2_stream *sm, char *head, size_t len, bool body)
{
	nghttp2_nv fields[FIELDS], *nv = fields;
	size_t n = h2_head_fields(head, len, nv, FIELDS);
	bool done;

	if (n > FIELDS) {
		nv = malloc(n * sizeof(*nv));
		if (nv == NULL)
			return false;
		(void)h2_head_fields(head, len, nv, n);
	}
	sm->sm_session->h2_queued += len;
	done = h2_stream_submit_fields(sm, nv, n, body);
	if (nv != fields)
		free(nv);
	return done;
}

/* Returns the bytes that both windows of the client have left.  Negative after it has shrunk a window. */
static int32_t
h2_stream_window(const struct h2_stream *sm)
{
	nghttp2_session *session = sm->sm_session->h2_session;
	int32_t all = nghttp2_session_get_remote_window_size(session),
		own = nghttp2_session_get_stream_remote_window_size(
		    session, sm->sm_id);

	return own < all ? own : all;
}

/* Returns true if the response exceeds a window of the client. */
static bool
h2_stream_waits_for_window(const struct h2_stream *sm)
{
	const struct response *rs = &sm->sm_ex->ex_response;

	return rs->rs_send.snd_len + (off_t)rs->rs_body.s_len >
	       h2_stream_window(sm);
}

static void
h2_stream_begin_body(struct h2_stream *sm, bool body)
{
	struct response *rs = &sm->sm_ex->ex_response;

	if (!h2_stream_submit(sm, rs->rs_head.b_data, rs->rs_head_len, body))
		h2_stream_give_up(sm, NGHTTP2_INTERNAL_ERROR);
	else {
		response_head_given(sm->sm_ex);
		exchange_sent(sm->sm_ex);
		if (body) {
			sm->sm_state = H2_BODY;
			h2_stream_watch(sm);
			if (sm->sm_heavy > 0 || h2_stream_waits_for_window(sm))
				h2_stream_settle(sm);
			if (h2_stream_window(sm) < H2_DATA)
				pw_send_yield(&rs->rs_send);
		} else
			h2_stream_end_exchange(sm);
	}
}

/* Returns true if the whole response is in memory, so that no read can fail. */
static bool
h2_stream_is_in_memory(const struct response *rs)
{
	return rs->rs_nranges == 0 && rs->rs_stream == NULL &&
	       rs->rs_send.snd_error == 0;
}

/*
 * Reads the first bytes before sending any, so that a read error can still lead to another
 * response, as in HTTP/1.  Reads nothing while a window is closed (h2_stream_reach).
 */
static void
h2_stream_first_step(struct h2_stream *sm)
{
	const struct response *rs = &sm->sm_ex->ex_response;
	enum pw_send_status status;

	if (!h2_stream_may_go_on(sm))
		return;
	if (h2_stream_is_in_memory(rs)) {
		h2_stream_begin_body(
		    sm, rs->rs_send.snd_mem_len + rs->rs_body.s_len > 0);
		return;
	}
	sm->sm_room = 0;
	status = response_step(sm->sm_ex);
	switch (status) {
	case PW_SEND_DONE:
		h2_stream_begin_body(sm, false);
		return;
	case PW_SEND_WANT_WRITE:
		h2_stream_begin_body(sm, true);
		return;
	case PW_SEND_AGAIN:
		if (h2_stream_may_go_on(sm))
			h2_stream_set_due(sm);
		return;
	case PW_SEND_PENDING:
		h2_stream_await_disk(sm);
		return;
	case PW_SEND_ERROR:
		break;
	}
	if (response_replaced(sm->sm_ex))
		h2_stream_set_due(sm);
	else
		h2_stream_give_up(sm, NGHTTP2_INTERNAL_ERROR);
}

static void
h2_stream_looked_up(struct h2_stream *sm, bool ready)
{
	sm->sm_state = ready ? H2_FIRST : H2_LOOKUP;
	if (ready)
		h2_stream_first_step(sm);
	else if (sm->sm_ex->ex_held)
		h2_stream_watch(sm);
	else
		h2_stream_await_disk(sm);
}

/* ---------------------------------------------------------------- request */

/*
 * Refuses the request.  Keeps METHOD_HEAD, because a response to HEAD has no body (RFC 9110,
 * 9.3.2); other methods become METHOD_OTHER.
 */
static void
h2_stream_refuse(struct h2_stream *sm, int status)
{
	struct request *rq = &sm->sm_ex->ex_request;

	if (rq->rq_method != METHOD_HEAD)
		rq->rq_method = METHOD_OTHER;
	exchange_refuse(sm->sm_ex, status);
	h2_stream_looked_up(sm, true);
}

static void
h2_stream_learn(struct h2_stream *sm)
{
	const struct buf *text = &sm->sm_head.hh_text;

	known_learn(h2_stream_worker(sm)->wk_header_cache,
	    &sm->sm_session->h2_known, sm->sm_ex,
	    (struct str){text->b_data, text->b_len},
	    sm->sm_session->h2_owner.ho_proxied);
}

static void
h2_stream_respond(struct h2_stream *sm)
{
	struct exchange *ex = sm->sm_ex;
	const struct head_limits limits =
	    service_head_limits(&h2_stream_worker(sm)->wk_service);
	int status = h2_head_request(&sm->sm_head, &limits, &ex->ex_request,
	    BODY_DATA, h2_stream_bufs(sm));
	bool ready;

	if (sm->sm_session->h2_owner.ho_proxied)
		exchange_name_client(ex);
	if (status != 0 && status != 405 && status != 413) {
		h2_stream_refuse(sm, status);
		return;
	}
	h2_hold_weigh(sm);
	ready = exchange_respond(ex, status);
	if (ex->ex_response.rs_ready != NULL)
		h2_stream_learn(sm);
	h2_stream_looked_up(sm, ready);
}

static const struct exchange_ops exchange_ops;

static bool
h2_stream_start(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;
	const struct h2_owner *ho = &h2->h2_owner;
	const nghttp2_nv *fields;
	struct exchange *ex;
	size_t n;
	bool body;

	if (sm->sm_head.hh_text.b_failed)
		return false;
	fields = h2_ready_begin(sm, &n, &body);
	if (fields != NULL) {
		sm->sm_state = H2_READY;
		h2_stream_watch(sm);
		return h2_stream_submit_fields(sm, fields, n, body);
	}
	ex = exchange_create(&ho->ho_worker->wk_service, &exchange_ops, sm);
	if (ex == NULL)
		return false;
	ex->ex_peer = ho->ho_peer;
	ex->ex_sock = ho->ho_fd;
	ex->ex_sink = &sm->sm_sink;
	ex->ex_tls = ho->ho_tls;
	ex->ex_bucket = ho->ho_bucket;
	ex->ex_rate = h2->h2_rate;
	ex->ex_head_apart = true;
	ex->ex_proxied = ho->ho_proxied;
	sm->sm_ex = ex;
	h2_stream_respond(sm);
	return true;
}

void
h2_stream_begin(struct h2_stream *sm)
{
	const struct head_limits limits =
	    service_head_limits(&h2_stream_worker(sm)->wk_service);

	sm->sm_state = H2_NEW;
	(void)h2_head_end(&sm->sm_head, h2_stream_bufs(sm), &limits);
	h2_hold_weigh(sm);
	h2_stream_set_due(sm);
}

/* ------------------------------------------------------------- time slice */

static void
h2_stream_resume_body(struct h2_stream *sm)
{
	h2_stream_watch(sm);
	if (nghttp2_session_resume_data(
		sm->sm_session->h2_session, sm->sm_id) == NGHTTP2_ERR_NOMEM)
		h2_break(sm->sm_session);
}

void
h2_stream_run(struct h2_stream *sm)
{
	h2_stream_unset_due(sm);
	switch (sm->sm_state) {
	case H2_NEW:
		/* The server has not processed the request, so the client may send it again. */
		if (h2_hold_is_short(
			sm->sm_session, sm->sm_session->h2_open - 1))
			h2_stream_give_up(sm, NGHTTP2_REFUSED_STREAM);
		else if (!h2_stream_start(sm))
			h2_stream_give_up(sm, NGHTTP2_INTERNAL_ERROR);
		break;
	case H2_LOOKUP:
		h2_stream_timer(sm, TIMER_NONE);
		h2_stream_looked_up(sm, exchange_continue(sm->sm_ex));
		break;
	case H2_FIRST:
		h2_stream_first_step(sm);
		break;
	case H2_BODY:
		h2_stream_resume_body(sm);
		break;
	case H2_HEAD:
	case H2_READY:
	case H2_LATE:
	case H2_DONE:
		break;
	}
}

void
h2_stream_look(struct h2_stream *sm)
{
	const struct response *rs = &sm->sm_ex->ex_response;

	h2_stream_unset_due(sm);
	sm->sm_looked = true;
	sm->sm_room = 0;
	if (!h2_stream_may_go_on(sm))
		return;
	if (!h2_stream_is_in_memory(rs) &&
	    response_step(sm->sm_ex) == PW_SEND_PENDING) {
		h2_stream_await_disk(sm);
		return;
	}
	pw_send_yield(&sm->sm_ex->ex_response.rs_send);
	h2_stream_set_due(sm);
}

/* ------------------------------------------------------ a request's body */

/* Resets the stream if the client sends a large body after the response (RFC 9113, 8.1). */
static void
h2_stream_stop_body(struct h2_stream *sm)
{
	if (sm->sm_state == H2_DONE && sm->sm_body > BODY_DATA / 2)
		h2_stream_give_up(sm, NGHTTP2_NO_ERROR);
}

void
h2_stream_discard(struct h2_stream *sm, size_t len)
{
	sm->sm_body += len;
	if (!sm->sm_ours)
		h2_stream_stop_body(sm);
}

void
h2_stream_responded(struct h2_stream *sm)
{
	sm->sm_state = H2_DONE;
	sm->sm_responded = true;
	sm->sm_session->h2_bodies++;
	h2_stream_timer(sm, TIMER_SEND);
	h2_stream_stop_body(sm);
}

/* ------------------------------------------------------------ begin and end */

struct h2_stream *
h2_stream_create(struct h2 *h2, int32_t id)
{
	struct h2_stream *sm = calloc(1, sizeof(*sm));

	if (sm == NULL)
		return NULL;
	sm->sm_item.it_ops = &h2_stream_sched_ops;
	sm->sm_sink.sk_ops = &h2_stream_sink_ops;
	sm->sm_session = h2;
	sm->sm_id = id;
	TAILQ_INSERT_TAIL(&h2->h2_all, sm, sm_all);
	h2->h2_count++;
	h2->h2_open++;
	sched_add_part(&h2->h2_owner.ho_worker->wk_sched, &sm->sm_item);
	return sm;
}

static void
h2_stream_destroy(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;

	h2_ready_end(sm);
	exchange_free(&sm->sm_ex);
	h2_hold_free(sm);
	h2_hold_keep(sm, 0);
	h2_stream_give_more_back(sm);
	buf_release(&sm->sm_rest, h2_stream_bufs(sm));
	h2_stream_unset_due(sm);
	sched_remove_part(&h2->h2_owner.ho_worker->wk_sched, &sm->sm_item);
	TAILQ_REMOVE(&h2->h2_all, sm, sm_all);
	h2->h2_count--;
	free(sm);
}

void
h2_stream_closed(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;

	sm->sm_closed = true;
	h2->h2_open--;
	if (sm->sm_responded)
		h2->h2_bodies--;
	if (h2->h2_heading == sm)
		h2->h2_heading = NULL;
	if (sm->sm_ex == NULL || !sm->sm_ex->ex_pending) {
		h2_stream_destroy(sm);
		return;
	}
	h2_stream_timer(sm, TIMER_NONE);
	/* A disk timeout may have cancelled the exchange. */
	if (!sm->sm_ex->ex_cancelled)
		exchange_cancel(sm->sm_ex);
	h2_hold_free(sm);
}

/* ---------------------------------------------- callbacks of the exchange */

/* Frees the stream.  If the session is stopped, wakes its connection, which may close now. */
static void
h2_stream_leave(struct h2_stream *sm)
{
	struct h2_owner ho = sm->sm_session->h2_owner;
	bool stopped = sm->sm_session->h2_stopped;

	h2_stream_destroy(sm);
	if (stopped)
		ho.ho_wake(ho.ho_arg);
}

static void
h2_stream_on_resumed(struct exchange *ex)
{
	struct h2_stream *sm = ex->ex_owner;

	sm->sm_session->h2_pending--;
	if (sm->sm_closed) {
		h2_stream_leave(sm);
		return;
	}
	if (ex->ex_cancelled) {
		exchange_free(&sm->sm_ex);
		h2_stream_give_more_back(sm);
		return;
	}
	h2_stream_timer(sm, TIMER_NONE);
	h2_stream_set_due(sm);
}

/* Returns false, because the session itself announces the close (h2_drain). */
static bool
h2_stream_is_last(const struct exchange *ex)
{
	(void)ex;
	return false;
}

/* Submits a complete response: `text` has the head and the page. */
static bool
h2_stream_send_now(struct exchange *ex, const char *text, size_t len)
{
	struct h2_stream *sm = ex->ex_owner;
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	size_t head = (size_t)(end - text) + 4;

	buf_add(&sm->sm_rest, h2_stream_bufs(sm), text, len);
	if (sm->sm_rest.b_failed ||
	    !h2_stream_submit(sm, sm->sm_rest.b_data, head, len > head))
		return false;
	sm->sm_rest_at = head;
	sm->sm_state = H2_LATE;
	return true;
}

/*
 * Returns 0 while a window is closed, since the client may never open it.  Beyond its window a client
 * gets as many bytes fetched in advance as it has accepted, so a small window does not slow it down.
 */
static uint64_t
h2_stream_reach(const struct exchange *ex)
{
	const struct h2_stream *sm = ex->ex_owner;
	int32_t window = h2_stream_window(sm);

	return window > 0 ? (uint64_t)window + sm->sm_sent : 0;
}

static bool
h2_stream_reserve(struct exchange *ex, size_t bytes)
{
	return h2_hold_more(ex->ex_owner, bytes);
}

static const struct exchange_ops exchange_ops = {
    .resumed = h2_stream_on_resumed,
    .last = h2_stream_is_last,
    .send_now = h2_stream_send_now,
    .reach = h2_stream_reach,
    .reserve = h2_stream_reserve};
