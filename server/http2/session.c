/*
 * session: see session.h.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/http2/stream.h"
#include "server/worker/worker.h"

#define STREAMS_PER_TURN 32
#define HEADS \
	4 /* times max_head: what a client may make us decode for one request */
#define ACKS 64 /* of SETTINGS and PING that wait for room in the socket */

static const struct conf *
conf_of(const struct h2 *h2)
{
	return h2->h2_owner.ho_worker->wk_service.svc_conf;
}

static struct buf_list *
bufs_of(const struct h2 *h2)
{
	return &h2->h2_owner.ho_worker->wk_service.svc_bufs;
}

static struct h2_stream *
find(const struct h2 *h2, int32_t id)
{
	return nghttp2_session_get_stream_user_data(h2->h2_session, id);
}

/* ------------------------------------------------------------------ abuse */

static void
tell_flood(struct h2 *h2)
{
	struct worker *wk = h2->h2_owner.ho_worker;
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell(&wk->wk_told_frames, clock_now()))
		return;
	*sockaddr_text(text, h2->h2_owner.ho_peer) = '\0';
	log_warn(wk->wk_service.svc_log,
	    "ended a connection of HTTP/2 from %s: more frames that ask for "
	    "nothing than a client needs",
	    text);
}

/* Counted once; the rest of what it sends is not looked at. */
static void
calm_down(struct h2 *h2)
{
	struct worker *wk = h2->h2_owner.ho_worker;

	if (h2->h2_failed)
		return;
	stat_add(&wk->wk_service.svc_stats.sta_capped[CAP_FRAMES], 1);
	tell_flood(h2);
	h2_fail(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void
pay(struct h2 *h2, unsigned tokens)
{
	if (!h2_flood_pay(&h2->h2_flood, tokens, clock_now()))
		calm_down(h2);
}

/* -------------------------------------------------------------- what comes */

/*
 * A stream that has ended, or that was passed over (RFC 9113, 5.1 and 5.1.1).  What was under way when
 * we have reset one is none of these: we do not know for which.
 */
static bool
is_too_late(const struct h2 *h2, const struct h2_walk_frame *wf)
{
	return (wf->wf_type == NGHTTP2_HEADERS ||
		   wf->wf_type == NGHTTP2_DATA) &&
	       wf->wf_stream > 0 && wf->wf_stream <= h2->h2_last &&
	       !h2->h2_tore && find(h2, wf->wf_stream) == NULL;
}

/* What a request asks for and the bytes of its body are its price; libnghttp2 names not all others. */
static bool
asks_for_nothing(const struct h2_walk_frame *wf)
{
	return wf->wf_type == NGHTTP2_DATA
		   ? wf->wf_len == 0
		   : wf->wf_type != NGHTTP2_HEADERS &&
			 wf->wf_type != NGHTTP2_CONTINUATION;
}

/* What libnghttp2 passes over: closed streams are not kept, and old priorities mean nothing. */
static void
check_frame(struct h2 *h2, const struct h2_walk_frame *wf)
{
	if (asks_for_nothing(wf))
		pay(h2, H2_FLOOD_FRAME);
	if (wf->wf_type == NGHTTP2_PRIORITY &&
	    (wf->wf_stream == 0 || wf->wf_stream == wf->wf_depends))
		h2_fail(h2, NGHTTP2_PROTOCOL_ERROR);
	else if (is_too_late(h2, wf))
		h2_fail(h2, wf->wf_type == NGHTTP2_DATA
				? NGHTTP2_STREAM_CLOSED
				: NGHTTP2_PROTOCOL_ERROR);
}

static int
on_begin_headers(
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
	/* Those that were reset may still wait for a disk. */
	if (h2->h2_count >= 2 * conf_of(h2)->conf_http2_max_streams) {
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
text_of(nghttp2_rcbuf *rb)
{
	nghttp2_vec v = nghttp2_rcbuf_get_buf(rb);

	return (struct str){(const char *)v.base, v.len};
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame,
    nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm = find(h2, frame->hd.stream_id);
	size_t most = conf_of(h2)->conf_max_head;

	(void)session, (void)flags;
	if (sm != NULL && sm->sm_state == H2_HEAD)
		h2_head_add(&sm->sm_head, bufs_of(h2), text_of(name),
		    text_of(value), most);
	h2->h2_fields += text_of(name).s_len + text_of(value).s_len + 32;
	if (h2->h2_fields <= HEADS * (most + BUF_SIZE))
		return 0;
	/* A byte may name an entry of 4 KiB in the table, in trailers, too: no more of it. */
	calm_down(h2);
	return NGHTTP2_ERR_PAUSE;
}

/* By RFC 9218, 4.2, streams without a priority come one after the other.  Here they share. */
static void
share(struct h2 *h2, int32_t id)
{
	nghttp2_extpri pri = {
	    .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};

	nghttp2_session_change_extpri_stream_priority(
	    h2->h2_session, id, &pri, 0);
}

static void
head_complete(struct h2 *h2, struct h2_stream *sm)
{
	const struct conf *conf = conf_of(h2);

	h2->h2_heading = NULL;
	/* It was on its way when the client was told: it may ask for it elsewhere. */
	if (h2->h2_refuses) {
		sm->sm_ours = true;
		h2_reset(h2, sm->sm_id, NGHTTP2_REFUSED_STREAM);
		return;
	}
	if (!sm->sm_head.hh_priority)
		share(h2, sm->sm_id);
	h2_stream_begin(sm);
	h2->h2_requests++;
	stat_add(
	    &h2->h2_owner.ho_worker->wk_service.svc_stats.sta_h2_streams, 1);
	if (h2->h2_requests != conf->conf_max_requests)
		return;
	stat_add(&h2->h2_owner.ho_worker->wk_service.svc_stats
		      .sta_capped[CAP_REQUESTS],
	    1);
	h2_refuse(h2);
}

/* An answer that has ended costs no more; one that was asked for in vain does. */
static void
pay_reset(struct h2 *h2, const struct h2_stream *sm)
{
	if (sm->sm_state != H2_DONE && !sm->sm_ours)
		pay(h2, H2_FLOOD_RESET);
}

static int
on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm = find(h2, frame->hd.stream_id);

	(void)session;
	if (sm == NULL)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && sm->sm_state == H2_HEAD)
		head_complete(h2, sm);
	else if (frame->hd.type == NGHTTP2_RST_STREAM &&
		 frame->rst_stream.error_code == NGHTTP2_NO_ERROR)
		pay_reset(h2, sm);
	return 0;
}

static int
on_invalid_frame(
    nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
	(void)session, (void)frame;
	/* It may not know yet how many streams it may begin. */
	pay(arg, error == NGHTTP2_ERR_REFUSED_STREAM ? H2_FLOOD_FRAME
						     : H2_FLOOD_RESET);
	return 0;
}

/*
 * A body is discarded.  Its stream's window is not opened again, so it is no longer than that; the
 * connection's is.
 */
static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *data, size_t len, void *arg)
{
	struct h2_stream *sm = find(arg, id);

	(void)flags, (void)data;
	if (sm != NULL)
		h2_stream_discard(sm, len);
	return nghttp2_session_consume_connection(session, len);
}

static int
on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm = find(h2, id);

	(void)session;
	if (sm == NULL)
		return 0;
	/* One that ends in order has this error, too: see on_frame_recv. */
	if (error != NGHTTP2_NO_ERROR)
		pay_reset(h2, sm);
	h2_stream_closed(sm);
	return 0;
}

/* --------------------------------------------------------------- what goes */

/* A frame with its head is one record of TLS. */
static ssize_t
on_length(nghttp2_session *session, uint8_t type, int32_t id, int32_t window,
    int32_t stream_window, uint32_t most, void *arg)
{
	ssize_t n = H2_DATA;

	(void)session, (void)type, (void)id, (void)arg;
	if (n > window)
		n = window;
	if (n > stream_window)
		n = stream_window;
	return n > (ssize_t)most ? (ssize_t)most : n;
}

/* The bytes are in their place: see h2_stream_read. */
static int
on_send_data(nghttp2_session *session, nghttp2_frame *frame,
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
on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h2 = arg;
	struct h2_stream *sm;

	/* Of libnghttp2's own, too. */
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		h2->h2_tore = true;
	if ((frame->hd.type != NGHTTP2_DATA &&
		frame->hd.type != NGHTTP2_HEADERS) ||
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	h2_flood_earn(&h2->h2_flood, H2_FLOOD_ANSWER);
	sm = find(h2, frame->hd.stream_id);
	if (sm != NULL && nghttp2_session_get_stream_remote_close(
			      session, frame->hd.stream_id) == 0)
		h2_stream_answered(sm);
	return 0;
}

/* ----------------------------------------------------------- begin and end */

static nghttp2_session_callbacks *
callbacks(void)
{
	nghttp2_session_callbacks *cb;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_headers_callback(
	    cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback2(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
	    cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(
	    cb, on_stream_close);
	nghttp2_session_callbacks_set_data_source_read_length_callback(
	    cb, on_length);
	nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	return cb;
}

static nghttp2_option *
options(void)
{
	nghttp2_option *op;

	if (nghttp2_option_new(&op) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(op, 1);
	nghttp2_option_set_no_closed_streams(op, 1);
	nghttp2_option_set_max_outbound_ack(op, ACKS);
	nghttp2_option_set_builtin_recv_extension_type(
	    op, NGHTTP2_PRIORITY_UPDATE);
	return op;
}

static bool
begin(struct h2 *h2)
{
	const struct conf *conf = conf_of(h2);
	const nghttp2_settings_entry settings[] = {
	    {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		conf->conf_http2_max_streams},
	    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
		(uint32_t)conf->conf_max_head},
	    {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	nghttp2_session_callbacks *cb = callbacks();
	nghttp2_option *op = options();
	bool done =
	    cb != NULL && op != NULL &&
	    nghttp2_session_server_new2(&h2->h2_session, cb, h2, op) == 0;

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
	stat_add(&ho->ho_worker->wk_service.svc_stats.sta_h2_connections, 1);
	if (!begin(h2))
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
	/* Its calls of on_stream_close would find none of them. */
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

/* ------------------------------------------------------------------- calls */

/* It is no HTTP/2; or there is no memory, for which alone a callback fails. */
static void
give(struct h2 *h2, const unsigned char *data, size_t len)
{
	ssize_t n = 0;

	if (len > 0 && !h2->h2_failed)
		n = nghttp2_session_mem_recv(h2->h2_session, data, len);
	/* It does not read what it has asked for. */
	if (n == NGHTTP2_ERR_FLOODED)
		calm_down(h2);
	else if (n == NGHTTP2_ERR_NOMEM || n == NGHTTP2_ERR_CALLBACK_FAILURE)
		h2_break(h2);
	else if (n < 0)
		h2_fail(h2, NGHTTP2_PROTOCOL_ERROR);
}

/* A request whose head would be one too many waits, and all behind it. */
static bool
must_wait(struct h2 *h2, const struct h2_walk_frame *wf)
{
	return wf->wf_type == NGHTTP2_HEADERS && !h2->h2_failed &&
	       h2_is_laden(h2);
}

/* Each frame is looked at when those before it have had their effect. */
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
		give(h2, data + given, begin - given);
		given = begin;
		if (!h2->h2_failed)
			check_frame(h2, &frame);
		if (must_wait(h2, &frame)) {
			h2->h2_ahead = at - begin;
			*taken = begin;
			return true;
		}
	}
	give(h2, data + given, len - given);
	return !h2->h2_failed;
}

bool
h2_run(struct h2 *h2)
{
	struct h2_stream *sm;

	for (int n = 0; n < STREAMS_PER_TURN; n++) {
		sm = TAILQ_FIRST(&h2->h2_due);
		if (sm == NULL || h2->h2_broken)
			return false;
		if (h2->h2_queued > H2_QUEUED)
			return true;
		h2_stream_run(sm);
	}
	return !TAILQ_EMPTY(&h2->h2_due);
}

static void
put(struct h2 *h2, const uint8_t *data, size_t len)
{
	memcpy(h2->h2_out + h2->h2_len, data, len);
	h2->h2_len += len;
}

/* Frames, until there is no room for one more. */
static void
gather(struct h2 *h2)
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
			put(h2, data, (size_t)n);
	}
}

size_t
h2_gather(struct h2 *h2, char *out, size_t room)
{
	h2->h2_out = out;
	h2->h2_room = room;
	h2->h2_len = 0;
	if (h2->h2_held_len > 0) {
		put(h2, h2->h2_held, h2->h2_held_len);
		h2->h2_held_len = 0;
	}
	gather(h2);
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

bool
h2_is_over(const struct h2 *h2)
{
	return !h2_wants_room(h2) &&
	       (h2->h2_failed ||
		   nghttp2_session_want_read(h2->h2_session) == 0);
}

void
h2_drain(struct h2 *h2)
{
	if (h2->h2_draining || h2->h2_refuses || h2->h2_failed)
		return;
	/* A request that crosses the GOAWAY has a higher number: its client may send it again. */
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

#ifdef PW_DEBUG
#include <stdio.h>

#define RULE(holds)                                                  \
	do {                                                         \
		if (!(holds)) {                                      \
			fprintf(stderr, "%s:%d: check failed: %s\n", \
			    "session.c", __LINE__, #holds);          \
			abort();                                     \
		}                                                    \
	} while (0)

/* Something is to come for each stream that has not ended. */
static void
check_stream(const struct h2_stream *sm)
{
	bool pending = sm->sm_ex != NULL && sm->sm_ex->ex_pending;

	RULE(!sm->sm_closed || pending);
	RULE(!sm->sm_due || !pending);
	if (sm->sm_closed || sm->sm_state == H2_HEAD ||
	    sm->sm_state == H2_DONE || sm->sm_state == H2_LATE || sm->sm_ours)
		return;
	RULE(pending || sm->sm_due || sm->sm_item.it_queued ||
	     sm->sm_item.it_timer != TIMER_NONE);
	RULE(!pending || sm->sm_item.it_timer == TIMER_DISK);
}

void
h2_check(const struct h2 *h2)
{
	const struct h2_stream *sm;
	unsigned count = 0, open = 0, pending = 0;
	size_t heads = 0, kept = 0;

	TAILQ_FOREACH(sm, &h2->h2_all, sm_all)
	{
		check_stream(sm);
		count++;
		open += !sm->sm_closed;
		heads += sm->sm_heavy;
		kept += sm->sm_kept;
		pending += sm->sm_ex != NULL && sm->sm_ex->ex_pending;
	}
	RULE(count == h2->h2_count);
	RULE(open == h2->h2_open);
	RULE(pending == h2->h2_pending);
	RULE(heads == h2->h2_heads);
	RULE(kept == h2->h2_kept);
}
#endif
