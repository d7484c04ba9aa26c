/*
 * verifier: verifies passwords on threads of its own, since one password takes up to a second, and
 * caches the results.  All workers share one verifier.
 *
 * The key of a result is the HMAC-SHA256 of file, user and password under a secret that is drawn at
 * the start.  The last 4096 good results are cached without an expiry, since a reload starts
 * another process.  128 bad results are cached for VERIFIER_AGE_US, in slots of their own, so that
 * guesses cannot evict good results.  Requests with the same credentials wait for one verification.
 *
 * Up to VERIFIER_JOBS passwords wait or run, up to VERIFIER_EACH of one client (client_key.h).
 * They are verified in the order of tries.h; of equal passwords the newest is first, since an older
 * one may be a guess of a client with many addresses.  A password whose clients have all closed
 * their ends of the connection is verified after all others, since these clients may have left.
 * When all slots are in use, the last password in this order is refused.  One thread verifies only
 * first tries of clients that have not closed their ends.  The other threads have a lower priority
 * than the event loops.  Locks are held only while short lists are searched.
 */
#ifndef SERVER_CONTENT_VERIFIER_H
#define SERVER_CONTENT_VERIFIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/pagewise.h"

#define VERIFIER_JOBS	64
#define VERIFIER_EACH	8
#define VERIFIER_AGE_US UINT64_C(300000000)

struct basic;
struct hmac;
struct htpasswd;
struct sockaddr;
struct verifier;
struct verify_job;

enum verified {
	VERIFIED_GOOD,
	VERIFIED_BAD,
	VERIFIED_LATER, /* wt_done will be called */
	VERIFIED_BUSY,	/* too many passwords wait, or memory is short */
};

/* A request that waits for its password. */
struct verify {
	struct pw_waiter vf_waiter; /* wt_done is set by the caller */
	enum verified vf_result;    /* never VERIFIED_LATER */
	struct verify_job *vf_job;  /* guarded by vr_lock */
	/* true after verifier_put_last; guarded by vr_lock */
	bool vf_left;
	SLIST_ENTRY(verify) vf_link; /* guarded by vr_lock */
};

struct verifier_counts {
	unsigned vc_threads;
	unsigned vc_busy;    /* threads that compute a hash */
	unsigned vc_waiting; /* passwords that no thread verifies yet */
	uint64_t vc_hashed;  /* hashes computed */
};

/* Creates a verifier without threads.  Returns 0 or -errno. */
int verifier_create(struct verifier **);

/* Starts the given number of threads, 1 to 8, and one more for first tries.  Returns 0 or -errno. */
int verifier_start(struct verifier *, unsigned threads);

/* Stops the threads and frees the verifier.  No request may wait. */
void verifier_destroy(struct verifier **);

/* Reads the counts.  Any thread. */
void verifier_count(struct verifier *, struct verifier_counts *);

/*
 * Returns the cached result for the credentials, or starts to verify them.  Does not use the
 * credentials after its return.  Call on the loop's thread, with an HMAC context of this thread.
 */
enum verified verifier_ask(struct verifier *, struct hmac *,
    const struct htpasswd *, const struct basic *, const struct sockaddr *,
    struct pw_loop *, struct verify *);

/*
 * Puts a waiting request last in the order, because its client has closed its end of the
 * connection.  The client may have left, or may still wait for its response.
 */
void verifier_put_last(struct verifier *, struct verify *);

/* Cancels a waiting request; wt_done is still called. */
void verifier_cancel(struct verifier *, struct verify *);

#endif
