/*
 * message_rate: limits messages that could be logged a thousand times a second to once a minute
 * each.  Pure: times are microseconds of any clock that only goes forward.
 */
#ifndef SERVER_LOG_MESSAGE_RATE_H
#define SERVER_LOG_MESSAGE_RATE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/log/log.h"

#define MESSAGE_RATE_PERIOD ((uint64_t)60 * 1000000)

/*
 * The limited messages of a worker: RATE(name, level of the message, text after "N more" for the
 * suppressed ones).
 */
#define MESSAGE_RATES(RATE)                                                    \
	RATE(FILES, LEVEL_ERROR,                                               \
	    "files not opened because descriptors ran out")                    \
	RATE(MEMORY, LEVEL_ERROR, "requests failed because memory ran out")    \
	RATE(SIBLING, LEVEL_WARNING, "compressed siblings not sent")           \
	RATE(CHANGED, LEVEL_ERROR, "responses failed because a file changed")  \
	RATE(BUSY, LEVEL_WARNING, "passwords not verified")                    \
	RATE(DISK, LEVEL_ERROR,                                                \
	    "requests aborted because a disk did not respond")                 \
	RATE(PAUSE, LEVEL_WARNING, "failures to accept connections")           \
	RATE(RECLAIM, LEVEL_WARNING,                                           \
	    "idle connections or cached files closed because descriptors ran " \
	    "out")                                                             \
	RATE(                                                                  \
	    FULL, LEVEL_WARNING, "pauses because max_connections was reached") \
	RATE(ADDRESS, LEVEL_WARNING,                                           \
	    "connections refused because max_connections_per_address was "     \
	    "reached")                                                         \
	RATE(PROXY, LEVEL_WARNING,                                             \
	    "connections closed because they lacked a PROXY header")           \
	RATE(FRAMES, LEVEL_WARNING,                                            \
	    "connections aborted because their clients sent floods of HTTP/2 " \
	    "control frames")                                                  \
	RATE(STALL, LEVEL_WARNING, "slow event-loop iterations")               \
	RATE(EVICT, LEVEL_WARNING,                                             \
	    "connections closed that had sent no request")                     \
	RATE(SHORT, LEVEL_WARNING, "shortages of memory for connections")      \
	RATE(STALLED, LEVEL_WARNING,                                           \
	    "connections aborted because memory was short and their clients "  \
	    "read nothing")                                                    \
	RATE(UNACKED, LEVEL_WARNING,                                           \
	    "shortages of memory for sockets of clients that do not read")

#define MESSAGE_RATES_NAME(name, level, text) TOLD_##name,
enum message_rate_kind { MESSAGE_RATES(MESSAGE_RATES_NAME) TOLD_KINDS };
#undef MESSAGE_RATES_NAME

/* The state of one message's limit.  Zero the structure before its first use. */
struct message_rate {
	bool lim_told;
	uint64_t lim_since; /* time of the last message, microseconds */
	uint64_t lim_left;  /* suppressed messages not yet reported */
};

/* The suppressed messages of one kind. */
struct message_rate_left {
	enum log_level ml_level;
	const char *ml_text;
	uint64_t ml_count;
};

/* Returns true if the caller may log a message of this kind, else counts it as suppressed. */
bool message_rate_tell(struct message_rate[static TOLD_KINDS],
    enum message_rate_kind, uint64_t now_us);

/*
 * Works as message_rate_tell for a message about a client.  If the result is true, `text` holds the
 * client's address.
 */
bool message_rate_tell_of(struct message_rate[static TOLD_KINDS],
    enum message_rate_kind, uint64_t now_us, const struct sockaddr *,
    char text[static INET6_ADDRSTRLEN]);

/*
 * Returns true if suppressed messages of any kind must be reported now.  Call several times a
 * second, again and again until it returns false, since messages stay suppressed until then.
 */
bool message_rate_left_out(struct message_rate[static TOLD_KINDS],
    uint64_t now_us, struct message_rate_left *);

/*
 * Returns true if no message was logged in the last MESSAGE_RATE_PERIOD, and notes that one is
 * logged now.  For a message that itself has the number of what happened since the last one.
 */
bool message_rate_due(struct message_rate *, uint64_t now_us);

#endif
