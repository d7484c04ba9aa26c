/*
 * verifier: verifies passwords on its own threads, because one password takes up to a second, and
 * caches the results.  All workers share one verifier.
 *
 * The key of a result is the HMAC-SHA256 of file, user and password, with a secret that is drawn at
 * the start.  Up to 4096 good results are cached without expiry, because a reload starts another
 * process.  Up to 128 bad results are cached for VERIFIER_AGE_US; they have their own slots, so
 * that guesses cannot evict good results.  Requests with the same credentials wait for one
 * verification.
 *
 * At most VERIFIER_JOBS passwords wait or run, and at most VERIFIER_EACH of one client
 * (client_key.h).  tries.h determines the order of the passwords.  Of passwords that are equal in
 * this order, the newest is verified first, because an older one may be a guess of a client with
 * many addresses.  If all clients of a password have closed their side of the connection, the
 * password is verified after all others, because these clients may have left.  If no slot is free,
 * the verifier refuses the last password in this order.  One thread verifies only first tries of
 * clients that have not closed.  The other threads have a lower priority than the event loops.  A
 * thread holds a lock only while it searches short lists.
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
	VERIFIED_LATER, /* the verifier will call wt_done */
	VERIFIED_BUSY,	/* too many passwords wait, or memory is short */
};

/* Request that waits for the result of its password. */
struct verify {
	struct pw_waiter vf_waiter; /* the caller sets wt_done */
	/* result, valid in wt_done; never VERIFIED_LATER */
	enum verified vf_result;
	struct verify_job *vf_job; /* guarded by vr_lock */
	/* true if verifier_put_last was called; guarded by vr_lock */
	bool vf_left;
	SLIST_ENTRY(verify) vf_link; /* guarded by vr_lock */
};

struct verifier_counts {
	unsigned vc_threads;
	unsigned vc_busy;    /* threads that compute a hash now */
	unsigned vc_waiting; /* passwords that wait for a thread */
	uint64_t vc_hashed;  /* hashes computed so far */
};

/* Creates a verifier without threads.  Returns 0 or -errno. */
int verifier_create(struct verifier **);

/*
 * Starts `threads` threads, but at least 1 and at most 8, and one more thread for first tries.
 * Returns 0 or -errno.
 */
int verifier_start(struct verifier *, unsigned threads);

/*
 * Stops the threads and frees the verifier.  No request may wait.  Returns false and frees nothing
 * if a thread still computes a hash after 5 s, since that thread uses the verifier and the password
 * file.
 */
bool verifier_destroy(struct verifier **);

/* Reads the counts.  Thread-safe. */
void verifier_count(struct verifier *, struct verifier_counts *);

/*
 * Returns the cached result for the credentials, or starts to verify them.  Does not use the
 * credentials after it returns.  Call on the loop's thread, with an HMAC context of this thread.
 */
enum verified verifier_ask(struct verifier *, struct hmac *,
    const struct htpasswd *, const struct basic *, const struct sockaddr *,
    struct pw_loop *, struct verify *);

/*
 * Moves a waiting request to the end of the order, because its client has closed its side of the
 * connection.  The client may have left, or may still wait for the response.
 */
void verifier_put_last(struct verifier *, struct verify *);

/* Cancels a waiting request.  The verifier still calls wt_done. */
void verifier_cancel(struct verifier *, struct verify *);

#endif
