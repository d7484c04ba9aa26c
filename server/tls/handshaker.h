/*
 * handshaker: threads that compute handshakes, so that no event loop does: a signature takes
 * 0.1 to 2 ms.  One for all workers.
 *
 * Fair and bounded: clients are in HANDSHAKER_PARTS parts by their IPv4 address or /48 of IPv6, and
 * the parts take turns, so that a flood from one network delays the others of its part alone.
 * HANDSHAKER_EACH may wait in a part.  The threads stand back behind the loops (nice(2)).
 * Locks are held for a look at a list.
 */
#ifndef SERVER_TLS_HANDSHAKER_H
#define SERVER_TLS_HANDSHAKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/pagewise.h"

#define HANDSHAKER_PARTS 64
#define HANDSHAKER_EACH	 4096

struct handshaker;

/* A step of a handshake; the memory stays until wt_done. */
struct handshake {
	struct pw_waiter hk_waiter;	   /* wt_done is the caller's */
	int (*hk_run)(struct handshake *); /* on a thread; wt_error */
	STAILQ_ENTRY(handshake) hk_link;   /* the handshaker's */
};

/* 0 or -errno; no thread runs yet. */
int handshaker_create(struct handshaker **);

/* 0 or -errno. */
int handshaker_start(struct handshaker *, unsigned threads);

/* Nobody waits any more. */
void handshaker_destroy(struct handshaker **);

/*
 * client: its network (client_key.h).  Returns false if too many of this part wait; wt_done is not
 * called then.  The loop's thread.
 */
bool handshaker_submit(
    struct handshaker *, struct pw_loop *, struct handshake *, uint64_t client);

/* How many wait now.  Any thread. */
unsigned handshaker_waiting(const struct handshaker *);

#endif
