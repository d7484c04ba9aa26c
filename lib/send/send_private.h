/*
 * send_private: the private state of a transmission, in snd_private of its struct pw_send;
 * for lib/send/ only.  Loop's thread, unless a field's comment names another.
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
	size_t ss_window;  /* bytes of the next window */
	size_t ss_chunk;   /* bytes of the next step */
	uint64_t ss_since; /* time at which pending began, microseconds */
	/* device_ended at ss_since or the last pw_send_stuck */
	unsigned long ss_ended;
	off_t ss_ready; /* end of the bytes known to be resident, or -1 */
	/* time of the check that set ss_ready, microseconds */
	uint64_t ss_ready_at;
	off_t ss_from;	    /* begin of the window being fetched */
	off_t ss_asked;	    /* end of the window being fetched */
	off_t ss_offered;   /* end of the bytes offered to take_range, or -1 */
	bool ss_backed_off; /* paused for a tick since the last progress */
	bool ss_short;	    /* memory is short: the window was evicted unsent */
	unsigned ss_how;    /* enum fetch_how: how the window is read */
	bool ss_direct;	    /* the last window was read past the page cache */
	bool ss_full;	    /* the socket or sink was full in the last step */
	bool ss_granted;    /* the budget for ss_wanted was granted */
	bool ss_follows;    /* the next window is resident */
	bool ss_joins; /* snd_mem and file bytes go to the sink in one call */
	/* the transmission's part of the budget, or NULL */
	struct holder *ss_holder;
	size_t ss_wanted; /* bytes of budget requested for the next window */
	/* bytes before ss_asked at which the next fetch begins */
	size_t ss_lead;
	struct pin *ss_pin; /* pin that holds the byte at snd_off, or NULL */
	struct ahead *ss_ahead; /* fetches of the next windows, or NULL */
	uint64_t ss_mark;     /* begin of the rate measurement, microseconds */
	off_t ss_mark_off;    /* bytes acknowledged at ss_mark */
	off_t ss_fetched;     /* begin of the stretch that was fetched */
	off_t ss_fetched_end; /* end of the stretch that was fetched */
	off_t ss_dropped;     /* end of the dropped part of that stretch */
	void *ss_own;	      /* state of the path, or NULL */
	unsigned ss_fetches;  /* fetches since the last progress */
	int ss_lent;	      /* atomic; owner of the socket (path_pool.c) */
	size_t ss_took;	      /* bytes that a disk thread's call sent */
	int ss_result;	      /* result of the last send call, 0 or -errno */
	int ss_next; /* enum account_next: outcome of a disk thread's call */
	bool ss_reported; /* the next step returns ss_next */
	bool ss_copies;	  /* the socket is sent copies (pw_loop_bound) */
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
