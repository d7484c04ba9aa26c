/*
 * churn: clients that each send one request on a new connection, again and again.
 */
#ifndef TESTS_FREEBSD_CHURN_H
#define TESTS_FREEBSD_CHURN_H

#include <stdbool.h>

#include "tests/freebsd/http.h"

#define CHURN_CLIENTS 8

struct churn {
	struct http ch_clients[CHURN_CLIENTS];
	double ch_since[CHURN_CLIENTS]; /* start of the connect(2), seconds */
	unsigned ch_exact;
	unsigned ch_refused; /* connections that were refused */
	unsigned ch_wrong;   /* responses that are wrong, or did not come */
	double ch_worst;     /* longest time from connect(2) to the last byte */
};

void churn_begin(struct churn *);

/* Opens the connections that are closed, and waits for bytes, for a moment at most. */
void churn_run(struct churn *);

/* Waits for the last responses, and prints the counts.  Returns true if every response was exact. */
bool churn_end(struct churn *);

#endif
