/*
 * send_private: what the library keeps of a transmission in snd_private of its struct pw_send;
 * for lib/send/ only.  The loop's thread, unless a field says otherwise.
 */
#ifndef LIB_SEND_SEND_PRIVATE_H
#define LIB_SEND_SEND_PRIVATE_H

#include <assert.h>
#include <stddef.h>

#include "lib/pagewise.h"

struct ahead;
struct pin;

struct send_private {
	struct pw_waiter ss_waiter;
	size_t ss_window;	/* bytes */
	size_t ss_chunk;	/* bytes of the next step */
	uint64_t ss_since;	/* when pending began */
	unsigned long ss_ended; /* what its device had done then */
	off_t ss_ready;		/* resident, as far as we know, up to here */
	uint64_t ss_ready_at;	/* when that was asked, microseconds */
	off_t ss_from;		/* begin of the window being fetched */
	off_t ss_asked;		/* end of the window being fetched */
	off_t ss_offered; /* take_range of a sink has seen what is before it */
	bool ss_backed_off;	/* since something was sent */
	bool ss_short;		/* of memory: what was fetched was evicted */
	unsigned ss_how;	/* enum fetch_how: how the window is read */
	bool ss_direct;		/* it was read past the page cache */
	bool ss_full;		/* nothing was taken since the last step */
	bool ss_granted;	/* there is room for it now */
	bool ss_follows;	/* the next window is in memory */
	bool ss_joins;		/* memory and file go to the sink together */
	size_t ss_held;		/* bytes of the budget that it has: budget.h */
	size_t ss_wanted;	/* that it waits for */
	size_t ss_lead;		/* so early the next window is fetched */
	struct pin *ss_pin;	/* has snd_off locked in memory; or NULL */
	struct ahead *ss_ahead; /* the next windows, on their way, or NULL */
	uint64_t ss_mark;	/* snd_rate is measured since then, ... */
	off_t ss_mark_off;	/* when this much had been taken */
	off_t ss_fetched;	/* first byte that we brought in ... */
	off_t ss_fetched_end;	/* ... and the end of that stretch */
	off_t ss_dropped;	/* given back up to here, as far as possible */
	void *ss_own;		/* what the path keeps for itself */
	unsigned ss_fetches;	/* since something was sent */
	int ss_lent;		/* atomic: user of the socket: path_pool.c */
	size_t ss_took;		/* bytes that a pool thread's call sent */
	int ss_result;		/* what it returned */
	int ss_next;		/* enum account_next: what came of it */
	bool ss_reported;	/* ss_next is to be the next answer */
	bool ss_copies;		/* its socket gets copies: see pw_loop_bound */
	bool ss_brings;		/* something was not in memory before */
	bool ss_drops;		/* what was brought in is given back ... */
	bool ss_trial;		/* ... or is used once so far ... */
	bool ss_decided;	/* ... or not: see send_drops */
} __attribute__((may_alias));	/* the room was declared as characters */

static_assert(sizeof(struct send_private) <= PW_SEND_ROOM,
    "a larger PW_SEND_ROOM breaks the ABI");

static inline struct send_private *
send_priv(const struct pw_send *s)
{
	return (struct send_private *)(uintptr_t)&s->snd_private;
}

#endif
