/*
 * asleep: decides when to log that an event loop slept outside its wait for events, and formats the
 * message.  Pure: times are microseconds.
 */
#ifndef SERVER_WORKER_ASLEEP_H
#define SERVER_WORKER_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"

/* sleep between two calls that is worth a message, us */
#define ASLEEP_LEAST 1000

/* Initialise with zeros. */
struct asleep {
	bool as_told;	   /* true after the first message */
	uint64_t as_since; /* time of the last message */
	uint64_t as_seen;  /* total sleep at the last call */
	/* true if a message is due after MESSAGE_RATE_PERIOD */
	bool as_due;
	/* totals of each call at the last message */
	struct pw_sleep as_last[PW_SLEEPS];
	/* sleep of each call that the last message lists */
	struct pw_sleep as_more[PW_SLEEPS];
	size_t as_n; /* number of elements of as_last and as_more */
};

/*
 * Checks whether a message is due, at most once in MESSAGE_RATE_PERIOD.  Call four times a second
 * with the list of pw_loop_sleeps.  Returns the loop's sleep since the last message, in
 * microseconds, or 0 if no message is due.
 */
uint64_t asleep_look(
    struct asleep *, const struct pw_sleep *list, size_t n, uint64_t now_us);

/*
 * Writes the sleep that asleep_look returned, by call, the longest first: "sendfile 312.0 ms (3),
 * page fault 0.2 ms (1)".
 */
void asleep_text(const struct asleep *, char *text, size_t size);

#endif
