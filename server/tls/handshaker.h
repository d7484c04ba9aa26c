/*
 * handshaker: threads that compute the long steps of handshakes, since a signature with RSA would
 * block an event loop for 1 to 5 ms.  All workers share one handshaker.
 *
 * Each client belongs to one of HANDSHAKER_PARTS parts, by its IPv4 address or /48 of IPv6.  The
 * threads serve the parts in turn, so a flood from one network delays only the other clients of its
 * part.  At most HANDSHAKER_EACH steps wait in a part.  The threads have a lower priority than the
 * loops (nice(2)).  A thread holds the lock only while it accesses a list.
 */
#ifndef SERVER_TLS_HANDSHAKER_H
#define SERVER_TLS_HANDSHAKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/pagewise.h"

#define HANDSHAKER_PARTS 64
#define HANDSHAKER_EACH	 4096

struct handshaker;

/*
 * A step of a handshake.  Its memory must stay until wt_done is called or handshaker_take_back
 * returns true.
 */
struct handshake {
	struct pw_waiter hk_waiter; /* the caller sets wt_done */
	/*
	 * Runs the step on a thread.  Returns false if the handshake now waits for the client.  The
	 * thread then does not wake the loop, since the client's next message will.
	 */
	bool (*hk_run)(struct handshake *);
	/* owned by the handshaker; hk_state is an enum handshaker_state */
	atomic_int hk_state;
	STAILQ_ENTRY(handshake) hk_link;
};

/* Creates a handshaker without threads.  Returns 0 or -errno. */
int handshaker_create(struct handshaker **);

/* Starts `threads` threads, at most 64.  Returns 0 or -errno. */
int handshaker_start(struct handshaker *, unsigned threads);

/* Destroys the handshaker.  Call when no handshake waits. */
void handshaker_destroy(struct handshaker **);

/*
 * Queues a step.  `client` is the client's network (client_key.h).  Returns false, without a call
 * of wt_done, if HANDSHAKER_EACH steps of the client's part wait.  Call on the loop's thread.
 */
bool handshaker_submit(
    struct handshaker *, struct pw_loop *, struct handshake *, uint64_t client);

/*
 * Ends the wait for a step, if the step has ended and waits for the client; wt_done is then not
 * called.  Otherwise returns false, and the thread calls wt_done when the step ends.  Call on the
 * loop's thread when the client has sent bytes or the connection closes.
 */
bool handshaker_take_back(struct handshake *);

/* Returns true if handshaker_take_back would return true.  Loop's thread. */
bool handshaker_rests(const struct handshake *);

/* Returns the number of steps that wait.  Any thread may call it. */
unsigned handshaker_waiting(const struct handshaker *);

#endif
