/*
 * verifier: passwords are verified by threads of its own, since that takes up to a second, and the
 * result is remembered for a while.  One for all workers.
 *
 * What is remembered is the HMAC-SHA256 of file, user and password under a secret that was
 * drawn at the start: the last 4096 good results, which stay good since a reload is another process,
 * and, so that guesses cannot push these out, 128 bad ones for VERIFIER_AGE_US.
 * Requests with the same credentials wait for one verification.
 *
 * VERIFIER_JOBS may wait or run, VERIFIER_EACH of one client (client_key.h), in the order of
 * tries.h; of equal ones the newest is first, since an older one may be a guess whose client
 * has more addresses.  When there is no place the last one in this order is given up.
 * A password whose clients have all closed their ends is verified after all others, since such a
 * client may be gone.  One thread verifies only first tries of clients that are there.  The other
 * threads have a lower priority than the event loops.  Locks are held for a look at short lists.
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
	VERIFIED_BUSY,	/* too many wait, or there is no memory */
};

/* A request that waits. */
struct verify {
	struct pw_waiter vf_waiter;  /* wt_done is the caller's */
	enum verified vf_result;     /* not VERIFIED_LATER */
	struct verify_job *vf_job;   /* the verifier's, under its lock */
	bool vf_left;		     /* the same: see verifier_put_last */
	SLIST_ENTRY(verify) vf_link; /* the same */
};

struct verifier_counts {
	unsigned vc_threads;
	unsigned vc_busy;    /* of them: they compute a hash */
	unsigned vc_waiting; /* passwords that no thread has taken yet */
	uint64_t vc_hashed;  /* hashes that were computed */
};

/* 0 or -errno; no thread runs yet. */
int verifier_create(struct verifier **);

/* Starts one thread more than that.  0 or -errno. */
int verifier_start(struct verifier *, unsigned threads);

/* Nobody waits any more. */
void verifier_destroy(struct verifier **);

/* Any thread. */
void verifier_count(struct verifier *, struct verifier_counts *);

/* The loop's thread; the context is its own.  The credentials are not needed afterwards. */
enum verified verifier_ask(struct verifier *, struct hmac *,
    const struct htpasswd *, const struct basic *, const struct sockaddr *,
    struct pw_loop *, struct verify *);

/*
 * Call when the client of a request that waits has closed its end: it may wait for its response, or
 * be gone.
 */
void verifier_put_last(struct verifier *, struct verify *);

/* One that waits need not any more: wt_done is called soon. */
void verifier_cancel(struct verifier *, struct verify *);

#endif
