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
struct holder;
struct pin;

struct send_private {
	struct pw_waiter ss_waiter;
	size_t ss_window;	/* bytes of the next window */
	size_t ss_chunk;	/* bytes of the next step */
	uint64_t ss_since;	/* time at which pending began, microseconds */
	unsigned long ss_ended; /* device_ended at that time */
	off_t ss_ready;		/* end of what is known to be resident; or -1 */
	uint64_t ss_ready_at;	/* time of that check, microseconds */
	off_t ss_from;		/* begin of the window being fetched */
	off_t ss_asked;		/* end of the window being fetched */
	off_t ss_offered;   /* end of what take_range of the sink was offered */
	bool ss_backed_off; /* paused for a tick since the last progress */
	bool ss_short;	    /* memory is short: the window was evicted unsent */
	unsigned ss_how;    /* enum fetch_how: how the window is read */
	bool ss_direct;	    /* the last window was read past the page cache */
	bool ss_full;	    /* the socket or sink was full in the last step */
	bool ss_granted;    /* the budget for ss_wanted was granted */
	bool ss_follows;    /* the next window is resident */
	bool ss_joins; /* snd_mem and file bytes go to the sink in one call */
	struct holder *ss_holder; /* its part of the budget, or NULL */
	size_t ss_wanted;	  /* bytes of the budget that are waited for */
	size_t
	    ss_lead; /* bytes before ss_asked at which the next fetch begins */
	struct pin *ss_pin; /* pin that holds the byte at snd_off, or NULL */
	struct ahead *ss_ahead; /* fetches of the next windows, or NULL */
	uint64_t ss_mark;     /* begin of the rate measurement, microseconds */
	off_t ss_mark_off;    /* bytes acknowledged at ss_mark */
	off_t ss_fetched;     /* begin of the stretch that was fetched */
	off_t ss_fetched_end; /* end of that stretch */
	off_t ss_dropped;     /* end of what was dropped of it */
	void *ss_own;	      /* state of the path, or NULL */
	unsigned ss_fetches;  /* fetches since the last progress */
	int ss_lent;	      /* atomic; owner of the socket (path_pool.c) */
	size_t ss_took;	      /* bytes that a pool thread's call sent */
	int ss_result;	      /* result of that call */
	int ss_next;	      /* enum account_next: outcome of that call */
	bool ss_reported;     /* the next step returns ss_next */
	bool ss_copies;	      /* the socket is sent copies (pw_loop_bound) */
	bool ss_brings;	 /* a page was missing, so later ones are dropped too */
	bool ss_drops;	 /* fetched pages are dropped */
	bool ss_trial;	 /* the file is on trial (admission.h) */
	bool ss_decided; /* ss_drops and ss_trial are set (send_drops) */
} __attribute__((may_alias)); /* snd_private is an array of characters */

static_assert(sizeof(struct send_private) <= PW_SEND_ROOM,
    "struct send_private must fit into PW_SEND_ROOM, which is part of the ABI");

static inline struct send_private *
send_priv(const struct pw_send *s)
{
	return (struct send_private *)(uintptr_t)&s->snd_private;
}

#endif
