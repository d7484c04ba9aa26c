/*
 * expiry: warns of certificates that expire soon (identity_stays_good), or that clients do not take
 * already, once a day.  For the main thread.
 */
#ifndef SERVER_PROCESS_EXPIRY_H
#define SERVER_PROCESS_EXPIRY_H

#include <stdint.h>

struct conf;
struct log_writer;

struct expiry {
	uint64_t ex_next; /* next check, microseconds; 0 is at once */
};

/* Returns milliseconds until the next check, or -1 if there is none. */
int expiry_wait(const struct expiry *, const struct conf *);

/* Checks the certificates if the check is due. */
void expiry_look(struct expiry *, const struct conf *, struct log_writer *);

#endif
