/*
 * window_size: how much of a file to fetch at once, and how early.  Pure functions.
 *
 * A large window is one large request to the disk, but stays in memory for long if the client is
 * slow.  So a window is WINDOW_MOST if the budget has plenty left.  Otherwise a window is the data
 * that the client reads in half a second, or in four times wf_latency if that is longer (`readahead
 * = auto').  wf_rate is measured over a time that includes waits for the device.  So wf_latency
 * makes windows grow only if the transfer spends much of its time waiting for the device.
 *
 * On a disk that seeks (wf_seeks) a small window takes as long as one of 1 MiB.  So there a window is
 * the data that the client reads in four seconds, also if the rate is a guess.
 */
#ifndef LIB_SEND_WINDOW_SIZE_H
#define LIB_SEND_WINDOW_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_LEAST ((size_t)64 << 10)
#define WINDOW_GUESS ((size_t)256 << 10) /* largest window for a guess */
#define WINDOW_MOST  ((size_t)2 << 20)

struct window_facts {
	uint64_t wf_rate; /* rate of the client, bytes/s; 0 if unknown */
	/* true if wf_rate is the median of other clients, and half of the budget is used (pool_room_half) */
	bool wf_guess;
	uint64_t wf_latency; /* time of a fetch with its queue, microseconds */
	bool wf_plenty;	     /* result of budget_plenty, or false */
	bool wf_seeks;	     /* result of device_seeks */
	size_t wf_lead; /* last lead of the transmission, bytes; 0 if none */
};

/* Returns the size of the next window in bytes, a power of two. */
size_t window_size(const struct window_facts *);

#define WINDOW_LEAD	  8 /* maximum lead, windows */
#define WINDOW_LEAD_SEEKS 4 /* the same on a disk that seeks */

/*
 * Returns the number of unsent bytes at which the next window is fetched: the data that the client
 * reads in twice the time of a fetch, but at least WINDOW_LEAST bytes, and at most WINDOW_LEAD
 * windows.  A rate that was measured while the transmission waited for the disk is too low, so a
 * lead of more than a window falls by at most a quarter at once, within these limits.  On a disk that seeks: in four seconds, since the time of a
 * fetch grows to seconds when many clients come, and at least half a window.
 */
size_t window_lead(const struct window_facts *, size_t window);

#endif
