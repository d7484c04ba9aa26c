/*
 * handshaker: see handshaker.h.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/os/os.h"
#include "lib/util/check.h"
#include "server/tls/handshaker.h"
#include "server/util/client_key.h"
#include "server/util/thread.h"

#define THREADS	 64		   /* maximum number of threads */
#define PATIENCE UINT64_C(5000000) /* wait for a thread to end, microseconds */

enum handshaker_state {
	HANDSHAKER_RUNS,   /* the step waits for a thread, or runs */
	HANDSHAKER_RESTS,  /* the step has ended, and wt_done is not called */
	HANDSHAKER_WANTED, /* the thread must call wt_done when the step ends */
};

struct part {
	STAILQ_HEAD(, handshake) pt_waiting;
	unsigned pt_count;
	TAILQ_ENTRY(part) pt_entry; /* entry of hs_queue while steps wait */
};

struct handshaker {
	/* guards the fields up to hs_end */
	pthread_mutex_t hs_lock;
	pthread_cond_t hs_cond;
	struct part hs_parts[HANDSHAKER_PARTS];
	TAILQ_HEAD(, part) hs_queue;
	bool hs_end;
	atomic_uint hs_waiting;
	/* fields for the main thread */
	struct thread hs_threads[THREADS];
	unsigned hs_started;
};

int
handshaker_create(struct handshaker **out)
{
	struct handshaker *hs = calloc(1, sizeof(*hs));

	if (hs == NULL)
		return -ENOMEM;
	pthread_mutex_init(&hs->hs_lock, NULL);
	pthread_cond_init(&hs->hs_cond, NULL);
	TAILQ_INIT(&hs->hs_queue);
	for (int i = 0; i < HANDSHAKER_PARTS; i++)
		STAILQ_INIT(&hs->hs_parts[i].pt_waiting);
	*out = hs;
	return 0;
}

/* Removes and returns the next step, or NULL if none waits.  The caller holds the lock. */
static struct handshake *
handshaker_take(struct handshaker *hs)
{
	struct part *pt = TAILQ_FIRST(&hs->hs_queue);
	struct handshake *hk;

	if (pt == NULL)
		return NULL;
	hk = STAILQ_FIRST(&pt->pt_waiting);
	STAILQ_REMOVE_HEAD(&pt->pt_waiting, hk_link);
	TAILQ_REMOVE(&hs->hs_queue, pt, pt_entry);
	if (--pt->pt_count > 0)
		TAILQ_INSERT_TAIL(&hs->hs_queue, pt, pt_entry);
	atomic_fetch_sub_explicit(&hs->hs_waiting, 1, memory_order_relaxed);
	return hk;
}

/* Runs a step.  The step may be freed as soon as its state is HANDSHAKER_RESTS. */
static void
handshaker_run_step(struct handshake *hk)
{
	int runs = HANDSHAKER_RUNS;

	if (hk->hk_run(hk) || !atomic_compare_exchange_strong(
				  &hk->hk_state, &runs, HANDSHAKER_RESTS))
		pw_wait_end(&hk->hk_waiter, 0);
}

static void
handshaker_run(void *arg)
{
	struct handshaker *hs = arg;
	struct handshake *hk;

	os_thread_name("pw-handshake");
	os_thread_helper();
	pthread_mutex_lock(&hs->hs_lock);
	while (!hs->hs_end) {
		hk = handshaker_take(hs);
		if (hk == NULL) {
			pthread_cond_wait(&hs->hs_cond, &hs->hs_lock);
			continue;
		}
		pthread_mutex_unlock(&hs->hs_lock);
		handshaker_run_step(hk);
		pthread_mutex_lock(&hs->hs_lock);
	}
	pthread_mutex_unlock(&hs->hs_lock);
	OPENSSL_thread_stop();
}

int
handshaker_start(struct handshaker *hs, unsigned threads)
{
	unsigned i, n = threads < THREADS ? threads : THREADS;
	int error = 0;

	for (i = 0; i < n && error == 0; i++) {
		error = thread_start(&hs->hs_threads[i], handshaker_run, hs);
		hs->hs_started += error == 0;
	}
	return error;
}

void
handshaker_destroy(struct handshaker **hsp)
{
	struct handshaker *hs = *hsp;
	unsigned i;

	if (hs == NULL)
		return;
	*hsp = NULL;
	PW_CHECK(handshaker_waiting(hs) == 0);
	pthread_mutex_lock(&hs->hs_lock);
	hs->hs_end = true;
	pthread_cond_broadcast(&hs->hs_cond);
	pthread_mutex_unlock(&hs->hs_lock);
	for (i = 0; i < hs->hs_started; i++)
		if (!thread_join(&hs->hs_threads[i], PATIENCE))
			return;
	pthread_cond_destroy(&hs->hs_cond);
	pthread_mutex_destroy(&hs->hs_lock);
	free(hs);
}

/* Returns the client's part.  Neighbouring networks are in different parts. */
static struct part *
handshaker_part_of(struct handshaker *hs, uint64_t client)
{
	return &hs->hs_parts[client_number(client) % HANDSHAKER_PARTS];
}

bool
handshaker_submit(struct handshaker *hs, struct pw_loop *lp,
    struct handshake *hk, uint64_t client)
{
	struct part *pt = handshaker_part_of(hs, client);
	bool room;

	pthread_mutex_lock(&hs->hs_lock);
	room = pt->pt_count < HANDSHAKER_EACH;
	if (room) {
		atomic_store_explicit(
		    &hk->hk_state, HANDSHAKER_RUNS, memory_order_relaxed);
		pw_wait_begin(lp, &hk->hk_waiter);
		STAILQ_INSERT_TAIL(&pt->pt_waiting, hk, hk_link);
		if (pt->pt_count++ == 0)
			TAILQ_INSERT_TAIL(&hs->hs_queue, pt, pt_entry);
		atomic_fetch_add_explicit(
		    &hs->hs_waiting, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&hs->hs_lock);
	if (room)
		pthread_cond_signal(&hs->hs_cond);
	return room;
}

bool
handshaker_take_back(struct handshake *hk)
{
	if (atomic_exchange(&hk->hk_state, HANDSHAKER_WANTED) !=
	    HANDSHAKER_RESTS)
		return false;
	completion_forget(&hk->hk_waiter);
	return true;
}

bool
handshaker_rests(const struct handshake *hk)
{
	return atomic_load(&hk->hk_state) == HANDSHAKER_RESTS;
}

unsigned
handshaker_waiting(const struct handshaker *hs)
{
	return atomic_load_explicit(&hs->hs_waiting, memory_order_relaxed);
}
