/*
 * slow_clients: finds the clients whose lookups take long on the loop, for example because 39 symbolic links
 * of 4 KB each lead to a path.  Disk threads do the next lookups of such a client, whose requests for paths
 * that do not exist would otherwise take half of the loop's time.  Belongs to a loop.
 *
 * A lookup that takes SLOW_US makes its client a suspect, since the kernel may only have run another thread
 * meanwhile.  If a further lookup computes for SLOW_US, the client is slow.  Both end after SLOW_FOR_US.
 *
 * All connections of a client (wt_client) count as one.  Clients that share a slot displace each other.  Times
 * are microseconds.
 */
#ifndef LIB_FILE_SLOW_CLIENTS_H
#define LIB_FILE_SLOW_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#define SLOW_US	     ((uint64_t)200)
#define SLOW_FOR_US  ((uint64_t)10000000)
#define SLOW_CLIENTS 256

struct slow_client {
	unsigned sl_client;
	bool sl_proven;	   /* true if slow, false if a suspect */
	uint64_t sl_until; /* end of that state; 0 if the slot is empty */
};

/* Initialise with zeros. */
struct slow_clients {
	struct slow_client sls_list[SLOW_CLIENTS];
};

/* Measurement of a lookup. */
struct slow_lookup {
	unsigned slo_client;
	bool slo_suspect; /* true if slo_began is the thread's CPU time */
	uint64_t slo_began;
};

/* Begins a lookup at the time `now`.  Returns false if a disk thread must do it. */
bool slow_clients_begin(const struct slow_clients *, unsigned client,
    uint64_t now, struct slow_lookup *);

/* Ends the lookup. */
void slow_clients_end(struct slow_clients *, const struct slow_lookup *);

#endif
