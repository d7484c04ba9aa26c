/*
 * release: see release.h.
 */
#include <stdlib.h>

#include "lib/os/os.h"

#include "server/worker/release.h"

#define LARGE  ((size_t)1 << 20)  /* size of the first pieces, bytes */
#define SMALL  ((size_t)16 << 10) /* minimum size of a piece, bytes */
/* size of the last piece, bytes; malloc(3) maps a piece of 32 MiB apart: see os_prepare_heap */
#define WHOLE  ((size_t)31 << 20)
#define PIECES ((size_t)8192) /* maximum number of pieces */
#define MISSES 16  /* pieces with few resident pages before a smaller size */
#define TICKS  8   /* ticks (2 s) with few connections before a release */
#define HIGH   4   /* ticks before a release if memory is high */
#define BLOCKS 512 /* items of each kind freed per tick, in 0.3 ms */
#define LEAST  16  /* number of connections that makes a release worthwhile */

void
release_init(struct release *rl, struct pw_loop *loop)
{
	*rl = (struct release){.rl_loop = loop};
}

static int
release_trim(struct pw_task *tk)
{
	(void)tk;
	os_trim();
	return 0;
}

static void
release_on_trimmed(struct pw_waiter *w)
{
	struct release *rl =
	    (struct release *)(void *)((char *)w - offsetof(struct release,
						       rl_task.tk_waiter));

	rl->rl_trims = false;
}

/*
 * Submits malloc_trim(3) to a pool thread, for the rest of this heap and for the heaps of other
 * threads.
 */
static void
release_begin_trim(struct release *rl)
{
	rl->rl_task = (struct pw_task){
	    .tk_waiter.wt_done = release_on_trimmed, .tk_work = release_trim};
	rl->rl_trims = pw_task_run(rl->rl_loop, 0, &rl->rl_task) == 0;
}

static void
release_free_pieces(struct release *rl)
{
	struct release_piece *pc;

	while ((pc = rl->rl_pieces) != NULL) {
		rl->rl_pieces = pc->pc_next;
		free(pc);
	}
	rl->rl_count = 0;
}

static void
release_close(struct release *rl)
{
	release_free_pieces(rl);
	rl->rl_size = 0;
}

static void
release_end(struct release *rl)
{
	release_close(rl);
	if (!rl->rl_stopped)
		release_begin_trim(rl);
}

static int
release_give_back(struct pw_task *tk)
{
	struct release *rl =
	    (struct release *)(void *)((char *)tk -
				       offsetof(struct release, rl_task));

	rl->rl_resident =
	    os_release(rl->rl_pieces + 1, rl->rl_size - sizeof(*rl->rl_pieces));
	return 0;
}

/*
 * Chooses the size of the next piece.  Reduces the size after MISSES pieces with few resident pages:
 * most of such a piece had never been in use.  The last piece contains the others, since malloc(3) has
 * written to a page at each end of a piece.
 */
static void
release_choose_size(struct release *rl)
{
	if (rl->rl_count > 0 && rl->rl_resident < rl->rl_size / 2 &&
	    ++rl->rl_misses == MISSES) {
		rl->rl_size = rl->rl_size > SMALL ? rl->rl_size / 4 : WHOLE;
		rl->rl_misses = 0;
	}
	if (rl->rl_count == PIECES)
		rl->rl_size = WHOLE;
	if (rl->rl_size == WHOLE)
		release_free_pieces(rl);
}

/* Allocates the next piece.  Returns false at the end. */
static bool
release_take(struct release *rl)
{
	struct release_piece *pc;

	if (rl->rl_size == WHOLE)
		return false;
	release_choose_size(rl);
	pc = malloc(rl->rl_size);
	if (pc == NULL)
		return false;
	pc->pc_next = rl->rl_pieces;
	rl->rl_pieces = pc;
	rl->rl_count++;
	return true;
}

/* Submits the next piece to a pool thread, or ends the release. */
static void
release_go_on(struct release *rl)
{
	if (!release_take(rl) || pw_task_run(rl->rl_loop, 0, &rl->rl_task) != 0)
		release_end(rl);
}

static void
release_on_done(struct pw_waiter *w)
{
	struct release *rl =
	    (struct release *)(void *)((char *)w - offsetof(struct release,
						       rl_task.tk_waiter));

	if (w->wt_error != 0 || rl->rl_stopped)
		release_end(rl);
	else
		release_go_on(rl);
}

static void
release_begin(struct release *rl)
{
	rl->rl_task = (struct pw_task){
	    .tk_waiter.wt_done = release_on_done, .tk_work = release_give_back};
	rl->rl_size = LARGE;
	rl->rl_misses = 0;
}

void
release_now(struct release *rl)
{
	if (rl->rl_stopped || rl->rl_size > 0 || rl->rl_trims)
		return;
	release_begin(rl);
	release_go_on(rl);
}

void
release_all(struct release *rl)
{
	release_begin(rl);
	while (release_take(rl))
		(void)release_give_back(&rl->rl_task);
	release_close(rl);
}

void
release_tick(
    struct release *rl, unsigned connections, bool high, struct service *svc)
{
	if (rl->rl_stopped)
		return;
	if (!high && (rl->rl_most < LEAST || connections > rl->rl_most / 2)) {
		rl->rl_ticks = 0;
		return;
	}
	service_trim(svc, BLOCKS);
	if (++rl->rl_ticks < (high ? HIGH : TICKS) || rl->rl_size > 0 ||
	    rl->rl_trims)
		return;
	rl->rl_most = connections;
	rl->rl_ticks = 0;
	release_now(rl);
}

void
release_stop(struct release *rl)
{
	rl->rl_stopped = true;
}
