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

#define ASLEEP_LEAST 1000 /* between two looks; less is in the metrics alone */

/* Zero it first. */
struct asleep {
	bool as_told;
	uint64_t as_since; /* time of the last message */
	uint64_t as_seen;  /* the sum, when it was looked at last */
	bool as_due;	   /* it has been enough since the last message */
	struct pw_sleep as_last[PW_SLEEPS]; /* as of the last message */
	struct pw_sleep as_more[PW_SLEEPS]; /* since the one before it */
	size_t as_n;
};

/*
 * Some times a second, with what pw_loop_sleeps says.  0, or a message is due, once in
 * MESSAGE_RATE_PERIOD: for how long the loop has slept since the last one.
 */
uint64_t asleep_look(
    struct asleep *, const struct pw_sleep *list, size_t n, uint64_t now_us);

/* Of which then "sendfile 312.0 ms (3), page fault 0.2 ms (1)", the longest first. */
void asleep_text(const struct asleep *, char *text, size_t size);

#endif
