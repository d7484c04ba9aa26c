/*
 * roots: see roots.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "roots.h"

struct site_root {
	struct pw_root *sr_root; /* one reference; written under rts_lock */
	const char *sr_path;	 /* the configuration's */

	/* The following belong to the thread that opens them again. */
	struct pw_task sr_task;
	struct roots *sr_roots;
	struct pw_root *sr_new; /* the task's, until it is delivered */
	bool sr_running;
	bool sr_again; /* asked for while sr_running: may have come too late */
};

struct roots {
	pthread_mutex_t rts_lock; /* for pointers, never over I/O */
	void (*rts_told)(void *);
	void *rts_arg;

	/* The same. */
	struct pw_loop *rts_loop;
	struct log_writer *rts_log;
	size_t rts_running;
	bool rts_failed; /* one of them, since all were asked for */
	bool rts_dirty;	 /* some were replaced, and nobody was told */

	size_t rts_count;
	struct site_root rts_sites[];
};

static int
open_one(struct site_root *sr)
{
	int error = pw_root_open(sr->sr_path, &sr->sr_root);

	if (error == 0)
		return 0;
	log_error(NULL, "cannot open the root %s: %s%s", sr->sr_path,
	    strerror(-error),
	    error == -ENOSYS ? ": openat2(2) is needed: Linux 5.6, and no "
			       "sandbox that forbids it"
			     : "");
	return -1;
}

static void
replace(struct site_root *sr)
{
	struct roots *rts = sr->sr_roots;
	struct pw_root *old;

	pthread_mutex_lock(&rts->rts_lock);
	old = sr->sr_root;
	sr->sr_root = sr->sr_new;
	sr->sr_new = NULL;
	pthread_mutex_unlock(&rts->rts_lock);
	pw_root_unref(rts->rts_loop, &old);
	rts->rts_dirty = true;
}

void
roots_tick(struct roots *rts)
{
	if (!rts->rts_dirty)
		return;
	rts->rts_dirty = false;
	rts->rts_told(rts->rts_arg);
}

static void
complain(struct site_root *sr, int error)
{
	sr->sr_roots->rts_failed = true;
	log_error(sr->sr_roots->rts_log,
	    "cannot open the root %s again, the old one stays in use: %s",
	    sr->sr_path, strerror(-error));
}

/* On a thread of the pool. */
static int
reopen_work(struct pw_task *tk)
{
	struct site_root *sr =
	    (struct site_root *)(void *)((char *)tk -
					 offsetof(struct site_root, sr_task));

	return pw_root_open(sr->sr_path, &sr->sr_new);
}

static void
reopen_start(struct site_root *sr)
{
	struct roots *rts = sr->sr_roots;
	int error;

	/* Nobody else replaces it; mostly the path is still on that device. */
	error =
	    pw_task_run(rts->rts_loop, pw_root_dev(sr->sr_root), &sr->sr_task);

	if (error != 0) {
		complain(sr, error);
		return;
	}
	sr->sr_running = true;
	rts->rts_running++;
}

static void
reopen_done(struct pw_waiter *w)
{
	struct site_root *sr =
	    (struct site_root *)(void *)((char *)w - offsetof(struct site_root,
							 sr_task.tk_waiter));
	struct roots *rts = sr->sr_roots;

	sr->sr_running = false;
	rts->rts_running--;
	if (w->wt_error == 0)
		replace(sr);
	else
		complain(sr, w->wt_error);
	if (sr->sr_again) {
		sr->sr_again = false;
		reopen_start(sr);
	}
	if (rts->rts_running > 0)
		return;
	roots_tick(rts);
	if (!rts->rts_failed)
		log_notice(rts->rts_log, "opened the roots again");
}

int
roots_open(const struct conf *conf, void (*told)(void *), void *arg,
    struct roots **out)
{
	struct site_root *sr;
	struct roots *rts;
	size_t i;

	rts = calloc(
	    1, sizeof(*rts) + conf->conf_nsites * sizeof(rts->rts_sites[0]));
	if (rts == NULL) {
		log_error(NULL, "%s", strerror(ENOMEM));
		return -1;
	}
	pthread_mutex_init(&rts->rts_lock, NULL);
	rts->rts_told = told;
	rts->rts_arg = arg;
	rts->rts_count = conf->conf_nsites;
	*out = rts;
	for (i = 0; i < rts->rts_count; i++) {
		sr = &rts->rts_sites[i];
		sr->sr_roots = rts;
		sr->sr_path = conf->conf_sites[i].site_root;
		sr->sr_task.tk_work = reopen_work;
		/* Listings of clients must not keep the roots from it. */
		sr->sr_task.tk_begun = true;
		sr->sr_task.tk_waiter.wt_done = reopen_done;
		if (open_one(sr) == -1)
			return -1;
	}
	return 0;
}

void
roots_close(struct roots **rtsp)
{
	struct roots *rts = *rtsp;
	size_t i;

	if (rts == NULL)
		return;
	*rtsp = NULL;
	for (i = 0; i < rts->rts_count; i++)
		pw_root_close(&rts->rts_sites[i].sr_root);
	pthread_mutex_destroy(&rts->rts_lock);
	free(rts);
}

void
roots_reopen(struct roots *rts, struct pw_loop *lp, struct log_writer *log)
{
	struct site_root *sr;
	size_t i;

	rts->rts_loop = lp;
	rts->rts_log = log;
	rts->rts_failed = false;
	for (i = 0; i < rts->rts_count; i++) {
		sr = &rts->rts_sites[i];
		if (sr->sr_running)
			sr->sr_again = true;
		else
			reopen_start(sr);
	}
}

static void
take_one(struct roots *rts, size_t i, struct pw_loop *lp, struct pw_root **mine)
{
	struct pw_root *old = *mine;

	pthread_mutex_lock(&rts->rts_lock);
	*mine = rts->rts_sites[i].sr_root;
	if (*mine != old)
		pw_root_ref(*mine);
	pthread_mutex_unlock(&rts->rts_lock);
	if (*mine != old)
		pw_root_unref(lp, &old);
}

void
roots_take(struct roots *rts, struct pw_loop *lp, struct pw_root **mine)
{
	size_t i;

	for (i = 0; i < rts->rts_count; i++)
		take_one(rts, i, lp, &mine[i]);
}

void
roots_drop(const struct roots *rts, struct pw_loop *lp, struct pw_root **mine)
{
	size_t i;

	for (i = 0; i < rts->rts_count; i++)
		pw_root_unref(lp, &mine[i]);
}
