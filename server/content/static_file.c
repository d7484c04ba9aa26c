/*
 * static_file: see static_file.h.  A path that ends in '/' is a directory: its index files
 * are tried one after the other, then the directory itself.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/conn/conn.h"
#include "server/conn/oust.h"
#include "server/content/autoindex_stream.h"
#include "server/content/file_error.h"
#include "server/content/static_file.h"

#define ROOMS 4

static bool find(struct conn *);

static int
status_of(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return 404;
	case -EACCES:
	case -EPERM:
	case -EXDEV: /* a link that leads out of the root */
	case -ELOOP:
		return 403;
	case -EAGAIN:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return 503;
	default:
		return 500;
	}
}

static bool
fail(struct conn *c, int error)
{
	int status = status_of(error);

	if (status >= 500 && error != -EAGAIN)
		file_error_tell(c, error);
	respond_error(c, status);
	return true;
}

/* ---------------------------------------------------------------- listings */

/* A completion is only noted: it may be one of thousands. */
static void
on_block(struct autoindex_stream *st)
{
	struct conn *c = st->st_arg;

	if (conn_resumed(c))
		worker_again(c->cn_worker, c);
}

static bool
stream(struct conn *c)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	struct autoindex_stream *st;
	int error;

	if (c->cn_ex->ex_request.rq_method == METHOD_HEAD) {
		respond_stream(c, NULL);
		return true;
	}
	st = lk->lk_stream = calloc(1, sizeof(*st));
	if (st == NULL)
		return fail(c, -ENOMEM);
	st->st_loop = c->cn_worker->wk_loop;
	st->st_place = lk->lk_listing.li_place;
	st->st_chunked = !c->cn_ex->ex_request.rq_http10;
	st->st_done = on_block;
	st->st_arg = c;
	error = autoindex_stream_next(st);
	return error == 0 ? false : fail(c, error);
}

static bool
streamed(struct conn *c)
{
	struct autoindex_stream *st = c->cn_ex->ex_lookup.lk_stream;

	if (st->st_error != 0)
		return fail(c, st->st_error);
	c->cn_ex->ex_lookup.lk_stream = NULL;
	respond_stream(c, st);
	return true;
}

static void
on_listing(struct listing *li)
{
	struct exchange *ex =
	    (struct exchange *)(void *)((char *)li - offsetof(struct exchange,
							 ex_lookup.lk_listing));
	struct conn *c = ex->ex_conn;

	if (conn_resumed(c))
		worker_again(c->cn_worker, c);
}

static bool
listed(struct conn *c, int error)
{
	struct listing *li = &c->cn_ex->ex_lookup.lk_listing;

	if (error == -E2BIG)
		return stream(c);
	if (error != 0)
		return fail(c, error);
	respond_listing(c, li->li_text);
	li->li_text = NULL;
	return true;
}

static bool
list(struct conn *c, struct place place)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	struct listing *li = &lk->lk_listing;
	int error;

	if (!lk->lk_set->set_autoindex) {
		respond_error(c, 403);
		return true;
	}
	place.pl_root = lk->lk_root;
	place.pl_path = lk->lk_path.b_data;
	place.pl_title = c->cn_ex->ex_target.tgt_path.s_ptr;
	place.pl_dotfiles = lk->lk_set->set_dotfiles;
	/* So that a waiting client sees the change to blocks. */
	place.pl_patience_us = c->cn_worker->wk_timeouts[TIMER_DISK] / 2;
	lk->lk_listed = true;
	li->li_place = place;
	li->li_done = on_listing;
	error = autoindex_cache_get(
	    c->cn_worker->wk_listings, c->cn_worker->wk_loop, li, clock_now());
	if (error == -EINPROGRESS)
		return false;
	return listed(c, error == 0 ? li->li_error : error);
}

/* ------------------------------------------------------------------ lookup */

/* What is left to try after an index file that is not there. */
static bool
next_name(struct conn *c)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	char *index = NULL;

	if (lk->lk_set->set_index != NULL)
		index = lk->lk_set->set_index[lk->lk_index];
	lk->lk_path.b_len = lk->lk_base;
	if (index != NULL) {
		lk->lk_index++;
		buf_str(&lk->lk_path, &c->cn_worker->wk_bufs, index);
	} else {
		lk->lk_dir = true;
		/* openat2 wants no empty path; a final '/' does no harm. */
		if (lk->lk_base == 0)
			buf_str(&lk->lk_path, &c->cn_worker->wk_bufs, ".");
	}
	buf_add(&lk->lk_path, &c->cn_worker->wk_bufs, "", 1);
	return find(c);
}

static bool
wants_dir(const struct conn *c)
{
	struct str path = c->cn_ex->ex_target.tgt_path;

	return path.s_ptr[path.s_len - 1] == '/';
}

static bool
found(struct conn *c, struct pw_file *file)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	enum pw_file_type type = file->fil_type;
	const struct place place = {
	    .pl_dev = file->fil_dev,
	    .pl_ino = file->fil_ino,
	    .pl_mtime = file->fil_mtime,
	    .pl_ctime = file->fil_ctime,
	};

	if (type == PW_FILE_REGULAR && !lk->lk_dir) {
		respond_file(c, file, lk->lk_path.b_data, lk->lk_set);
		return true;
	}
	pw_file_unref(&file);
	if (type == PW_FILE_DIRECTORY && lk->lk_dir)
		return list(c, place);
	if (type == PW_FILE_DIRECTORY && wants_dir(c))
		return next_name(c);
	if (type == PW_FILE_DIRECTORY)
		respond_redirect(c, c->cn_ex->ex_target.tgt_path);
	else
		respond_error(c, lk->lk_dir ? 404 : 403);
	return true;
}

static bool
not_found(struct conn *c, int error)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;

	if (wants_dir(c) && !lk->lk_dir && status_of(error) == 404)
		return next_name(c);
	return fail(c, error);
}

/* What the open has come to; takes over the file. */
static bool
look(struct conn *c, int error)
{
	struct pw_file *file = c->cn_ex->ex_lookup.lk_open.op_file;

	c->cn_ex->ex_lookup.lk_open.op_file = NULL;
	return error == 0 ? found(c, file) : not_found(c, error);
}

static void
on_open(struct pw_waiter *w)
{
	struct exchange *ex =
	    (struct exchange *)(void *)((char *)w -
					offsetof(struct exchange,
					    ex_lookup.lk_open.op_waiter));
	struct conn *c = ex->ex_conn;

	if (conn_resumed(c))
		worker_again(c->cn_worker, c);
}

/*
 * There was no descriptor for the file, but somebody could do without one; another worker
 * may take it first.
 */
static bool
made_room(struct conn *c, int error)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;

	if (!file_error_descriptor(error) || lk->lk_rooms == ROOMS)
		return false;
	lk->lk_rooms++;
	return oust_descriptor(c->cn_worker, true);
}

static bool
find(struct conn *c)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	int error;

	if (lk->lk_path.b_failed)
		return fail(c, -ENOMEM);
	lk->lk_open.op_waiter.wt_done = on_open;
	do
		error = pw_file_open(c->cn_worker->wk_loop, lk->lk_root,
		    lk->lk_path.b_data, clock_now(), &lk->lk_open);
	while (made_room(c, error));
	if (error == -EINPROGRESS)
		return false;
	return look(c, error);
}

bool
static_begin(struct conn *c)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	struct str path = c->cn_ex->ex_target.tgt_path,
		   host = c->cn_ex->ex_request.rq_host;
	const struct conf *conf = c->cn_worker->wk_conf;
	const struct site *site;

	*lk = (struct lookup){0};
	if (c->cn_ex->ex_target.tgt_host.s_ptr != NULL)
		host = c->cn_ex->ex_target.tgt_host;
	site = conf_site(conf, host.s_ptr, host.s_len);
	lk->lk_site = site;
	lk->lk_root = c->cn_worker->wk_roots[site - conf->conf_sites];
	lk->lk_set = conf_settings(site, path.s_ptr, path.s_len);
	if (c->cn_ex->ex_target.tgt_dotfile && !lk->lk_set->set_dotfiles)
		return fail(c, -ENOENT);
	buf_add(&lk->lk_path, &c->cn_worker->wk_bufs, path.s_ptr + 1,
	    path.s_len - 1);
	lk->lk_base = lk->lk_path.b_len;
	if (wants_dir(c))
		return next_name(c);
	buf_add(&lk->lk_path, &c->cn_worker->wk_bufs, "", 1);
	return find(c);
}

bool
static_continue(struct conn *c)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;
	int error = lk->lk_open.op_waiter.wt_error;

	if (lk->lk_stream != NULL)
		return streamed(c);
	if (lk->lk_listed)
		return listed(c, lk->lk_listing.li_error);
	return made_room(c, error) ? find(c) : look(c, error);
}

void
static_finish(struct conn *c)
{
	struct lookup *lk = &c->cn_ex->ex_lookup;

	text_unref(&lk->lk_listing.li_text);
	autoindex_stream_close(&lk->lk_stream);
	pw_file_unref(&lk->lk_open.op_file);
	buf_release(&lk->lk_path, &c->cn_worker->wk_bufs);
}
