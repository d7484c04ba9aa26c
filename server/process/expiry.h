/*
 * expiry: once a day, logs a warning for each certificate that expires soon, or that clients
 * already reject (identity_stays_good).  Runs on the main thread.
 */
#ifndef SERVER_PROCESS_EXPIRY_H
#define SERVER_PROCESS_EXPIRY_H

#include <stdint.h>

struct conf;
struct log_writer;

struct expiry {
	/* time of the next check, microseconds; 0 for now */
	uint64_t ex_next;
};

/* Returns the milliseconds until the next check, or -1 if no check is needed. */
int expiry_wait(const struct expiry *, const struct conf *);

void expiry_look(struct expiry *, const struct conf *, struct log_writer *);

#endif
