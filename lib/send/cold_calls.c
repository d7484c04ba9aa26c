/*
 * cold_calls: see cold_calls.h.
 */
#include <stdlib.h>

#include "lib/disk/cold.h"
#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pool.h"
#include "lib/file/verified.h"
#include "lib/os/os.h"
#include "lib/send/cold_calls.h"
#include "lib/send/send_private.h"
#include "lib/util/clock.h"

#define COLD_LOOKS	8  /* calls checked when the limit is reached */
#define COLD_TICK_LOOKS 64 /* calls checked per tick */

struct cold_call {
	/* first member, as cold_calls_read casts its address */
	struct pw_waiter cc_waiter;
	TAILQ_ENTRY(cold_call) cc_link;
	struct pw_loop *cc_loop;
	struct pw_file *cc_file; /* referenced file of the call */
	off_t cc_off;	  /* start of the bytes that are noted as resident */
	off_t cc_last;	  /* offset of the call's last byte */
	int cc_sock;	  /* socket of the call; may be closed */
	uint64_t cc_peer; /* os_peer of cc_sock, or 0 */
	bool cc_nocache;  /* true if the kernel frees the pages */
	bool cc_reads;	  /* true if a disk thread reads cc_last */
};

static void
cold_calls_free(struct cold_call *cc)
{
	cold_give(pool_cold(cc->cc_loop->lp_pool));
	free(cc);
}

static void
cold_calls_remove(struct cold_call *cc)
{
	TAILQ_REMOVE(&cc->cc_loop->lp_cold, cc, cc_link);
	pw_file_unref(&cc->cc_file);
	cold_calls_free(cc);
}

/* Ends the call when the disk thread's read has ended, also with an error. */
static void
cold_calls_read(struct pw_waiter *w)
{
	cold_calls_remove((struct cold_call *)w);
}

/* Has a disk thread wait for the reads of the call.  If its queue is full, the next check tries again. */
static void
cold_calls_await(struct cold_call *cc)
{
	cc->cc_waiter.wt_done = cold_calls_read;
	cc->cc_reads = pool_fetch(cc->cc_file, cc->cc_last, 1,
			   cc->cc_nocache ? FETCH_RELEASED : FETCH_PAGES,
			   ADMIT_HINT, &cc->cc_waiter) == 0;
}

/* Ends a call whose bytes were all read, and notes these bytes as resident. */
static void
cold_calls_ready(struct cold_call *cc)
{
	const struct pw_file *file = cc->cc_file;

	if (!cc->cc_nocache)
		verified_note(cc->cc_loop->lp_verified,
		    file_priv(file)->fp_number, cc->cc_off, cc->cc_last + 1,
		    file->fil_size, clock_now());
	cold_calls_remove(cc);
}

static void
cold_calls_look(struct cold_call *cc)
{
	uint64_t peer;

	if (cc->cc_reads)
		return;
	peer = os_peer(cc->cc_sock);
	if (peer == 0 || peer != cc->cc_peer)
		cold_calls_await(cc);
	else if (os_unready(cc->cc_sock) == 0)
		cold_calls_ready(cc);
}

/* Checks n calls, those with the oldest checks first. */
static void
cold_calls_look_at(struct pw_loop *lp, unsigned n)
{
	struct cold_call *cc, *last = TAILQ_LAST(&lp->lp_cold, cold_head);
	bool more = last != NULL;

	for (; more && n > 0; n--) {
		cc = TAILQ_FIRST(&lp->lp_cold);
		more = cc != last;
		TAILQ_REMOVE(&lp->lp_cold, cc, cc_link);
		TAILQ_INSERT_TAIL(&lp->lp_cold, cc, cc_link);
		cold_calls_look(cc);
	}
}

struct cold_call *
cold_calls_begin(struct pw_send *s, bool before)
{
	struct pw_loop *lp = s->snd_loop;
	struct cold *co = pool_cold(lp->lp_pool);
	struct cold_call *cc;

	if (!cold_take(co, before)) {
		cold_calls_look_at(lp, COLD_LOOKS);
		if (!cold_take(co, before))
			return NULL;
	}
	cc = calloc(1, sizeof(*cc));
	if (cc == NULL)
		cold_give(co);
	else
		cc->cc_loop = lp;
	return cc;
}

bool
cold_calls_end(
    struct pw_send *s, struct cold_call *cc, size_t len, bool nocache)
{
	uint64_t peer = len == 0 ? 0 : os_peer(s->snd_sock);
	off_t piece = s->snd_off / VERIFIED_PIECE * VERIFIED_PIECE,
	      begun = send_priv(s)->ss_from;

	if (len == 0 || (peer != 0 && os_unready(s->snd_sock) == 0)) {
		cold_calls_free(cc);
		return len > 0;
	}
	pw_file_ref(s->snd_file);
	cc->cc_file = s->snd_file;
	cc->cc_off = piece > begun ? piece : begun;
	cc->cc_nocache = nocache;
	cc->cc_last = s->snd_off + (off_t)len - 1;
	cc->cc_sock = s->snd_sock;
	cc->cc_peer = peer;
	TAILQ_INSERT_TAIL(&cc->cc_loop->lp_cold, cc, cc_link);
	return false;
}

void
cold_calls_tick(struct pw_loop *lp)
{
	cold_calls_look_at(lp, COLD_TICK_LOOKS);
}

void
cold_calls_forget(struct pw_loop *lp)
{
	struct cold_call *cc, *next;

	for (cc = TAILQ_FIRST(&lp->lp_cold); cc != NULL; cc = next) {
		next = TAILQ_NEXT(cc, cc_link);
		cold_calls_remove(cc);
	}
}
