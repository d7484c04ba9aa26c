/*
 * loop: completions on their way from pool threads to a loop's own thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "async.h"
#include "check.h"
#include "drop.h"
#include "file.h"
#include "loop.h"
#include "os.h"
#include "pipes.h"
#include "pool.h"
#include "room.h"

uint64_t
loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

struct timespec
loop_timespec(uint64_t us)
{
	return (struct timespec){
	    (time_t)(us / 1000000), (long)(us % 1000000) * 1000};
}

void
loop_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int
pw_loop_create(
    struct pw_pool *pool, const struct pw_loop_conf *conf, struct pw_loop **out)
{
	struct pw_loop *lp;
	int error;

	lp = line_calloc(sizeof(*lp));
	if (lp == NULL)
		return -ENOMEM;
	lp->lp_pool = pool;
	lp->lp_conf = *conf;
	lp->lp_inbox_end = &lp->lp_inbox;
	error = os_wake_create(lp->lp_wake);
	if (error != 0)
		goto fail;
	lp->lp_files = file_cache_create(conf->plc_open_files);
	lp->lp_drops = drops_create();
	lp->lp_pipes = pipes_create();
	if (lp->lp_files == NULL || lp->lp_drops == NULL ||
	    lp->lp_pipes == NULL) {
		error = -ENOMEM;
		goto fail_wake;
	}
	pthread_mutex_init(&lp->lp_lock, NULL);
	*out = lp;
	return 0;

fail_wake:
	pipes_destroy(&lp->lp_pipes);
	drops_destroy(&lp->lp_drops);
	file_cache_destroy(&lp->lp_files);
	os_wake_close(lp->lp_wake);
fail:
	free(lp);
	return error;
}

int
pw_loop_fd(const struct pw_loop *lp)
{
	return lp->lp_wake[0];
}

bool
pw_loop_spare(struct pw_loop *lp)
{
	return file_cache_spare(lp->lp_files);
}

unsigned
pw_loop_pending(const struct pw_loop *lp)
{
	return lp->lp_pending;
}

void
loop_deliver(struct pw_waiter *w, int error)
{
	struct pw_loop *lp = w->wt_loop;
	bool was_empty;

	w->wt_error = error;
	w->wt_next = NULL;
	pthread_mutex_lock(&lp->lp_lock);
	was_empty = lp->lp_inbox == NULL;
	*lp->lp_inbox_end = w;
	lp->lp_inbox_end = &w->wt_next;
	/* Under the lock: a drain may end the last wait, and the loop with it. */
	if (was_empty)
		os_wake_signal(lp->lp_wake[1]);
	pthread_mutex_unlock(&lp->lp_lock);
}

void
loop_later(struct pw_loop *lp, struct pw_waiter *w)
{
	lp->lp_pending++;
	w->wt_loop = lp;
	w->wt_next = lp->lp_later;
	lp->lp_later = w;
}

static void
deliver_later(struct pw_loop *lp)
{
	struct pw_waiter *w = lp->lp_later, *next;

	lp->lp_later = NULL;
	for (; w != NULL; w = next) {
		next = w->wt_next;
		loop_deliver(w, 0);
	}
}

void
pw_loop_drain(struct pw_loop *lp)
{
	struct pw_waiter *w, *next;

	os_wake_clear(lp->lp_wake[0]);
	pthread_mutex_lock(&lp->lp_lock);
	w = lp->lp_inbox;
	lp->lp_inbox = NULL;
	lp->lp_inbox_end = &lp->lp_inbox;
	pthread_mutex_unlock(&lp->lp_lock);
	for (; w != NULL; w = next) {
		next = w->wt_next;
		lp->lp_pending--;
		w->wt_done(w);
	}
	drops_tick(lp, loop_now());
	async_drain(lp);
}

void
pw_loop_tick(struct pw_loop *lp, uint64_t now_us)
{
	file_cache_age(lp->lp_files, now_us);
	popular_tell(pool_popular(lp->lp_pool), &lp->lp_noted);
	drops_tick(lp, now_us);
	async_flush(lp);
	deliver_later(lp);
	room_tick(pool_room(lp->lp_pool), now_us);
}

void
pw_loop_destroy(struct pw_loop **lpp)
{
	struct pw_loop *lp = *lpp;

	if (lp == NULL)
		return;
	*lpp = NULL;
	PW_CHECK(lp->lp_pending == 0);
	async_destroy(&lp->lp_async);
	pipes_destroy(&lp->lp_pipes);
	drops_destroy(&lp->lp_drops);
	file_cache_destroy(&lp->lp_files);
	pthread_mutex_destroy(&lp->lp_lock);
	os_wake_close(lp->lp_wake);
	free(lp->lp_copy);
	free(lp);
}
