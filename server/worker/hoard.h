/*
 * hoard: chooses the connection to close when another client needs a slot, among the connections
 * that have not sent a complete request.  Pure.
 *
 * The address or network with the highest score loses a connection.  A connection counts 1 at its
 * address (client_key.h), 1/4 in its /24 or /56, 1/8 in its /16 or /48; the highest of the three
 * sums is the score.  So many addresses of one network count like one client, and a slow client
 * that is alone at its address stays while another address has two connections.
 *
 * Among equal scores, the address with more connections is first.  Then connections are closed in
 * the order of their progress: nothing sent, part of a request, a handshake, part of a request
 * after the handshake.  If handshakes are few (hr_few), connections with a handshake are closed
 * last.  A handshake costs a client more than a byte, and takes round trips, so clients that send
 * part of a request from many addresses do not keep out a client that begins a handshake.  Among
 * connections of equal rank, the oldest is closed first.
 */
#ifndef SERVER_WORKER_HOARD_H
#define SERVER_WORKER_HOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util/hash.h"

#define HOARD_MAX  256	    /* maximum number of connections considered */
#define HOARD_NONE SIZE_MAX /* no connection */
#define HOARD_FEW  4	    /* few handshakes: at most 1/4 of the connections */

enum hoard_progress {
	HOARD_SILENT,
	HOARD_PART,	   /* part of a request or of a PROXY header */
	HOARD_HANDSHAKE,   /* a handshake that has begun or is complete */
	HOARD_SECURE_PART, /* part of a request after the handshake */
	HOARD_PROGRESSES,
};

struct hoarded {
	uint64_t ho_key; /* client's key: client_key.h */
	enum hoard_progress ho_progress;
	/* true if the connection counts but must not be closed */
	bool ho_spared;
};

struct hoard_rank {
	unsigned hr_score; /* score in eighths of a connection */
	unsigned hr_count; /* connections of the address */
	enum hoard_progress hr_progress;
	/*
	 * True if the connection has begun a handshake, and at most 1/HOARD_FEW of all connections
	 * are HOARD_HANDSHAKE.  For a connection that is HOARD_SECURE_PART, connections of both
	 * kinds are counted.
	 */
	bool hr_few;
};

/*
 * Returns the rank of a victim, or 0 for none.  The victim with the highest rank is closed first.
 */
static inline uint32_t
hoard_rank(const struct hoard_rank *hr)
{
	if (hr->hr_count == 0)
		return 0;
	return (hr->hr_score * (2 * HOARD_MAX) + hr->hr_count) * 8 +
	       (hr->hr_few && hr->hr_progress == HOARD_HANDSHAKE
		       ? 0
		       : 1 + HOARD_SECURE_PART - hr->hr_progress);
}

/*
 * Chooses a victim of the n connections in `list`, at most HOARD_MAX, the oldest first.  The first
 * `ripe` of them may be closed; the others are too young and only count.  Returns the victim's
 * index and stores its rank.  Returns HOARD_NONE, and stores the highest rank, if no connection may
 * be closed, if all that may be closed have less than half of the highest score, or if the best of
 * these has begun a handshake, handshakes are few (hr_few), and a young connection ranks higher.
 */
size_t hoard_pick(const struct seed *, const struct hoarded *list, size_t n,
    size_t ripe, struct hoard_rank *rank);

#endif
