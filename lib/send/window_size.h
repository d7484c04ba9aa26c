/*
 * window_size: how much of a file to fetch at once, and how early.  Pure.
 *
 * A large window is one large request to the disk; a client that takes it slowly
 * keeps it in memory for long.  So while memory is plenty a window is WINDOW_MOST;
 * otherwise it is the data that the client takes in half a second, or in four times the
 * device's time for a window, if that is longer (`readahead = auto').  The rate includes
 * waits for the device: so a transfer that mostly waits gets a larger window, one that
 * mostly drains does not.
 */
#ifndef LIB_SEND_WINDOW_SIZE_H
#define LIB_SEND_WINDOW_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_LEAST ((size_t)64 << 10)
#define WINDOW_GUESS ((size_t)256 << 10) /* for an unknown rate */
#define WINDOW_MOST  ((size_t)2 << 20)

struct window_facts {
	uint64_t wf_rate;    /* bytes/s of the client; 0 if unknown */
	bool wf_guess;	     /* wf_rate is the median of other clients */
	uint64_t wf_latency; /* microseconds of a fetch and its queue */
	bool wf_plenty;	     /* the budget has plenty left */
};

/* Returns the size of the next window in bytes, a power of two. */
size_t window_size(const struct window_facts *);

#define WINDOW_LEAD 4 /* windows */

/*
 * Fetch the next window when no more than this is left: the data that the client takes in twice the
 * time of a fetch, at most WINDOW_LEAD windows of that size.
 */
size_t window_lead(const struct window_facts *, size_t window);

#endif
