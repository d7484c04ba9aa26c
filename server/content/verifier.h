/*
 * verifier: passwords are verified by threads of its own, since that takes up to a second, and the
 * result is remembered for a while.  One for all workers.
 *
 * It caches the HMAC-SHA256 of file, user and password under a secret that is drawn at the start:
 * the last 4096 good results, which stay good since a reload starts another process, and, so that
 * guesses cannot evict these, 128 bad ones for VERIFIER_AGE_US.  Requests with the same credentials
 * wait for one verification.
 *
 * VERIFIER_JOBS passwords may wait or run, VERIFIER_EACH of one client (client_key.h), in the order
 * of tries.h; of equal ones the newest is first, since an older one may be a guess whose client has
 * more addresses.  When all slots are in use, the last one in this order is refused.  A password
 * whose clients have all closed their ends of the connection is verified after all others, since
 * such a client may have left.  One thread verifies only first tries of clients that have not.  The
 * other threads have a lower priority than the event loops.  Locks are held only while short lists
 * are searched.
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
	VERIFIED_BUSY,	/* too many wait, or memory is short */
};

/* A request that waits for its password. */
struct verify {
	struct pw_waiter vf_waiter;  /* wt_done is set by the caller */
	enum verified vf_result;     /* never VERIFIED_LATER */
	struct verify_job *vf_job;   /* guarded by vr_lock */
	bool vf_left;		     /* under vr_lock; see verifier_put_last */
	SLIST_ENTRY(verify) vf_link; /* guarded by vr_lock */
};

struct verifier_counts {
	unsigned vc_threads;
	unsigned vc_busy;    /* threads that compute a hash */
	unsigned vc_waiting; /* passwords that no thread has taken */
	uint64_t vc_hashed;  /* hashes computed */
};

/* Returns 0 or -errno.  Starts no thread. */
int verifier_create(struct verifier **);

/* Starts that many threads and one more.  Returns 0 or -errno. */
int verifier_start(struct verifier *, unsigned threads);

/* Call when no request waits. */
void verifier_destroy(struct verifier **);

/* Reads the counts.  Any thread. */
void verifier_count(struct verifier *, struct verifier_counts *);

/*
 * Looks up or verifies credentials, which are not needed afterwards.  Runs on the loop's thread
 * with its own HMAC context.
 */
enum verified verifier_ask(struct verifier *, struct hmac *,
    const struct htpasswd *, const struct basic *, const struct sockaddr *,
    struct pw_loop *, struct verify *);

/*
 * Call when the client of a waiting request has closed its end of the connection.  The client may
 * still wait for its response, or may have left.
 */
void verifier_put_last(struct verifier *, struct verify *);

/* Cancels a waiting request; wt_done is called soon. */
void verifier_cancel(struct verifier *, struct verify *);

#endif
