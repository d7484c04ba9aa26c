/*
 * asleep: when, and with which text, to log that a loop has slept outside its wait for
 * events.  Pure: times are microseconds.
 */
#ifndef SERVER_WORKER_ASLEEP_H
#define SERVER_WORKER_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"

#define ASLEEP_LEAST 1000 /* us between calls; less is in the metrics only */

/* Initialise with zeros. */
struct asleep {
	bool as_told;
	uint64_t as_since; /* time of the last message */
	uint64_t as_seen;  /* total sleep at the last call */
	bool as_due;	   /* enough sleep since the last message */
	struct pw_sleep as_last[PW_SLEEPS]; /* values at the last message */
	struct pw_sleep as_more[PW_SLEEPS]; /* between the last two messages */
	size_t as_n;
};

/*
 * Call some times a second with the list of pw_loop_sleeps.  Returns 0, or, if a message is due (once
 * in MESSAGE_RATE_PERIOD), for how long the loop has slept since the last message, in microseconds.
 */
uint64_t asleep_look(
    struct asleep *, const struct pw_sleep *list, size_t n, uint64_t now_us);

/* Writes what that sleep was, the longest first: "sendfile 312.0 ms (3), page fault 0.2 ms (1)". */
void asleep_text(const struct asleep *, char *text, size_t size);

#endif
