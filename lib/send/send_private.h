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
struct own;
struct pin;

/* States of ss_lent.  Disk thread and loop compete to leave LENT_OUT; one of them succeeds. */
enum {
	LENT_NOT,     /* only the loop uses the socket */
	LENT_OUT,     /* the job is queued, or its thread reads */
	LENT_CLAIMED, /* a thread or the ring may be sending */
	LENT_BACK,    /* the loop took the socket back; no thread may send */
};

struct send_private {
	struct pw_waiter ss_waiter;
	size_t ss_window;  /* bytes of the next window */
	size_t ss_chunk;   /* bytes of the next step */
	uint64_t ss_since; /* start of the wait, microseconds */
	/* device_ended at ss_since or the last pw_send_stuck */
	unsigned long ss_ended;
	off_t ss_ready; /* end of the bytes known to be resident, or -1 */
	/* time before the check that set ss_ready, microseconds */
	uint64_t ss_ready_at;
	/* start of the window requested last; before the first one, snd_off of pw_send_start */
	off_t ss_from;
	off_t ss_asked;	  /* end of the window requested last, or -1 */
	off_t ss_offered; /* end of the bytes offered to take_range, or -1 */
	off_t ss_extent;  /* end of the hole or data at snd_off, or -1 */
	bool ss_hole;	  /* true if a hole ends at ss_extent */
	unsigned char ss_how; /* method of reading windows, an enum fetch_how */
	bool ss_direct;	      /* true if the last window was read direct */
	bool ss_granted;      /* true if the budget for ss_wanted was granted */
	bool ss_follows;      /* true if the next window is resident */
	unsigned char ss_wait; /* cause of the last wait, an enum send_wait */
	/* true if snd_mem and file bytes go to the sink in one call */
	bool ss_joins;
	bool ss_reported; /* true if the next step returns ss_next */
	/* true if data is copied into the socket (pw_loop_bound) */
	bool ss_copies;
	/* true if a page was missing; later pages are then dropped too */
	bool ss_brings : 1;
	bool ss_drops : 1; /* true if fetched pages are dropped */
	bool ss_trial : 1; /* true if the file is on trial (admission.h) */
	/* true if windows may come from the tier (tier_fetch.h) */
	bool ss_tier : 1;
	bool ss_decided : 1; /* true if ss_drops and the fields above are set */
	bool ss_counts : 1;  /* true if account_sent counts for admission.h */
	unsigned char ss_tier_use; /* for ss_tier, an enum tier_use */
	/* outcome of a disk thread's call, an enum account_next */
	unsigned char ss_next;
	/* the transmission's part of the budget, or NULL */
	struct holder *ss_holder;
	size_t ss_wanted; /* bytes of budget requested for the next window */
	/* bytes before ss_asked at which the next fetch begins */
	size_t ss_lead;
	struct pin *ss_pin; /* pin that holds the byte at snd_off, or NULL */
	struct ahead *ss_ahead; /* fetches of the next windows, or NULL */
	uint64_t ss_mark;     /* start of the rate measurement, microseconds */
	off_t ss_mark_off;    /* acknowledged offset at ss_mark */
	off_t ss_fetched;     /* start of the stretch that was fetched */
	off_t ss_fetched_end; /* end of the stretch that was fetched */
	off_t ss_dropped;     /* end of the dropped part of the stretch */
	struct own *ss_own;   /* own memory (own.h), or NULL */
	size_t ss_took;	      /* bytes that a disk thread's call sent */
	off_t ss_reach;	      /* end of the bytes that may be fetched */
	int ss_lent;	      /* user of the socket, one of LENT_*; atomic */
	int ss_result;	      /* result of the last send call, 0 or -errno */
} __attribute__((may_alias)); /* snd_private is an array of characters */

static_assert(sizeof(struct send_private) <= PW_SEND_ROOM,
    "struct send_private must fit into PW_SEND_ROOM, which is part of the ABI");

static inline struct send_private *
send_priv(const struct pw_send *s)
{
	return (struct send_private *)(uintptr_t)&s->snd_private;
}

#endif
