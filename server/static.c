/*
 * static: see static.h.  A path that ends in '/' is a directory: its index files
 * are tried one after the other, then the directory itself.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "listing.h"
#include "static.h"

static bool find(struct conn *);

const char *
static_name(const struct conn *c)
{
	return c->cn_lookup.lk_path.b_len == 0 ? "answer"
					       : c->cn_lookup.lk_path.b_data;
}

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
no_descriptor(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

static bool
fail(struct conn *c, int error)
{
	struct worker *wk = c->cn_worker;
	int status = status_of(error);

	if (no_descriptor(error)) {
		if (limit_tell(&wk->wk_told_files, worker_now()))
			log_error(wk->wk_log,
			    "%s: %s; raise ulimit -n, or lower open_files",
			    static_name(c), strerror(-error));
	} else if (status >= 500 && error != -EAGAIN)
		log_error(
		    wk->wk_log, "%s: %s", static_name(c), strerror(-error));
	respond_error(c, status);
	return true;
}

/* The worker may replace its root meanwhile.  False, for what is not ready. */
static bool
pending(struct lookup *lk)
{
	if (!lk->lk_holds)
		pw_root_ref(lk->lk_root);
	lk->lk_holds = true;
	return false;
}

/* ---------------------------------------------------------------- listings */

static void
listing_done(struct listing *li)
{
	struct conn *c = li->li_arg;

	if (!conn_resumed(c)) {
		listing_free(li);
		return;
	}
	c->cn_lookup.lk_listing = li;
	/* Only noted: it may be one of thousands. */
	worker_again(c->cn_worker, c);
}

static void
listed(struct conn *c, struct listing *li)
{
	if (li->li_error != 0)
		fail(c, li->li_error);
	else {
		respond_listing(c, li->li_html, li->li_len);
		li->li_html = NULL;
	}
}

static bool
list(struct conn *c, uint64_t dev)
{
	struct lookup *lk = &c->cn_lookup;
	struct listing *li;
	int error;

	if (!lk->lk_set->set_autoindex) {
		respond_error(c, 403);
		return true;
	}
	li = calloc(1, sizeof(*li));
	if (li == NULL)
		return fail(c, -ENOMEM);
	li->li_root = lk->lk_root;
	li->li_dev = dev;
	li->li_path = strdup(lk->lk_path.b_data);
	li->li_title = strdup(c->cn_target.tgt_path.s_ptr);
	li->li_dotfiles = lk->lk_set->set_dotfiles;
	li->li_done = listing_done;
	li->li_arg = c;
	error = listing_start(li, c->cn_worker->wk_loop);
	if (error == 0)
		return pending(lk);
	listing_free(li);
	return fail(c, error);
}

/* ------------------------------------------------------------------ lookup */

/* What is left to try after an index file that is not there. */
static bool
next_name(struct conn *c)
{
	struct lookup *lk = &c->cn_lookup;
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
	struct str path = c->cn_target.tgt_path;

	return path.s_ptr[path.s_len - 1] == '/';
}

static bool
found(struct conn *c, struct pw_file *file)
{
	struct lookup *lk = &c->cn_lookup;
	enum pw_file_type type = file->fil_type;
	uint64_t dev = file->fil_dev;

	if (type == PW_FILE_REGULAR && !lk->lk_dir) {
		respond_file(c, file, lk->lk_path.b_data, lk->lk_set);
		return true;
	}
	pw_file_unref(&file);
	if (type == PW_FILE_DIRECTORY && lk->lk_dir)
		return list(c, dev);
	if (type == PW_FILE_DIRECTORY && wants_dir(c))
		return next_name(c);
	if (type == PW_FILE_DIRECTORY)
		respond_redirect(c, c->cn_target.tgt_path);
	else
		respond_error(c, lk->lk_dir ? 404 : 403);
	return true;
}

static bool
not_found(struct conn *c, int error)
{
	struct lookup *lk = &c->cn_lookup;

	if (wants_dir(c) && !lk->lk_dir && status_of(error) == 404)
		return next_name(c);
	return fail(c, error);
}

/* What the open has come to; takes over the file. */
static bool
look(struct conn *c, int error)
{
	struct pw_file *file = c->cn_lookup.lk_open.op_file;

	c->cn_lookup.lk_open.op_file = NULL;
	return error == 0 ? found(c, file) : not_found(c, error);
}

static void
on_open(struct pw_waiter *w)
{
	struct conn *c =
	    (struct conn *)(void *)((char *)w -
				    offsetof(struct conn,
					cn_lookup.lk_open.op_waiter));

	if (conn_resumed(c))
		worker_again(c->cn_worker, c);
}

/* There was no descriptor for the file, but somebody could do without one. */
static bool
made_room(struct conn *c, int error)
{
	struct lookup *lk = &c->cn_lookup;

	if (!no_descriptor(error) || lk->lk_made_room)
		return false;
	lk->lk_made_room = true;
	return worker_reclaim(c->cn_worker);
}

static bool
find(struct conn *c)
{
	struct lookup *lk = &c->cn_lookup;
	int error;

	if (lk->lk_path.b_failed)
		return fail(c, -ENOMEM);
	lk->lk_open.op_waiter.wt_done = on_open;
	do
		error = pw_file_open(c->cn_worker->wk_loop, lk->lk_root,
		    lk->lk_path.b_data, worker_now(), &lk->lk_open);
	while (made_room(c, error));
	if (error == -EINPROGRESS)
		return pending(lk);
	return look(c, error);
}

bool
static_begin(struct conn *c)
{
	struct lookup *lk = &c->cn_lookup;
	struct str path = c->cn_target.tgt_path, host = c->cn_request.rq_host;
	const struct conf *conf = c->cn_worker->wk_conf;
	const struct site *site;

	*lk = (struct lookup){0};
	if (c->cn_target.tgt_host.s_ptr != NULL)
		host = c->cn_target.tgt_host;
	site = conf_site(conf, host.s_ptr, host.s_len);
	lk->lk_root = c->cn_worker->wk_roots[site - conf->conf_sites];
	lk->lk_set = conf_settings(site, path.s_ptr, path.s_len);
	if (c->cn_target.tgt_dotfile && !lk->lk_set->set_dotfiles)
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
	struct lookup *lk = &c->cn_lookup;
	int error = lk->lk_open.op_waiter.wt_error;

	if (lk->lk_listing != NULL) {
		listed(c, lk->lk_listing);
		return true;
	}
	return made_room(c, error) ? find(c) : look(c, error);
}

void
static_finish(struct conn *c)
{
	struct lookup *lk = &c->cn_lookup;

	if (lk->lk_listing != NULL)
		listing_free(lk->lk_listing);
	lk->lk_listing = NULL;
	pw_file_unref(&lk->lk_open.op_file);
	if (lk->lk_holds)
		pw_root_unref(c->cn_worker->wk_loop, &lk->lk_root);
	lk->lk_holds = false;
	buf_release(&lk->lk_path, &c->cn_worker->wk_bufs);
}
