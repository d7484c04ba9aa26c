/*
 * cold_calls: see cold_calls.h.
 */
#include <errno.h>
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
/* longest time between two checks of a call, microseconds: when the limit is reached, and by ticks */
#define COLD_PAUSE	UINT64_C(250000)
#define COLD_TICK_PAUSE UINT64_C(2000000)

struct cold_call {
	/* first member, as cold_calls_read casts its address */
	struct pw_waiter cc_waiter;
	TAILQ_ENTRY(cold_call) cc_link;
	struct pw_loop *cc_loop;
	struct pw_file *cc_file; /* referenced file of the call */
	off_t cc_off;	    /* start of the bytes that are noted as resident */
	off_t cc_last;	    /* offset of the call's last byte */
	uint64_t cc_begun;  /* time of the call, microseconds */
	uint64_t cc_looked; /* time of the last check, microseconds */
	uint64_t cc_pause;  /* time until the next check, microseconds */
	uint64_t cc_after;  /* bytes that later calls passed to the socket */
	int cc_sock;	    /* socket of the call; may be closed */
	uint64_t cc_peer;   /* os_peer of cc_sock, or 0 */
	bool cc_nocache;    /* true if the kernel frees the pages */
	bool cc_reads;	    /* true if a disk thread reads cc_last */
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

/* Returns true if the bytes of the socket that wait for the disk are all behind those of the call. */
static bool
cold_calls_has_ended(const struct cold_call *cc, long unready)
{
	return unready >= 0 && (uint64_t)unready <= cc->cc_after;
}

static void
cold_calls_look(struct cold_call *cc)
{
	uint64_t peer = os_peer(cc->cc_sock);

	if (peer == 0 || peer != cc->cc_peer)
		cold_calls_await(cc);
	else if (cold_calls_has_ended(cc, os_unready(cc->cc_sock)))
		cold_calls_ready(cc);
}

static bool
cold_calls_is_due(const struct cold_call *cc, uint64_t now_us, uint64_t most)
{
	uint64_t pause = cc->cc_pause < most ? cc->cc_pause : most;

	return !cc->cc_reads && now_us >= cc->cc_looked + pause;
}

/* Checks at most n calls that are due, those with the oldest checks first. */
static void
cold_calls_look_at(
    struct pw_loop *lp, unsigned n, uint64_t now_us, uint64_t most)
{
	struct cold_call *cc, *next,
	    *last = TAILQ_LAST(&lp->lp_cold, cold_head);

	for (cc = TAILQ_FIRST(&lp->lp_cold); cc != NULL && n > 0; cc = next) {
		next = cc == last ? NULL : TAILQ_NEXT(cc, cc_link);
		if (!cold_calls_is_due(cc, now_us, most))
			continue;
		n--;
		TAILQ_REMOVE(&lp->lp_cold, cc, cc_link);
		TAILQ_INSERT_TAIL(&lp->lp_cold, cc, cc_link);
		cc->cc_looked = now_us;
		cc->cc_pause = now_us - cc->cc_begun;
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
		cold_calls_look_at(lp, COLD_LOOKS, clock_now(), COLD_PAUSE);
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

/*
 * Notes that a call passed `len` more bytes to the socket, of which `unready` bytes, or bytes before
 * them, wait for the disk.  Ends the earlier calls whose bytes do not.  Returns how long the last of
 * these was in flight, in microseconds, or 0.
 */
static uint64_t
cold_calls_pass(struct pw_loop *lp, int sock, uint64_t peer, size_t len,
    long unready, uint64_t now_us)
{
	struct cold_call *cc, *next;
	uint64_t age = 0;

	for (cc = TAILQ_FIRST(&lp->lp_cold); cc != NULL; cc = next) {
		next = TAILQ_NEXT(cc, cc_link);
		if (cc->cc_sock != sock || cc->cc_peer != peer)
			continue;
		cc->cc_after += len;
		if (cc->cc_reads || !cold_calls_has_ended(cc, unready))
			continue;
		age = now_us - cc->cc_begun;
		cold_calls_ready(cc);
	}
	return age;
}

bool
cold_calls_end(
    struct pw_send *s, struct cold_call *cc, size_t len, bool nocache)
{
	uint64_t peer = len == 0 ? 0 : os_peer(s->snd_sock), now = clock_now();
	off_t piece = s->snd_off / VERIFIED_PIECE * VERIFIED_PIECE,
	      begun = send_priv(s)->ss_from;
	long unready = peer == 0 ? -ENOTCONN : os_unready(s->snd_sock);

	if (peer != 0)
		cc->cc_pause = cold_calls_pass(
		    cc->cc_loop, s->snd_sock, peer, len, unready, now);
	if (len == 0 || unready == 0) {
		cold_calls_free(cc);
		return len > 0;
	}
	pw_file_ref(s->snd_file);
	cc->cc_file = s->snd_file;
	cc->cc_off = piece > begun ? piece : begun;
	cc->cc_nocache = nocache;
	cc->cc_last = s->snd_off + (off_t)len - 1;
	cc->cc_begun = cc->cc_looked = now;
	cc->cc_sock = s->snd_sock;
	cc->cc_peer = peer;
	TAILQ_INSERT_TAIL(&cc->cc_loop->lp_cold, cc, cc_link);
	return false;
}

void
cold_calls_tick(struct pw_loop *lp, uint64_t now_us)
{
	cold_calls_look_at(lp, COLD_TICK_LOOKS, now_us, COLD_TICK_PAUSE);
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
