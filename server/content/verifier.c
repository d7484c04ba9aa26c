/*
 * verifier: see verifier.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/os.h"
#include "lib/os/seed.h"
#include "lib/util/cacheline.h"
#include "lib/util/check.h"
#include "lib/util/clock.h"
#include "server/content/tries.h"
#include "server/content/verifier.h"
#include "server/http/basic.h"
#include "server/util/client_key.h"
#include "server/util/hmac.h"
#include "server/util/htpasswd.h"
#include "server/util/thread.h"

#define PARTS	 64
#define SETS	 8 /* sets of good results per part */
#define GOOD	 8 /* good results per set */
#define BAD	 2 /* bad results per part */
#define THREADS	 8
#define PATIENCE UINT64_C(5000000)

struct result {
	unsigned char rs_digest[HMAC_LEN];
	/* time of the last use, or of the bad result, microseconds; 0 if the entry is empty */
	uint64_t rs_used;
};

struct part {
	_Alignas(CACHE_LINE) pthread_mutex_t pt_lock;
	struct result pt_good[SETS][GOOD];
	struct result pt_bad[BAD];
};

struct verify_job {
	TAILQ_ENTRY(verify_job) vj_link;
	SLIST_HEAD(, verify) vj_waiters;
	unsigned vj_here; /* number of waiters whose clients have not closed */
	bool vj_runs;
	uint64_t vj_rank;
	struct tries_key vj_key;
	const struct htpasswd *vj_file;
	unsigned char vj_digest[HMAC_LEN];
	struct basic vj_basic; /* credentials; wiped when the job is freed */
};

struct verifier {
	struct part vr_parts[PARTS];
	/* vr_lock guards the fields down to vr_end */
	_Alignas(CACHE_LINE) pthread_mutex_t vr_lock;
	pthread_cond_t vr_cond;
	TAILQ_HEAD(, verify_job) vr_jobs; /* all jobs, newest first */
	struct tries vr_tries;
	unsigned vr_count; /* number of waiting and running jobs */
	unsigned vr_busy;  /* number of running jobs */
	uint64_t vr_hashed;
	bool vr_end;
	/* The main thread owns the fields below; vr_lock guards vr_started and vr_scratch. */
	unsigned vr_started;
	struct thread vr_threads[THREADS + 1];
	struct htpasswd_scratch *vr_scratch[THREADS + 1];
	unsigned char vr_secret[HMAC_LEN];
};

/* --------------------------------------------------------- cached results */

static struct part *
verifier_part_of(struct verifier *vr, const unsigned char *digest)
{
	return &vr->vr_parts[digest[0] % PARTS];
}

static struct result *
verifier_good_of(struct part *pt, const unsigned char *digest)
{
	return pt->pt_good[digest[1] % SETS];
}

static struct result *
verifier_find(struct result *list, size_t n, const unsigned char *digest)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].rs_used > 0 &&
		    hmac_same(list[i].rs_digest, digest, HMAC_LEN))
			return &list[i];
	return NULL;
}

/*
 * Returns the cached result, or VERIFIED_LATER if there is none.  A good result does not expire,
 * because the process never reads the file again.
 */
static enum verified
verifier_look(struct verifier *vr, const unsigned char *digest)
{
	struct part *pt = verifier_part_of(vr, digest);
	enum verified result = VERIFIED_LATER;
	uint64_t now = clock_now();
	struct result *rs;

	pthread_mutex_lock(&pt->pt_lock);
	rs = verifier_find(verifier_good_of(pt, digest), GOOD, digest);
	if (rs != NULL) {
		rs->rs_used = now;
		result = VERIFIED_GOOD;
	} else {
		rs = verifier_find(pt->pt_bad, BAD, digest);
		if (rs != NULL && now - rs->rs_used < VERIFIER_AGE_US)
			result = VERIFIED_BAD;
	}
	pthread_mutex_unlock(&pt->pt_lock);
	return result;
}

static void
verifier_remember(struct verifier *vr, const unsigned char *digest, bool good)
{
	struct part *pt = verifier_part_of(vr, digest);
	struct result *list = good ? verifier_good_of(pt, digest) : pt->pt_bad,
		      *oldest = list;
	size_t i, n = good ? GOOD : BAD;

	pthread_mutex_lock(&pt->pt_lock);
	for (i = 1; i < n; i++)
		if (list[i].rs_used < oldest->rs_used)
			oldest = &list[i];
	memcpy(oldest->rs_digest, digest, HMAC_LEN);
	oldest->rs_used = clock_now();
	pthread_mutex_unlock(&pt->pt_lock);
}

/* --------------------------------------------------------------- the jobs */

static void
verifier_job_free(struct verify_job *vj)
{
	explicit_bzero(vj, sizeof(*vj));
	free(vj);
}

/*
 * Removes a job from the list.  The caller must hold vr_lock, here and for the functions below down
 * to verifier_job_next.
 */
static void
verifier_job_remove(struct verifier *vr, struct verify_job *vj)
{
	TAILQ_REMOVE(&vr->vr_jobs, vj, vj_link);
	vr->vr_count--;
}

static struct verify_job *
verifier_job_of(struct verifier *vr, const unsigned char *digest)
{
	struct verify_job *vj;

	TAILQ_FOREACH(vj, &vr->vr_jobs, vj_link)
	if (hmac_same(vj->vj_digest, digest, HMAC_LEN))
		return vj;
	return NULL;
}

static unsigned
verifier_jobs_of(struct verifier *vr, uint64_t client)
{
	struct verify_job *vj;
	unsigned n = 0;

	TAILQ_FOREACH(vj, &vr->vr_jobs, vj_link)
	n += vj->vj_key.tk_client == client;
	return n;
}

/*
 * Removes a job from the list.  Afterwards its requests cannot be cancelled, and the caller must
 * call verifier_job_end.
 */
static void
verifier_job_take_off(struct verifier *vr, struct verify_job *vj)
{
	struct verify *vf;

	verifier_job_remove(vr, vj);
	SLIST_FOREACH(vf, &vj->vj_waiters, vf_link)
	vf->vf_job = NULL;
}

static uint32_t
verifier_seconds(void)
{
	return (uint32_t)(clock_now() / 1000000);
}

/*
 * Compares two jobs.  Returns a negative number if `a` must be verified first, and 0 if their order
 * depends only on their age.
 */
static int
verifier_job_order(
    struct verifier *vr, const struct verify_job *a, const struct verify_job *b)
{
	uint32_t now = verifier_seconds();

	if ((a->vj_here == 0) != (b->vj_here == 0))
		return a->vj_here == 0 ? 1 : -1;
	if (a->vj_rank != b->vj_rank)
		return a->vj_rank < b->vj_rank ? -1 : 1;
	return (int)tries_for_user(&vr->vr_tries, &a->vj_key, now) -
	       (int)tries_for_user(&vr->vr_tries, &b->vj_key, now);
}

/*
 * Frees a slot for `vj`: removes from the list the waiting job that is last in the order, or the
 * oldest of several last jobs.  Returns that job, or `vj` if `vj` itself is the last.
 */
static struct verify_job *
verifier_job_displace(struct verifier *vr, struct verify_job *vj)
{
	struct verify_job *last = vj, *other;

	TAILQ_FOREACH(other, &vr->vr_jobs, vj_link)
	if (!other->vj_runs && verifier_job_order(vr, other, last) >= 0)
		last = other;
	if (last != vj)
		verifier_job_take_off(vr, last);
	return last;
}

static struct verify_job *
verifier_job_create(const struct htpasswd *ht, const struct basic *bs,
    const unsigned char *digest)
{
	struct verify_job *vj = calloc(1, sizeof(*vj));

	if (vj == NULL)
		return NULL;
	SLIST_INIT(&vj->vj_waiters);
	vj->vj_file = ht;
	memcpy(vj->vj_digest, digest, HMAC_LEN);
	memcpy(vj->vj_basic.bs_text, bs->bs_text, sizeof(bs->bs_text));
	vj->vj_basic.bs_user = vj->vj_basic.bs_text;
	vj->vj_basic.bs_password =
	    vj->vj_basic.bs_text + (bs->bs_password - bs->bs_text);
	return vj;
}

/*
 * Adds a job.  A job without a free slot also counts as a try; otherwise the clients that try most
 * would always be first.  Returns NULL if memory is short or no slot is free.  If *displaced is
 * set, the caller must pass *displaced to verifier_job_end.
 */
static struct verify_job *
verifier_job_add(struct verifier *vr, const struct htpasswd *ht,
    const struct basic *bs, const unsigned char *digest, uint64_t client,
    struct verify_job **displaced)
{
	struct verify_job *vj = verifier_job_create(ht, bs, digest);
	struct tries *tr = &vr->vr_tries;

	if (vj == NULL)
		return NULL;
	vj->vj_here = 1; /* the request of the caller */
	vj->vj_key.tk_client = client;
	vj->vj_key.tk_user = hash_bytes(
	    &tr->tr_seed, (uintptr_t)ht, bs->bs_user, strlen(bs->bs_user));
	vj->vj_rank = tries_rank(tr, &vj->vj_key, verifier_seconds());
	tries_add(tr, &vj->vj_key, verifier_seconds());
	if (verifier_jobs_of(vr, client) >= VERIFIER_EACH)
		*displaced = vj;
	else if (vr->vr_count >= VERIFIER_JOBS)
		*displaced = verifier_job_displace(vr, vj);
	if (*displaced == vj)
		return NULL;
	TAILQ_INSERT_HEAD(&vr->vr_jobs, vj, vj_link);
	vr->vr_count++;
	pthread_cond_broadcast(&vr->vr_cond);
	return vj;
}

/*
 * Adds a request to a job with the same credentials.  If all earlier clients of the job had closed,
 * wakes the threads, because the thread for first tries may now run the job.
 */
static void
verifier_job_join(struct verifier *vr, struct verify_job *vj)
{
	if (vj->vj_here++ == 0)
		pthread_cond_broadcast(&vr->vr_cond);
}

/*
 * Returns the next job to run, or NULL.  If `first` is true, returns a job only if it is the first
 * try of a client that has not closed.
 */
static struct verify_job *
verifier_job_next(struct verifier *vr, bool first)
{
	struct verify_job *vj, *next = NULL;

	TAILQ_FOREACH(vj, &vr->vr_jobs, vj_link)
	if (!vj->vj_runs &&
	    (next == NULL || verifier_job_order(vr, vj, next) < 0))
		next = vj;
	if (next != NULL && first && (next->vj_rank != 0 || next->vj_here == 0))
		return NULL;
	return next;
}

/*
 * Completes the requests of a job, and frees the job.  The job must not be on the list.  The caller
 * must hold no lock.
 */
static void
verifier_job_end(struct verify_job *vj, enum verified result)
{
	struct verify *vf, *next;

	for (vf = SLIST_FIRST(&vj->vj_waiters); vf != NULL; vf = next) {
		next = SLIST_NEXT(vf, vf_link);
		vf->vf_result = result;
		pw_wait_end(&vf->vf_waiter, 0);
	}
	verifier_job_free(vj);
}

/* ------------------------------------------------------------ the threads */

static void
verifier_finish(
    struct verifier *vr, struct verify_job *vj, enum verified result)
{
	if (result != VERIFIED_BUSY)
		verifier_remember(vr, vj->vj_digest, result == VERIFIED_GOOD);
	pthread_mutex_lock(&vr->vr_lock);
	if (result == VERIFIED_GOOD)
		tries_forgive(&vr->vr_tries, &vj->vj_key, verifier_seconds());
	verifier_job_take_off(vr, vj);
	vr->vr_busy--;
	vr->vr_hashed++;
	pthread_mutex_unlock(&vr->vr_lock);
	verifier_job_end(vj, result);
}

static struct htpasswd_scratch *
verifier_take_scratch(struct verifier *vr)
{
	struct htpasswd_scratch *hs = NULL;

	pthread_mutex_lock(&vr->vr_lock);
	for (unsigned i = 0; hs == NULL && i <= THREADS; i++) {
		hs = vr->vr_scratch[i];
		vr->vr_scratch[i] = NULL;
	}
	pthread_mutex_unlock(&vr->vr_lock);
	return hs;
}

/* Verifies a password.  Returns VERIFIED_BUSY if memory is short. */
static enum verified
verifier_verify(const struct verify_job *vj, struct htpasswd_scratch *hs)
{
	int result = htpasswd_verify(
	    vj->vj_file, vj->vj_basic.bs_user, vj->vj_basic.bs_password, hs);

	return result < 0    ? VERIFIED_BUSY
	       : result == 0 ? VERIFIED_BAD
			     : VERIFIED_GOOD;
}

static void
verifier_verify_jobs(struct verifier *vr, bool first)
{
	struct htpasswd_scratch *hs = verifier_take_scratch(vr);
	struct verify_job *vj;

	os_thread_name("pw-verify");
	pthread_mutex_lock(&vr->vr_lock);
	while (!vr->vr_end) {
		vj = verifier_job_next(vr, first);
		if (vj == NULL) {
			pthread_cond_wait(&vr->vr_cond, &vr->vr_lock);
			continue;
		}
		vj->vj_runs = true;
		vr->vr_busy++;
		pthread_mutex_unlock(&vr->vr_lock);
		verifier_finish(vr, vj, verifier_verify(vj, hs));
		pthread_mutex_lock(&vr->vr_lock);
	}
	pthread_mutex_unlock(&vr->vr_lock);
	free(hs);
}

static void
verifier_run(void *arg)
{
	os_thread_helper();
	verifier_verify_jobs(arg, false);
}

/*
 * Runs with the priority of the event loops, so that a login does not wait for the hashes of
 * guesses.
 */
static void
verifier_run_first(void *arg)
{
	verifier_verify_jobs(arg, true);
}

int
verifier_create(struct verifier **out)
{
	struct verifier *vr = cacheline_calloc(sizeof(*vr));
	int i, error;

	if (vr == NULL)
		return -ENOMEM;
	error = os_random(vr->vr_secret, sizeof(vr->vr_secret));
	if (error != 0) {
		free(vr);
		return error;
	}
	for (i = 0; i < PARTS; i++)
		pthread_mutex_init(&vr->vr_parts[i].pt_lock, NULL);
	pthread_mutex_init(&vr->vr_lock, NULL);
	pthread_cond_init(&vr->vr_cond, NULL);
	TAILQ_INIT(&vr->vr_jobs);
	seed_draw(&vr->vr_tries.tr_seed);
	*out = vr;
	return 0;
}

int
verifier_start(struct verifier *vr, unsigned threads)
{
	unsigned i, n = 1 + (threads < 1	    ? 1
				: threads < THREADS ? threads
						    : THREADS);
	int error = 0;

	for (i = 0; i < n && error == 0; i++) {
		vr->vr_scratch[i] = htpasswd_scratch_create();
		error = vr->vr_scratch[i] == NULL
			    ? -ENOMEM
			    : thread_start(&vr->vr_threads[i],
				  i + 1 < n ? verifier_run : verifier_run_first,
				  vr);
		pthread_mutex_lock(&vr->vr_lock);
		vr->vr_started += error == 0;
		pthread_mutex_unlock(&vr->vr_lock);
	}
	return error;
}

bool
verifier_destroy(struct verifier **vrp)
{
	struct verifier *vr = *vrp;
	bool ended = true;
	unsigned i;

	if (vr == NULL)
		return true;
	*vrp = NULL;
	pthread_mutex_lock(&vr->vr_lock);
	PW_CHECK(vr->vr_count == 0 || vr->vr_started > 0);
	vr->vr_end = true;
	pthread_cond_broadcast(&vr->vr_cond);
	pthread_mutex_unlock(&vr->vr_lock);
	for (i = 0; i < vr->vr_started; i++)
		if (!thread_join(&vr->vr_threads[i], ended ? PATIENCE : 0)) {
			thread_abandon(&vr->vr_threads[i]);
			ended = false;
		}
	if (!ended)
		return false;
	for (i = 0; i <= THREADS; i++)
		free(vr->vr_scratch[i]);
	for (i = 0; i < PARTS; i++)
		pthread_mutex_destroy(&vr->vr_parts[i].pt_lock);
	pthread_cond_destroy(&vr->vr_cond);
	pthread_mutex_destroy(&vr->vr_lock);
	explicit_bzero(vr->vr_secret, sizeof(vr->vr_secret));
	free(vr);
	return true;
}

void
verifier_count(struct verifier *vr, struct verifier_counts *vc)
{
	pthread_mutex_lock(&vr->vr_lock);
	*vc = (struct verifier_counts){
	    .vc_threads = vr->vr_started,
	    .vc_busy = vr->vr_busy,
	    .vc_waiting = vr->vr_count - vr->vr_busy,
	    .vc_hashed = vr->vr_hashed,
	};
	pthread_mutex_unlock(&vr->vr_lock);
}

/* ----------------------------------------------------------- the requests */

/*
 * Computes the key of a result.  The pointer `ht` identifies the file.  A NUL separates the user
 * from the password.  Returns false if the HMAC fails.
 */
static bool
verifier_digest_of(const struct verifier *vr, struct hmac *hm,
    const struct htpasswd *ht, const struct basic *bs,
    unsigned char digest[HMAC_LEN])
{
	uintptr_t file = (uintptr_t)ht;

	hmac_begin(hm, vr->vr_secret, sizeof(vr->vr_secret));
	hmac_add(hm, &file, sizeof(file));
	hmac_add(hm, bs->bs_text, bs->bs_len);
	return hmac_end(hm, digest);
}

enum verified
verifier_ask(struct verifier *vr, struct hmac *hm, const struct htpasswd *ht,
    const struct basic *bs, const struct sockaddr *sa, struct pw_loop *lp,
    struct verify *vf)
{
	unsigned char digest[HMAC_LEN];
	struct verify_job *vj, *displaced = NULL;
	enum verified result;

	if (!verifier_digest_of(vr, hm, ht, bs, digest))
		return VERIFIED_BUSY;
	result = verifier_look(vr, digest);
	if (result != VERIFIED_LATER)
		return result;
	pthread_mutex_lock(&vr->vr_lock);
	vj = verifier_job_of(vr, digest);
	if (vj == NULL)
		vj = verifier_job_add(
		    vr, ht, bs, digest, client_key(sa), &displaced);
	else
		verifier_job_join(vr, vj);
	if (vj != NULL) {
		pw_wait_begin(lp, &vf->vf_waiter);
		vf->vf_job = vj;
		vf->vf_left = false;
		SLIST_INSERT_HEAD(&vj->vj_waiters, vf, vf_link);
	}
	pthread_mutex_unlock(&vr->vr_lock);
	if (displaced != NULL)
		verifier_job_end(displaced, VERIFIED_BUSY);
	return vj != NULL ? VERIFIED_LATER : VERIFIED_BUSY;
}

/* Marks a request whose client has closed its side.  The caller must hold vr_lock. */
static void
verifier_leave(struct verify *vf)
{
	if (!vf->vf_left)
		vf->vf_job->vj_here--;
	vf->vf_left = true;
}

void
verifier_put_last(struct verifier *vr, struct verify *vf)
{
	pthread_mutex_lock(&vr->vr_lock);
	if (vf->vf_job != NULL)
		verifier_leave(vf);
	pthread_mutex_unlock(&vr->vr_lock);
}

void
verifier_cancel(struct verifier *vr, struct verify *vf)
{
	struct verify_job *vj;
	bool last = false;

	pthread_mutex_lock(&vr->vr_lock);
	vj = vf->vf_job;
	if (vj != NULL) {
		verifier_leave(vf);
		vf->vf_job = NULL;
		SLIST_REMOVE(&vj->vj_waiters, vf, verify, vf_link);
		last = SLIST_EMPTY(&vj->vj_waiters) && !vj->vj_runs;
		if (last)
			verifier_job_remove(vr, vj);
	}
	pthread_mutex_unlock(&vr->vr_lock);
	if (vj == NULL)
		return; /* the completion is pending */
	if (last)
		verifier_job_free(vj);
	pw_wait_end(&vf->vf_waiter, -ECANCELED);
}
