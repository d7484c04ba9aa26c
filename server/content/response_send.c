/*
 * response_send: sends a response in pieces.  A piece consists of bytes in memory and, optionally,
 * a range of the file.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "server/content/exchange.h"
#include "server/content/autoindex_cache.h"
#include "server/content/autoindex_stream.h"
#include "server/content/multipart.h"
#include "server/content/pace.h"
#include "server/content/ready.h"
#include "server/content/response_priv.h"

#define PIECES_PER_SLICE 8

static void
response_send_on_sent(struct pw_send *s)
{
	struct exchange *ex =
	    (struct exchange *)(void *)((char *)s - offsetof(struct exchange,
							ex_response.rs_send));

	if (!ex->ex_cancelled)
		ready_offer_read(ex);
	exchange_resume(ex);
}

unsigned
response_client(void *arg, const struct pw_send *s)
{
	const struct exchange *ex =
	    (const void *)((const char *)s -
			   offsetof(struct exchange, ex_response.rs_send));

	(void)arg;
	return exchange_client_number(ex);
}

static void
response_send_cancel(struct exchange *ex)
{
	pw_send_cancel(&ex->ex_response.rs_send);
}

static void
response_send_defer(struct exchange *ex)
{
	pw_send_defer(&ex->ex_response.rs_send);
}

static bool
response_send_is_slow(struct exchange *ex)
{
	return !pw_send_stuck(&ex->ex_response.rs_send);
}

static const struct pending response_send_pending = {
    .cancel = response_send_cancel,
    .defer = response_send_defer,
    .slow = response_send_is_slow,
    PENDING_DISK,
};

static void
response_send_cancel_block(struct exchange *ex)
{
	autoindex_stream_cancel(ex->ex_response.rs_stream);
}

static void
response_send_defer_block(struct exchange *ex)
{
	autoindex_stream_defer(ex->ex_response.rs_stream);
}

static const struct pending response_send_block_pending = {
    .cancel = response_send_cancel_block,
    .defer = response_send_defer_block,
    PENDING_DISK,
};

/*
 * Starts a piece: the `len` bytes at `mem`, then the range of the file that belongs to the piece.
 */
static void
response_send_piece_start(struct exchange *ex, const char *mem, size_t len)
{
	struct response *rs = &ex->ex_response;
	const struct settings *set = rs->rs_settings;
	struct pw_send *s = &rs->rs_send;

	*s = (struct pw_send){
	    .snd_path = set->set_send_path,
	    .snd_loop = ex->ex_service->svc_loop,
	    .snd_sock = ex->ex_sock,
	    .snd_sink = ex->ex_sink,
	    .snd_begun = rs->rs_sent > 0,
	    .snd_mem = mem,
	    .snd_mem_len = len,
	    .snd_rate = ex->ex_rate,
	    .snd_pace = ex->ex_paced ? pace_rate(ex) : 0,
	    .snd_done = response_send_on_sent,
	};
	if (rs->rs_piece < rs->rs_nranges) {
		s->snd_file = rs->rs_file;
		s->snd_off = rs->rs_ranges[rs->rs_piece].rng_off;
		s->snd_len = rs->rs_ranges[rs->rs_piece].rng_len;
		s->snd_readahead = set->set_readahead;
		s->snd_index = set->set_mp4_index;
		s->snd_grows = rs->rs_young;
		s->snd_cache = set->set_cache;
		s->snd_more = rs->rs_nranges > 1;
	} else if (rs->rs_piece == 0)
		s->snd_more = rs->rs_body.s_len > 0 || rs->rs_stream != NULL;
	pw_send_start(s);
}

/* Ends a piece, and stores the client's throughput for the next piece. */
static void
response_send_end(struct exchange *ex)
{
	struct pw_send *s = &ex->ex_response.rs_send;

	pw_send_finish(s);
	if (s->snd_rate > 0)
		ex->ex_rate = s->snd_rate;
}

void
response_start(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	size_t apart =
	    ex->ex_head_apart && rs->rs_piece == 0 ? rs->rs_head_len : 0;

	response_send_piece_start(
	    ex, rs->rs_head.b_data + apart, rs->rs_head.b_len - apart);
	if (rs->rs_head.b_failed)
		rs->rs_send.snd_error = -ENOMEM;
	if (ex->ex_trace != NULL)
		trace_response(ex);
}

void
response_head_given(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;

	rs->rs_sent += rs->rs_head_len;
	rs->rs_send.snd_begun = true;
}

void
response_ready(struct exchange *ex, struct cached_response *rsp, size_t sent)
{
	struct response *rs = &ex->ex_response;
	size_t body = sent > rsp->rsp_head ? sent - rsp->rsp_head : 0;

	*rs = (struct response){
	    .rs_status = 200,
	    .rs_settings = &ex->ex_service->svc_conf->conf_no_site,
	    .rs_head_len = rsp->rsp_head,
	    .rs_ready = rsp,
	    .rs_body = {rsp->rsp_text + rsp->rsp_head,
		rsp->rsp_len - rsp->rsp_head},
	    .rs_sent = sent,
	};
	response_cache_ref(rsp);
	if (sent >= rsp->rsp_head && body < rs->rs_body.s_len) {
		rs->rs_piece = 1;
		response_send_piece_start(
		    ex, rs->rs_body.s_ptr + body, rs->rs_body.s_len - body);
		return;
	}
	/*
	 * Copies the head, because the date in the cached head may change while this response is in
	 * flight.
	 */
	buf_add(&rs->rs_head, &ex->ex_service->svc_bufs, rsp->rsp_text,
	    rsp->rsp_head);
	if (rs->rs_head.b_failed) {
		response_start(ex);
		return;
	}
	response_send_piece_start(
	    ex, rs->rs_head.b_data + sent, rs->rs_head.b_len - sent);
}

static void
response_send_block_start(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;

	response_send_piece_start(
	    ex, rs->rs_stream->st_data, rs->rs_stream->st_len);
	rs->rs_send.snd_error = rs->rs_stream->st_error;
}

static void
response_send_on_block(struct autoindex_stream *st)
{
	struct exchange *ex = st->st_arg;

	if (!ex->ex_cancelled)
		response_send_block_start(ex);
	exchange_resume(ex);
}

/*
 * Starts to send the first block, which is ready when the head was sent.  Later starts to read the
 * next block.  Returns as response_send_next_piece does.
 */
static enum pw_send_status
response_send_next_block(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	struct autoindex_stream *st = rs->rs_stream;

	if (rs->rs_piece == 1) {
		response_send_block_start(ex);
		return PW_SEND_AGAIN;
	}
	if (st->st_end)
		return PW_SEND_DONE;
	st->st_done = response_send_on_block;
	rs->rs_send.snd_error = autoindex_stream_next(st);
	if (rs->rs_send.snd_error != 0)
		return PW_SEND_ERROR;
	exchange_pend(ex, &response_send_block_pending);
	return PW_SEND_PENDING;
}

/* Writes the head of the next part, or the closing delimiter after the last part. */
static void
response_send_next_part(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	char text[MULTIPART_HEAD];

	rs->rs_head.b_len = 0;
	multipart_head(rs, rs->rs_piece, text);
	buf_str(&rs->rs_head, &ex->ex_service->svc_bufs, text);
}

/*
 * Ends the current piece, and starts the next piece.  Returns PW_SEND_DONE if there is no next
 * piece, PW_SEND_AGAIN if the next piece has started, or PW_SEND_PENDING if the next piece must be
 * read first.
 */
static enum pw_send_status
response_send_next_piece(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;

	rs->rs_sent += rs->rs_send.snd_sent;
	response_send_end(ex);
	rs->rs_send.snd_sent = 0;
	rs->rs_piece++;
	if (rs->rs_stream != NULL)
		return response_send_next_block(ex);
	if (rs->rs_body.s_len > 0 && rs->rs_piece == 1) {
		response_send_piece_start(
		    ex, rs->rs_body.s_ptr, rs->rs_body.s_len);
		return PW_SEND_AGAIN;
	}
	if (rs->rs_nranges < 2 || rs->rs_piece > rs->rs_nranges)
		return PW_SEND_DONE;
	response_send_next_part(ex);
	response_start(ex);
	return PW_SEND_AGAIN;
}

/*
 * Returns true if the current piece uses rs_head.  The later pieces of a listing or of a body in
 * memory use other memory.
 */
static bool
response_send_sends_head(const struct exchange *ex)
{
	const struct response *rs = &ex->ex_response;
	bool other = rs->rs_body.s_len > 0 || rs->rs_stream != NULL;

	if (ex->ex_head_apart && rs->rs_sent == 0)
		return true;
	return rs->rs_send.snd_mem_len > 0 && !(rs->rs_piece > 0 && other);
}

static enum pw_send_status
response_send_step(struct exchange *ex)
{
	struct pw_send *s = &ex->ex_response.rs_send;
	enum pw_send_status status;

	if (ex->ex_paced) {
		s->snd_limit = pace_left(ex);
		if (s->snd_limit == 0)
			return PW_SEND_AGAIN;
	}
	if (ex->ex_ops->reach != NULL)
		pw_send_reach(s, ex->ex_ops->reach(ex));
	status = pw_send_step(s);
	if (status == PW_SEND_PENDING)
		exchange_pend(ex, &response_send_pending);
	return status;
}

enum pw_send_status
response_step(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	enum pw_send_status status;
	uint64_t turn = 0;
	int pieces = 0;

	while ((status = response_send_step(ex)) == PW_SEND_DONE) {
		turn += rs->rs_send.snd_sent;
		status = response_send_next_piece(ex);
		if (status != PW_SEND_AGAIN || turn > RESPONSE_SLICE ||
		    ++pieces == PIECES_PER_SLICE)
			break;
	}
	/* Frees the buffer of the sent head, because a slow client may take long. */
	if (status == PW_SEND_WANT_WRITE && !response_send_sends_head(ex))
		buf_release(&rs->rs_head, &ex->ex_service->svc_bufs);
	if (ex->ex_trace != NULL)
		trace_step(ex, status);
	return status;
}

void
response_finish(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;

	response_send_end(ex);
	buf_release(&rs->rs_head, &ex->ex_service->svc_bufs);
	if (rs->rs_ranges != &rs->rs_one)
		free(rs->rs_ranges);
	autoindex_cache_unref(&rs->rs_text);
	response_cache_unref(&rs->rs_ready);
	autoindex_stream_close(&rs->rs_stream);
	pw_file_unref(&rs->rs_file);
	*rs = (struct response){0};
}
