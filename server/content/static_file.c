/*
 * static_file: see static_file.h.  A path that ends in '/' names a directory: the lookup tries its
 * index files one after the other, then the directory itself.  With the key try, the lookup has
 * several steps; if a step finds no file, the next step follows.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/exchange.h"
#include "server/content/autoindex_stream.h"
#include "server/content/file_error.h"
#include "server/content/redirect.h"
#include "server/content/sibling.h"
#include "server/content/static_error.h"
#include "server/content/static_file.h"
#include "server/content/static_listing.h"

#define ROOMS 4

static bool static_file_find(struct exchange *);
static bool static_file_next_step(struct exchange *);
static bool static_file_not_found(struct exchange *, int error);

/* ------------------------------------------------------------------ lookup */

/*
 * Returns true if lk_path (an index file or a step of try) has settings other than the request's,
 * and these settings restrict access, or if memory is short.  The file then counts as missing.
 */
static bool
static_file_is_closed(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	struct buf_list *bufs = &ex->ex_service->svc_bufs;
	struct buf path = {0};
	const struct settings *set;
	bool closed = true;

	if (lk->lk_dir || lk->lk_coding != CODING_NONE)
		return false;
	buf_add(
	    &path, bufs, ex->ex_target.tgt_path.s_ptr, lk->lk_set->set_strip);
	buf_str(&path, bufs, "/");
	buf_str(&path, bufs, lk->lk_path.b_data);
	if (!path.b_failed) {
		set = conf_settings(lk->lk_site, path.b_data, path.b_len);
		closed = set != lk->lk_set && set->set_closed;
	}
	buf_release(&path, bufs);
	return closed;
}

/* Tries the next index name, or the directory itself if there is no further name. */
static bool
static_file_next_name(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	char *index = NULL;

	if (lk->lk_set->set_index != NULL)
		index = lk->lk_set->set_index[lk->lk_index];
	lk->lk_path.b_len = lk->lk_base;
	if (index != NULL) {
		lk->lk_index++;
		buf_str(&lk->lk_path, &ex->ex_service->svc_bufs, index);
	} else {
		lk->lk_dir = true;
		/* openat2(2) refuses an empty path, but accepts paths that end in '/'. */
		if (lk->lk_base == 0)
			buf_str(&lk->lk_path, &ex->ex_service->svc_bufs, ".");
	}
	buf_add(&lk->lk_path, &ex->ex_service->svc_bufs, "", 1);
	return static_file_find(ex);
}

static bool
static_file_list(struct exchange *ex, struct place place)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	if (set->set_autoindex)
		return static_listing_begin(ex, place);
	if (set->set_try != NULL)
		return static_file_next_step(ex);
	response_error(ex, 403);
	return true;
}

static bool
static_file_found(struct exchange *ex, struct pw_file *file)
{
	struct lookup *lk = &ex->ex_lookup;
	enum pw_file_type type = file->fil_type;
	const struct place place = {
	    .pl_dev = file->fil_dev,
	    .pl_ino = file->fil_ino,
	    .pl_mtime = file->fil_mtime,
	    .pl_ctime = file->fil_ctime,
	};

	if (type == PW_FILE_REGULAR && !lk->lk_dir && !lk->lk_redirects) {
		response_file(ex, file, lk->lk_path.b_data, lk->lk_set);
		return true;
	}
	pw_file_unref(&file);
	if (type == PW_FILE_DIRECTORY && lk->lk_dir)
		return static_file_list(ex, place);
	if (type == PW_FILE_DIRECTORY && lk->lk_slash)
		return static_file_next_name(ex);
	if (type == PW_FILE_DIRECTORY &&
	    (lk->lk_redirects || lk->lk_set->set_try == NULL)) {
		redirect_to_directory(ex);
		return true;
	}
	if (lk->lk_set->set_try != NULL)
		return static_file_next_step(ex);
	response_error(ex, lk->lk_dir ? 404 : 403);
	return true;
}

static bool
static_file_not_found(struct exchange *ex, int error)
{
	struct lookup *lk = &ex->ex_lookup;

	if (static_error_status(error) != 404)
		return static_error_send(ex, error);
	if (lk->lk_slash && !lk->lk_dir)
		return static_file_next_name(ex);
	return lk->lk_set->set_try != NULL ? static_file_next_step(ex)
					   : static_error_send(ex, error);
}

/* ---------------------------------------------------------------- siblings */

/* Returns true if a sibling may be sent instead of the file.  The file itself may be missing. */
static bool
static_file_has_siblings(
    const struct exchange *ex, const struct pw_file *file, int error)
{
	const struct lookup *lk = &ex->ex_lookup;

	if (lk->lk_weights == 0 || lk->lk_dir || lk->lk_redirects)
		return false;
	return error == 0 ? file->fil_type == PW_FILE_REGULAR
			  : static_error_status(error) == 404;
}

/*
 * Returns the untried coding with the highest weight, or CODING_NONE.  Of codings with equal
 * weights, returns the first in the settings.
 */
static enum coding
static_file_next_coding(const struct lookup *lk)
{
	enum coding best = CODING_NONE, coding;
	unsigned i, weight, most = 0;

	for (i = 0; i < lk->lk_set->set_ncodings; i++) {
		coding = lk->lk_set->set_codings[i];
		weight = coding_weight(lk->lk_weights, coding);
		if (weight <= most || (lk->lk_tried & 1u << coding) != 0)
			continue;
		best = coding;
		most = weight;
	}
	return best;
}

static bool
static_file_try_sibling(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	struct buf_list *bufs = &ex->ex_service->svc_bufs;
	struct pw_file *file = lk->lk_original;

	lk->lk_coding = static_file_next_coding(lk);
	lk->lk_path.b_len = lk->lk_stem;
	if (lk->lk_coding != CODING_NONE) {
		lk->lk_tried |= 1u << lk->lk_coding;
		buf_str(&lk->lk_path, bufs, coding_suffix(lk->lk_coding));
		buf_add(&lk->lk_path, bufs, "", 1);
		return static_file_find(ex);
	}
	buf_add(&lk->lk_path, bufs, "", 1);
	/* The cache may send this response also to clients that accept no coding. */
	if (sibling_is_optional(ex))
		lk->lk_weights = 0;
	lk->lk_original = NULL;
	return file != NULL ? static_file_found(ex, file)
			    : static_file_not_found(ex, lk->lk_error);
}

static bool
static_file_look_at_sibling(
    struct exchange *ex, int error, struct pw_file *file)
{
	struct lookup *lk = &ex->ex_lookup;
	bool usable = sibling_is_usable(ex, error, file);

	/* the media type depends on the name of the original */
	lk->lk_path.b_data[lk->lk_stem] = '\0';
	if (!usable || !sibling_is_chosen(ex, file)) {
		pw_file_unref(&file);
		return static_file_try_sibling(ex);
	}
	pw_file_unref(&lk->lk_original);
	response_file(ex, file, lk->lk_path.b_data, lk->lk_set);
	return true;
}

/* Handles the result of the open.  Takes ownership of op_file. */
static bool
static_file_look(struct exchange *ex, int error)
{
	struct lookup *lk = &ex->ex_lookup;
	struct pw_file *file = lk->lk_open.op_file;

	lk->lk_open.op_file = NULL;
	if (ex->ex_trace != NULL)
		trace_opened(ex, error, file);
	if (lk->lk_coding != CODING_NONE)
		return static_file_look_at_sibling(ex, error, file);
	if (!static_file_has_siblings(ex, file, error))
		return error == 0 ? static_file_found(ex, file)
				  : static_file_not_found(ex, error);
	lk->lk_original = error == 0 ? file : NULL;
	lk->lk_error = error;
	lk->lk_tried = 0;
	lk->lk_stem = lk->lk_path.b_len - 1;
	if (sibling_is_unwanted(ex))
		lk->lk_weights = 0;
	return static_file_try_sibling(ex);
}

static void
static_file_on_open(struct pw_waiter *w)
{
	struct exchange *ex =
	    (struct exchange *)(void *)((char *)w -
					offsetof(struct exchange,
					    ex_lookup.lk_open.op_waiter));

	exchange_resume(ex);
}

/*
 * Frees a descriptor if the open failed because of a shortage of descriptors.  Returns true if the
 * open must be repeated.  Another worker may use the freed descriptor first, so a lookup frees up
 * to ROOMS descriptors.
 */
static bool
static_file_made_room(struct exchange *ex, int error)
{
	struct lookup *lk = &ex->ex_lookup;
	struct service *svc = ex->ex_service;

	if (!file_error_descriptor(error) || lk->lk_rooms == ROOMS)
		return false;
	lk->lk_rooms++;
	return svc->svc_spare(svc->svc_arg);
}

static bool
static_file_opened(struct exchange *ex)
{
	int error = ex->ex_lookup.lk_open.op_waiter.wt_error;

	return static_file_made_room(ex, error) ? static_file_find(ex)
						: static_file_look(ex, error);
}

/* The completion arrives nevertheless, since the exchange waits for it. */
static void
static_file_cancel_open(struct exchange *ex)
{
	struct pw_open *op = &ex->ex_lookup.lk_open;

	if (pw_open_cancel(op) != 0)
		return;
	pw_wait_begin(ex->ex_service->svc_loop, &op->op_waiter);
	pw_wait_end(&op->op_waiter, -ECANCELED);
}

static void
static_file_defer_open(struct exchange *ex)
{
	pw_open_defer(&ex->ex_lookup.lk_open);
}

static const struct pending static_file_open_pending = {
    .defer = static_file_defer_open,
    .resume = static_file_opened,
    .cancel = static_file_cancel_open,
    PENDING_DISK,
};

static bool
static_file_find(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	int error;

	if (lk->lk_path.b_failed)
		return static_error_send(ex, -ENOMEM);
	if (lk->lk_site->site_closed && static_file_is_closed(ex))
		return static_file_not_found(ex, -ENOENT);
	lk->lk_open.op_waiter.wt_done = static_file_on_open;
	lk->lk_open.op_waiter.wt_client = exchange_client_number(ex);
	do
		error = pw_file_open(ex->ex_service->svc_loop, lk->lk_root,
		    lk->lk_path.b_data, clock_now(), &lk->lk_open);
	while (static_file_made_room(ex, error));
	if (error == -EINPROGRESS)
		return exchange_pend(ex, &static_file_open_pending);
	return static_file_look(ex, error);
}

void
static_locate(struct exchange *ex, struct str host)
{
	struct lookup *lk = &ex->ex_lookup;
	struct str path = ex->ex_target.tgt_path;
	const struct conf *conf = ex->ex_service->svc_conf;

	lk->lk_host = host;
	lk->lk_site = conf_site(conf, host.s_ptr, host.s_len);
	lk->lk_set = path.s_len > 0
			 ? conf_settings(lk->lk_site, path.s_ptr, path.s_len)
			 : &lk->lk_site->site_set;
	lk->lk_root = ex->ex_service->svc_roots[lk->lk_set->set_root];
}

/* Starts the lookup of lk_path.  Requires that lk_path has no NUL yet. */
static bool
static_file_find_path(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;

	lk->lk_base = lk->lk_path.b_len;
	if (lk->lk_slash)
		return static_file_next_name(ex);
	buf_add(&lk->lk_path, &ex->ex_service->svc_bufs, "", 1);
	return static_file_find(ex);
}

/*
 * Sets lk_path to the path of the request below the root.  Sets lk_slash if the path ends in '/'.
 */
static void
static_file_set_path(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	struct str path = ex->ex_target.tgt_path;

	lk->lk_slash = path.s_ptr[path.s_len - 1] == '/';
	str_advance(&path, lk->lk_set->set_strip + 1);
	buf_add(
	    &lk->lk_path, &ex->ex_service->svc_bufs, path.s_ptr, path.s_len);
}

/*
 * Sets lk_path for a step of try.  Returns false if the step would append a suffix to the path of a
 * directory.
 */
static bool
static_file_set_step(struct exchange *ex, const char *step)
{
	static const char own[] = "$path";
	struct lookup *lk = &ex->ex_lookup;
	size_t skip = sizeof(own) - 1;

	lk->lk_path.b_len = 0;
	lk->lk_index = 0;
	lk->lk_dir = lk->lk_slash = lk->lk_redirects = false;
	lk->lk_coding = CODING_NONE;
	if (strncmp(step, own, skip) == 0) {
		static_file_set_path(ex);
		step += skip;
		lk->lk_redirects = !lk->lk_slash && strcmp(step, "/") == 0;
		if (*step == '\0' || strcmp(step, "/") == 0)
			return true;
		if (lk->lk_slash && *step != '/')
			return false;
		skip = lk->lk_slash;
	} else
		skip = 1;
	lk->lk_slash = false;
	buf_str(&lk->lk_path, &ex->ex_service->svc_bufs, step + skip);
	return true;
}

static bool
static_file_next_step(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;
	const char *step;

	do {
		step = lk->lk_set->set_try[lk->lk_step];
		if (step == NULL)
			return static_error_send(ex, -ENOENT);
		lk->lk_step++;
		if (*step != '$' && *step != '/') {
			response_error(ex, (int)strtol(step, NULL, 10));
			return true;
		}
	} while (!static_file_set_step(ex, step));
	return static_file_find_path(ex);
}

bool
static_begin(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;

	if (lk->lk_set->set_redirects != NULL && redirect_by_rule(ex))
		return true;
	if (ex->ex_target.tgt_dotfile && !lk->lk_set->set_dotfiles &&
	    !target_dotnames(
		lk->lk_set->set_dotnames, ex->ex_target.tgt_path.s_ptr))
		return static_error_send(ex, -ENOENT);
	if (lk->lk_set->set_ncodings > 0)
		lk->lk_weights =
		    coding_weights(ex->ex_request.rq_accept_encoding);
	lk->lk_open.op_attribute =
	    lk->lk_set->set_digest || lk->lk_set->set_etag == ETAG_DIGEST;
	if (lk->lk_set->set_try != NULL)
		return static_file_next_step(ex);
	static_file_set_path(ex);
	return static_file_find_path(ex);
}

void
static_finish(struct exchange *ex)
{
	struct lookup *lk = &ex->ex_lookup;

	autoindex_cache_unref(&lk->lk_listing.li_text);
	autoindex_stream_close(&lk->lk_stream);
	pw_file_unref(&lk->lk_open.op_file);
	pw_file_unref(&lk->lk_original);
	buf_release(&lk->lk_path, &ex->ex_service->svc_bufs);
}
