/*
 * expiry: warns of certificates that expire soon (identity_stays_good), or that clients do not take
 * already, once a day.  Main's thread.
 */
#ifndef SERVER_PROCESS_EXPIRY_H
#define SERVER_PROCESS_EXPIRY_H

#include <stdint.h>

struct conf;
struct log_writer;

struct expiry {
	uint64_t ex_next; /* look; microseconds; 0: at once */
};

/* For how long to wait until the next look, milliseconds; -1: for ever. */
int expiry_wait(const struct expiry *, const struct conf *);

/* If it is time. */
void expiry_look(struct expiry *, const struct conf *, struct log_writer *);

#endif
