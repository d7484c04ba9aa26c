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
#include "server/log/message_rate.h"

/* minimum sleep between two calls of asleep_look for a message, us */
#define ASLEEP_LEAST 1000

/* Initialise with zeros.  A kind of sleep is an entry of pw_loop_sleeps, such as a system call. */
struct asleep {
	struct message_rate as_rate;
	uint64_t as_seen; /* total sleep at the last asleep_look */
	/* true if a message is due after MESSAGE_RATE_PERIOD */
	bool as_due;
	/* total sleep of each kind at the last message */
	struct pw_sleep as_last[PW_SLEEPS];
	/* sleep of each kind that the last message lists, the longest first */
	struct pw_sleep as_more[PW_SLEEPS];
	size_t as_n; /* number of elements of as_last and as_more */
};

/*
 * Returns the loop's sleep since the last message if a message is due, at most once in
 * MESSAGE_RATE_PERIOD, or 0 if none is due.  Call four times a second with the list of
 * pw_loop_sleeps.
 */
uint64_t asleep_look(
    struct asleep *, const struct pw_sleep *list, size_t n, uint64_t now_us);

/*
 * Writes each kind of the sleep that asleep_look returned, with its time and number of sleeps:
 * "sendfile 312.0 ms (3), page fault 0.2 ms (1)".
 */
void asleep_text(const struct asleep *, char *text, size_t size);

#endif
