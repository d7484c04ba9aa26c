/*
 * message_rate: limits a message that could be logged a thousand times a second to once a
 * minute.  Pure: times are microseconds of any clock that only goes forward.
 */
#ifndef SERVER_LOG_MESSAGE_RATE_H
#define SERVER_LOG_MESSAGE_RATE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_RATE_PERIOD ((uint64_t)60 * 1000000)

/* The state of one message's limit.  Zero the structure before its first use. */
struct message_rate {
	bool lim_told;
	uint64_t lim_since; /* time of the last message, microseconds */
	uint64_t lim_left;  /* messages suppressed since lim_since */
};

/* Returns true if the caller may log the message, else counts it as suppressed. */
bool message_rate_tell(struct message_rate *, uint64_t now_us);

/*
 * Works as message_rate_tell for a message about a client.  If the result is true, `text` holds the
 * client's address.
 */
bool message_rate_tell_of(struct message_rate *, uint64_t now_us,
    const struct sockaddr *, char text[static INET6_ADDRSTRLEN]);

/* Returns the number of suppressed messages if that number must be logged now, else 0. */
uint64_t message_rate_left_out(struct message_rate *, uint64_t now_us);

#endif
