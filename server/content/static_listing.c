/*
 * static_listing: see static_listing.h.
 */
#include <errno.h>
#include <stddef.h>

#include "lib/util/clock.h"
#include "server/content/autoindex_stream.h"
#include "server/content/exchange.h"
#include "server/content/static_error.h"
#include "server/content/static_listing.h"

#define SECOND_US ((uint64_t)1000000)

/* Only resumes the exchange, because thousands of completions may arrive at once. */
static void
static_listing_on_block(struct autoindex_stream *st)
{
	struct exchange *ex = st->st_arg;

	exchange_resume(ex);
}

static bool
static_listing_streamed(struct exchange *ex)
{
	struct autoindex_stream *st = ex->ex_lookup.lk_stream;

	if (st->st_error != 0)
		return static_error_send(ex, st->st_error);
	ex->ex_lookup.lk_stream = NULL;
	response_stream(ex, st);
	return true;
}

static void
static_listing_cancel(struct exchange *ex)
{
	autoindex_stream_cancel(ex->ex_lookup.lk_stream);
}

static void
static_listing_defer_stream(struct exchange *ex)
{
	autoindex_stream_defer(ex->ex_lookup.lk_stream);
}

static const struct pending static_listing_block_pending = {
    .resume = static_listing_streamed,
    .cancel = static_listing_cancel,
    .defer = static_listing_defer_stream,
    PENDING_DISK,
};

static bool static_listing_stream(struct exchange *);

static const struct pending static_listing_memory_pending = {
    .resume = static_listing_stream,
};

static bool
static_listing_stream(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	struct autoindex_stream *st;
	int error;

	if (ex->ex_request.rq_method == METHOD_HEAD) {
		response_stream(ex, NULL);
		return true;
	}
	ex->ex_held = !exchange_reserve(ex, AUTOINDEX_STREAM_BYTES);
	if (ex->ex_held)
		return exchange_pend(ex, &static_listing_memory_pending);
	st = lk->lk_stream = autoindex_stream_create(&lk->lk_listing.li_place);
	if (st == NULL)
		return static_error_send(ex, -ENOMEM);
	st->st_loop = ex->ex_service->svc_loop;
	st->st_chunked = !ex->ex_request.rq_http10 && !ex->ex_request.rq_framed;
	st->st_done = static_listing_on_block;
	st->st_client = exchange_client_number(ex);
	st->st_arg = ex;
	error = autoindex_stream_next(st);
	return error == 0 ? exchange_pend(ex, &static_listing_block_pending)
			  : static_error_send(ex, error);
}

static void
static_listing_on_done(struct listing *li)
{
	struct exchange *ex =
	    (struct exchange *)(void *)((char *)li - offsetof(struct exchange,
							 ex_lookup.lk_listing));

	exchange_resume(ex);
}

static bool
static_listing_handle(struct exchange *ex, int error)
{
	struct listing *li = &ex->ex_lookup.lk_listing;

	if (error != 0 && error != -E2BIG)
		return static_error_send(ex, error);
	if (response_condition(ex)) {
		autoindex_cache_unref(&li->li_text);
		return true;
	}
	if (error == -E2BIG)
		return static_listing_stream(ex);
	response_listing(ex, li->li_text);
	li->li_text = NULL;
	return true;
}

static bool
static_listing_resume(struct exchange *ex)
{
	return static_listing_handle(ex, ex->ex_lookup.lk_listing.li_error);
}

static void
static_listing_leave(struct exchange *ex)
{
	autoindex_cache_leave(&ex->ex_lookup.lk_listing);
}

static void
static_listing_defer(struct exchange *ex)
{
	autoindex_cache_defer(&ex->ex_lookup.lk_listing);
}

static const struct pending static_listing_pending = {
    .resume = static_listing_resume,
    .cancel = static_listing_leave,
    .defer = static_listing_defer,
    PENDING_DISK,
};

static unsigned
static_listing_siblings(const struct settings *set)
{
	unsigned i, bits = 0;

	for (i = 0; i < set->set_ncodings; i++)
		bits |= 1u << set->set_codings[i];
	return bits;
}

bool
static_listing_begin(struct exchange *ex, struct place place)
{
	struct lookup *lk = &ex->ex_lookup;
	struct listing *li = &lk->lk_listing;
	int error;

	place.pl_root = lk->lk_root;
	place.pl_path = lk->lk_path.b_data;
	place.pl_title = ex->ex_target.tgt_path.s_ptr;
	place.pl_dotfiles = lk->lk_set->set_dotfiles;
	place.pl_dotnames = lk->lk_set->set_dotnames;
	place.pl_siblings = static_listing_siblings(lk->lk_set);
	place.pl_digests = lk->lk_set->set_digest;
	if (lk->lk_set->set_listing_header[0] != '\0')
		place.pl_header = lk->lk_set->set_listing_header;
	place.pl_view =
	    view_parse(ex->ex_target.tgt_query, ex->ex_request.rq_accept);
	/*
	 * A listing that takes longer than half of disk_timeout is sent in blocks, so that the
	 * request does not time out.
	 */
	place.pl_patience_us =
	    ex->ex_service->svc_conf->conf_disk_timeout * SECOND_US / 2;
	li->li_place = place;
	li->li_done = static_listing_on_done;
	error = autoindex_cache_get(ex->ex_service->svc_listings,
	    ex->ex_service->svc_loop, li, clock_now(),
	    exchange_client_number(ex));
	if (error == -EINPROGRESS)
		return exchange_pend(ex, &static_listing_pending);
	return static_listing_handle(ex, error == 0 ? li->li_error : error);
}
