/*
 * stream: see stream.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/known.h"
#include "server/content/pace.h"
#include "server/http/body.h"
#include "server/http/head.h"
#include "server/http2/hold.h"
#include "server/http2/stream.h"
#include "server/worker/worker.h"

#define STEPS  4  /* of an answer for one frame */
#define FIELDS 48 /* of an answer's head, without allocating */

static struct worker *
worker_of(const struct h2_stream *sm)
{
	return sm->sm_session->h2_owner.ho_worker;
}

static struct buf_list *
bufs_of(const struct h2_stream *sm)
{
	return &worker_of(sm)->wk_service.svc_bufs;
}

static void
set_timer(struct h2_stream *sm, enum timer timer)
{
	sched_timer(&worker_of(sm)->wk_sched, &sm->sm_item, timer);
}

/* ---------------------------------------------------------------- its turns */

static void
ask_turn(const struct h2_stream *sm)
{
	const struct h2_owner *ho = &sm->sm_session->h2_owner;

	if (!sm->sm_session->h2_stopped)
		ho->ho_turn(ho->ho_arg);
}

static void
set_due(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;

	if (sm->sm_due)
		return;
	sm->sm_due = true;
	TAILQ_INSERT_TAIL(&h2->h2_due, sm, sm_turn);
	ask_turn(sm);
}

static void
unset_due(struct h2_stream *sm)
{
	if (sm->sm_due)
		TAILQ_REMOVE(&sm->sm_session->h2_due, sm, sm_turn);
	sm->sm_due = false;
}

static void
await_disk(struct h2_stream *sm)
{
	sm->sm_session->h2_pending++;
	set_timer(sm, TIMER_DISK);
	exchange_wait(sm->sm_ex);
}

/* False: not before the end of a pause. */
static bool
may_go_on(struct h2_stream *sm)
{
	uint64_t until = sm->sm_ex->ex_paced ? pace_wait(sm->sm_ex) : 0;

	if (until > 0)
		sched_pause(&worker_of(sm)->wk_sched, &sm->sm_item, until);
	return until == 0;
}

/* ---------------------------------------------------------------- its head */

/* Its answer may wait long for the client. */
static void
settle(struct h2_stream *sm)
{
	long kept = exchange_settle(sm->sm_ex, h2_hold_room(sm));

	if (kept < 0)
		return;
	h2_hold_keep(sm, (size_t)kept);
	h2_hold_free(sm);
}

/* -------------------------------------------------------------- its answer */

static ssize_t
on_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)session, (void)id, (void)buf, (void)arg;
	return h2_stream_read(source->ptr, len, flags);
}

/* False: no memory, or the stream has gone. */
static bool
submit_fields(struct h2_stream *sm, const nghttp2_nv *nv, size_t n, bool body)
{
	nghttp2_data_provider from = {{.ptr = sm}, on_read};

	return nghttp2_submit_response(sm->sm_session->h2_session, sm->sm_id,
		   nv, n, body ? &from : NULL) == 0;
}

static bool
submit(struct h2_stream *sm, char *head, size_t len, bool body)
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
	done = submit_fields(sm, nv, n, body);
	if (nv != fields)
		free(nv);
	return done;
}

/* Its client may close the window, and keep all that the stream has. */
static void
watch(struct h2_stream *sm)
{
	if (sm->sm_item.it_timer != TIMER_NONE)
		return;
	sm->sm_then = sm->sm_sent;
	sm->sm_all_then = sm->sm_session->h2_sent;
	set_timer(sm, TIMER_SEND);
}

static void
end_exchange(struct h2_stream *sm)
{
	sm->sm_session->h2_rate = sm->sm_ex->ex_rate;
	exchange_free(&sm->sm_ex);
	h2_hold_free(sm);
	set_timer(sm, TIMER_NONE);
	sm->sm_state = H2_DONE;
}

/* A reset: the client is to know that this is not the end. */
static void
give_up(struct h2_stream *sm, uint32_t error)
{
	sm->sm_ours = true;
	set_timer(sm, TIMER_NONE);
	h2_reset(sm->sm_session, sm->sm_id, error);
}

/* More than the client's windows have room for. */
static bool
waits_for_window(const struct h2_stream *sm)
{
	nghttp2_session *session = sm->sm_session->h2_session;
	const struct response *rs = &sm->sm_ex->ex_response;
	off_t len = rs->rs_send.snd_len + (off_t)rs->rs_body.s_len;

	return len > nghttp2_session_get_stream_remote_window_size(
			 session, sm->sm_id) ||
	       len > nghttp2_session_get_remote_window_size(session);
}

static void
begin_body(struct h2_stream *sm, bool body)
{
	struct response *rs = &sm->sm_ex->ex_response;

	if (!submit(sm, rs->rs_head.b_data, rs->rs_head_len, body))
		give_up(sm, NGHTTP2_INTERNAL_ERROR);
	else {
		response_head_given(sm->sm_ex);
		exchange_sent(sm->sm_ex);
		if (body) {
			sm->sm_state = H2_BODY;
			watch(sm);
			if (sm->sm_heavy > 0 || waits_for_window(sm))
				settle(sm);
		} else
			end_exchange(sm);
	}
}

/* All of it; nothing that could fail any more. */
static bool
is_in_memory(const struct response *rs)
{
	return rs->rs_nranges == 0 && rs->rs_stream == NULL &&
	       rs->rs_send.snd_error == 0;
}

/*
 * Nothing is taken: this asks whether there are bytes that can be sent, so that an answer whose
 * first ones cannot be read is another one, as with HTTP/1.
 */
static void
first_step(struct h2_stream *sm)
{
	const struct response *rs = &sm->sm_ex->ex_response;
	enum pw_send_status status;

	if (!may_go_on(sm))
		return;
	if (is_in_memory(rs)) {
		begin_body(sm, rs->rs_send.snd_mem_len + rs->rs_body.s_len > 0);
		return;
	}
	sm->sm_room = 0;
	status = response_step(sm->sm_ex);
	switch (status) {
	case PW_SEND_DONE:
		begin_body(sm, false);
		return;
	case PW_SEND_WANT_WRITE:
		begin_body(sm, true);
		return;
	case PW_SEND_AGAIN:
		if (may_go_on(sm))
			set_due(sm);
		return;
	case PW_SEND_PENDING:
		sm->sm_ex->ex_looks = 0;
		await_disk(sm);
		return;
	case PW_SEND_ERROR:
		break;
	}
	if (response_replaced(sm->sm_ex))
		set_due(sm);
	else
		give_up(sm, NGHTTP2_INTERNAL_ERROR);
}

static void
looked_up(struct h2_stream *sm, bool ready)
{
	sm->sm_state = ready ? H2_FIRST : H2_LOOKUP;
	if (ready)
		first_step(sm);
	else
		await_disk(sm);
}

/* ------------------------------------------------------------- its request */

static struct str
first_line(const struct buf *text)
{
	const char *end = memchr(text->b_data, '\r', text->b_len);

	return (struct str){
	    text->b_data, end == NULL ? 0 : (size_t)(end - text->b_data)};
}

static int
check_head(const struct h2_stream *sm)
{
	const struct conf *conf = worker_of(sm)->wk_service.svc_conf;
	const struct head_limits limits = {
	    conf->conf_max_head, conf->conf_max_target, conf->conf_max_fields};
	const struct buf *text = &sm->sm_head.hh_text;
	struct head head = {0};
	int status = head_check(text->b_data, text->b_len, &limits, &head);

	if (status == 0 && sm->sm_head.hh_two_hosts)
		return 400;
	return status == HEAD_MORE ? 431 : status;
}

static void
refuse(struct h2_stream *sm, int status)
{
	static const struct head_limits all = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
	const struct buf *text = &sm->sm_head.hh_text;
	struct request *rq = &sm->sm_ex->ex_request;
	struct str line;

	head_find(
	    text->b_data, text->b_len, 0, &all, &rq->rq_target, &rq->rq_host);
	rq->rq_line = first_line(text);
	h2_head_mark(&sm->sm_head, rq->rq_line.s_len);
	line = rq->rq_line;
	rq->rq_method =
	    str_skip(&line, STR("HEAD ")) ? METHOD_HEAD : METHOD_OTHER;
	exchange_refuse(sm->sm_ex, status);
	looked_up(sm, true);
}

static void
learn(struct h2_stream *sm)
{
	const struct buf *text = &sm->sm_head.hh_text;

	known_learn(worker_of(sm)->wk_header_cache, &sm->sm_session->h2_known,
	    sm->sm_ex, (struct str){text->b_data, text->b_len},
	    sm->sm_session->h2_owner.ho_proxied);
}

static void
answer(struct h2_stream *sm)
{
	struct exchange *ex = sm->sm_ex;
	struct request *rq = &ex->ex_request;
	struct buf *text = &sm->sm_head.hh_text;
	int status = check_head(sm);
	bool ready;

	if (status == 0)
		status =
		    request_parse(rq, (struct str){text->b_data, text->b_len},
			BODY_DATA, bufs_of(sm));
	rq->rq_http10 = false;
	rq->rq_keepalive = rq->rq_framed = true;
	if (sm->sm_session->h2_owner.ho_proxied)
		exchange_name_client(ex);
	if (status != 0 && status != 405 && status != 413) {
		refuse(sm, status);
		return;
	}
	h2_head_mark(&sm->sm_head, rq->rq_line.s_len);
	h2_hold_weigh(sm);
	ready = exchange_answer(ex, status);
	if (ex->ex_response.rs_ready != NULL)
		learn(sm);
	looked_up(sm, ready);
}

static const struct exchange_ops exchange_ops;

static bool
begin(struct h2_stream *sm)
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
		watch(sm);
		return submit_fields(sm, fields, n, body);
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
	answer(sm);
	return true;
}

void
h2_stream_begin(struct h2_stream *sm)
{
	sm->sm_state = H2_NEW;
	(void)h2_head_end(&sm->sm_head, bufs_of(sm));
	h2_hold_weigh(sm);
	set_due(sm);
}

/* ------------------------------------------------------------------ its turn */

static void
resume_body(struct h2_stream *sm)
{
	watch(sm);
	if (nghttp2_session_resume_data(
		sm->sm_session->h2_session, sm->sm_id) == NGHTTP2_ERR_NOMEM)
		h2_break(sm->sm_session);
}

void
h2_stream_run(struct h2_stream *sm)
{
	unset_due(sm);
	switch (sm->sm_state) {
	case H2_NEW:
		if (!begin(sm))
			give_up(sm, NGHTTP2_INTERNAL_ERROR);
		break;
	case H2_LOOKUP:
		looked_up(sm, exchange_continue(sm->sm_ex));
		break;
	case H2_FIRST:
		first_step(sm);
		break;
	case H2_BODY:
		resume_body(sm);
		break;
	case H2_HEAD:
	case H2_READY:
	case H2_LATE:
	case H2_DONE:
		break;
	}
}

/* --------------------------------------------------------------- its frames */

static struct h2_stream *
stream_of(struct pw_sink *sk)
{
	return (
	    struct h2_stream *)(void *)((char *)sk -
					offsetof(struct h2_stream, sm_sink));
}

static char *
sink_room(struct pw_sink *sk, size_t *room)
{
	struct h2_stream *sm = stream_of(sk);

	*room = sm->sm_room;
	return sm->sm_to;
}

static int
sink_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct h2_stream *sm = stream_of(sk);
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

/* It is copied: nothing of the page cache is needed any more. */
static long
sink_unacked(struct pw_sink *sk)
{
	(void)sk;
	return 0;
}

static const struct pw_sink_ops sink_ops = {
    .take = sink_take, .unacked = sink_unacked, .room = sink_room};

/* Steps until the frame is full, or there is no more for now. */
static enum pw_send_status
fill(struct h2_stream *sm)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	for (int n = 0; n < STEPS && status == PW_SEND_AGAIN; n++) {
		if (!may_go_on(sm))
			return PW_SEND_PENDING;
		status = response_step(sm->sm_ex);
		exchange_sent(sm->sm_ex);
	}
	if (status == PW_SEND_PENDING) {
		sm->sm_ex->ex_looks = 0;
		await_disk(sm);
	}
	return status;
}

/* Of a frame for which the client's windows have room: what the answer has now. */
static ssize_t
read_answer(struct h2_stream *sm, uint32_t *flags)
{
	enum pw_send_status status = PW_SEND_ERROR;

	if (!sm->sm_failed)
		status = fill(sm);
	if (status == PW_SEND_DONE) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		end_exchange(sm);
	} else if (status == PW_SEND_ERROR) {
		sm->sm_failed = true;
		if (sm->sm_taken == 0) {
			if (sm->sm_ex->ex_response.rs_send.snd_error != 0)
				(void)response_replaced(sm->sm_ex);
			sm->sm_ours = sm->sm_session->h2_tore = true;
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	} else if (status != PW_SEND_PENDING && sm->sm_taken == 0)
		set_due(sm);
	if (sm->sm_taken == 0 && status != PW_SEND_DONE)
		return NGHTTP2_ERR_DEFERRED;
	return (ssize_t)sm->sm_taken;
}

static ssize_t
read_rest(struct h2_stream *sm, uint32_t *flags)
{
	size_t left = sm->sm_rest.b_len - sm->sm_rest_at;
	size_t n = left < sm->sm_room ? left : sm->sm_room;

	memcpy(sm->sm_to, sm->sm_rest.b_data + sm->sm_rest_at, n);
	sm->sm_rest_at += n;
	if (n == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* The kernel's or the client's turn to say that it goes on. */
static bool
is_held_up(const struct h2_stream *sm)
{
	return sm->sm_due || sm->sm_ex->ex_pending ||
	       sm->sm_item.it_timer == TIMER_PAUSE;
}

static ssize_t
read_some(struct h2_stream *sm, uint32_t *flags)
{
	ssize_t n;

	if (sm->sm_state == H2_LATE)
		return read_rest(sm, flags);
	if (sm->sm_state != H2_READY)
		return is_held_up(sm) ? NGHTTP2_ERR_DEFERRED
				      : read_answer(sm, flags);
	n = h2_ready_read(sm, flags);
	if (*flags & NGHTTP2_DATA_FLAG_EOF) {
		set_timer(sm, TIMER_NONE);
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
	n = read_some(sm, flags);
	sm->sm_to = NULL;
	sm->sm_room = 0;
	if (n >= 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
		sm->sm_sent += (uint64_t)n;
		h2->h2_sent += (uint64_t)n;
	}
	return n;
}

/* ------------------------------------------------------ a request's body */

/* A client that sends on when it has its answer is told to stop (RFC 9113, 8.1). */
static void
stop_body(struct h2_stream *sm)
{
	if (sm->sm_state == H2_DONE && sm->sm_body > BODY_DATA / 2)
		give_up(sm, NGHTTP2_NO_ERROR);
}

void
h2_stream_discard(struct h2_stream *sm, size_t len)
{
	sm->sm_body += len;
	if (!sm->sm_ours)
		stop_body(sm);
}

void
h2_stream_answered(struct h2_stream *sm)
{
	sm->sm_state = H2_DONE;
	set_timer(sm, TIMER_SEND);
	stop_body(sm);
}

/* --------------------------------------------------------------------- time */

/*
 * The disk does not answer: the client is told, and the exchange ends for nobody.  One that
 * has begun can only be reset.
 */
static void
disk_late(struct h2_stream *sm)
{
	struct exchange *ex = sm->sm_ex;

	if (exchange_has_patience(ex)) {
		set_timer(sm, TIMER_DISK);
		return;
	}
	exchange_disk_late(ex);
	if (sm->sm_state != H2_BODY)
		exchange_503(ex);
	if (sm->sm_state == H2_LATE)
		watch(sm);
	else
		give_up(sm, NGHTTP2_INTERNAL_ERROR);
	exchange_cancel(ex);
	h2_hold_free(sm);
	ask_turn(sm);
}

static bool
has_no_window(const struct h2_stream *sm)
{
	return nghttp2_session_get_stream_remote_window_size(
		   sm->sm_session->h2_session, sm->sm_id) <= 0;
}

/* Bytes that min_send_rate asks of the connection in a send_timeout. */
static uint64_t
least(const struct h2_stream *sm)
{
	const struct worker *wk = worker_of(sm);
	uint64_t ms = wk->wk_sched.sc_timeouts[TIMER_SEND] / 1000;

	return ms * wk->wk_service.svc_conf->conf_min_send_rate / 1000;
}

static bool
is_too_few(uint64_t n, uint64_t wanted)
{
	return n == 0 || n < wanted;
}

/*
 * A stream whose window the client has closed is as a connection of HTTP/1 whose socket is full.  Its
 * client is slow on purpose if it has acknowledged all that was sent.  If it has not, its link is
 * slow, and its streams share what is asked of it.
 */
static uint64_t
least_of_stream(const struct h2_stream *sm)
{
	const struct h2 *h2 = sm->sm_session;

	return pw_unacked(h2->h2_owner.ho_fd) > RESPONSE_SHARE
		   ? least(sm) / h2->h2_open
		   : least(sm);
}

/*
 * Where the closed window is that of the connection, other streams may have had all.  If both are
 * open, it is the connection that is slow, or its turn that is late.
 */
static bool
is_too_slow(const struct h2_stream *sm)
{
	const struct h2 *h2 = sm->sm_session;

	if (has_no_window(sm))
		return is_too_few(
		    sm->sm_sent - sm->sm_then, least_of_stream(sm));
	return nghttp2_session_get_remote_window_size(h2->h2_session) <= 0 &&
	       is_too_few(h2->h2_sent - sm->sm_all_then, least(sm));
}

static void
client_late(struct h2_stream *sm)
{
	struct stats *sta = &worker_of(sm)->wk_service.svc_stats;

	if (sm->sm_state == H2_DONE) {
		give_up(sm, NGHTTP2_NO_ERROR);
		ask_turn(sm);
		return;
	}
	if (!is_too_slow(sm)) {
		watch(sm);
		return;
	}
	stat_add(sm->sm_sent == sm->sm_then ? &sta->sta_timeout[TIMER_SEND]
					    : &sta->sta_capped[CAP_RATE],
	    1);
	give_up(sm, NGHTTP2_CANCEL);
	ask_turn(sm);
}

static struct h2_stream *
stream_of_item(const struct sched_item *it)
{
	return (struct h2_stream *)(void *)(uintptr_t)it;
}

static void
on_timeout(struct sched_item *it, enum timer timer)
{
	struct h2_stream *sm = stream_of_item(it);

	if (timer == TIMER_DISK)
		disk_late(sm);
	else
		client_late(sm);
}

/* A pause has ended. */
static void
on_turn(struct sched_item *it)
{
	set_due(stream_of_item(it));
}

#ifdef PW_DEBUG
/* Its session is asked: h2_check. */
static void
on_check(const struct sched_item *it)
{
	(void)it;
}
#endif

static const struct sched_ops sched_ops = {
    .run = on_turn,
    .timeout = on_timeout,
#ifdef PW_DEBUG
    .check = on_check,
#endif
};

/* ------------------------------------------------------------ begin and end */

struct h2_stream *
h2_stream_create(struct h2 *h2, int32_t id)
{
	struct h2_stream *sm = calloc(1, sizeof(*sm));

	if (sm == NULL)
		return NULL;
	sm->sm_item.it_ops = &sched_ops;
	sm->sm_sink.sk_ops = &sink_ops;
	sm->sm_session = h2;
	sm->sm_id = id;
	TAILQ_INSERT_TAIL(&h2->h2_all, sm, sm_all);
	h2->h2_count++;
	h2->h2_open++;
	sched_add_part(&h2->h2_owner.ho_worker->wk_sched, &sm->sm_item);
	return sm;
}

static void
destroy(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;

	h2_ready_end(sm);
	exchange_free(&sm->sm_ex);
	h2_hold_free(sm);
	h2_hold_keep(sm, 0);
	buf_release(&sm->sm_rest, bufs_of(sm));
	unset_due(sm);
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
	if (h2->h2_heading == sm)
		h2->h2_heading = NULL;
	if (sm->sm_ex == NULL || !sm->sm_ex->ex_pending) {
		destroy(sm);
		return;
	}
	set_timer(sm, TIMER_NONE);
	/* A disk that was late has cancelled it already. */
	if (!sm->sm_ex->ex_cancelled)
		exchange_cancel(sm->sm_ex);
	h2_hold_free(sm);
}

/* ------------------------------------------------- calls of its exchange */

/* The last one of a connection that has gone takes that with it. */
static void
leave(struct h2_stream *sm)
{
	struct h2_owner ho = sm->sm_session->h2_owner;
	bool stopped = sm->sm_session->h2_stopped;

	destroy(sm);
	if (stopped)
		ho.ho_turn(ho.ho_arg);
}

static void
on_resumed(struct exchange *ex)
{
	struct h2_stream *sm = ex->ex_owner;

	sm->sm_session->h2_pending--;
	if (sm->sm_closed) {
		leave(sm);
		return;
	}
	if (ex->ex_cancelled) {
		exchange_free(&sm->sm_ex);
		return;
	}
	set_timer(sm, TIMER_NONE);
	set_due(sm);
}

/* The session says it, see h2_drain. */
static bool
last(const struct exchange *ex)
{
	(void)ex;
	return false;
}

/* The text of a whole answer: a head and its page. */
static bool
send_now(struct exchange *ex, const char *text, size_t len)
{
	struct h2_stream *sm = ex->ex_owner;
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	size_t head = (size_t)(end - text) + 4;

	buf_add(&sm->sm_rest, bufs_of(sm), text, len);
	if (sm->sm_rest.b_failed ||
	    !submit(sm, sm->sm_rest.b_data, head, len > head))
		return false;
	sm->sm_rest_at = head;
	sm->sm_state = H2_LATE;
	return true;
}

static const struct exchange_ops exchange_ops = {
    .resumed = on_resumed, .last = last, .send_now = send_now};
