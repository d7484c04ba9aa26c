/*
 * reclaim: see reclaim.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/disk/reclaim.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

/* minimum time between two reads of the counters, microseconds */
#define LOOK_LEAST 5000
/* age of the counters at which a loop has them read, microseconds */
#define LOOK_DUE   25000
/* age of the counters at which they are ignored, microseconds */
#define LOOK_STALE 100000
/* time without a reclaim that counts as quiet, microseconds */
#define QUIET	   1000000

struct reclaim {
	int rc_fd; /* result of os_reclaim_open: -errno if there is no counter */
	/* guards rc_taken; held while the counters are read */
	pthread_mutex_t rc_lock;
	int64_t rc_taken;	  /* reclaimed pages at the last read, or -1 */
	uint64_t rc_memory;	  /* pages */
	_Atomic uint64_t rc_stay; /* reclaim_used_stay at the last read */
	bool rc_rated;		  /* true if rc_stay was computed before */
	_Atomic uint64_t rc_looked;
	/* time of the last possible change of rc_taken, microseconds */
	_Atomic uint64_t rc_moved;
	atomic_uint rc_reads;	   /* number of reads in flight */
	_Atomic uint64_t rc_asked; /* time at which a loop requested a read */
	atomic_bool rc_busy;	   /* true while a loop's read is in progress */
};

struct reclaim *
reclaim_create(uint64_t memory)
{
	struct reclaim *rc = calloc(1, sizeof(*rc));

	if (rc == NULL)
		return NULL;
	rc->rc_fd = os_reclaim_open();
	rc->rc_taken = -1;
	rc->rc_memory = memory / os_page_size();
	pthread_mutex_init(&rc->rc_lock, NULL);
	return rc;
}

void
reclaim_destroy(struct reclaim **rcp)
{
	struct reclaim *rc = *rcp;

	*rcp = NULL;
	if (rc == NULL)
		return;
	if (rc->rc_fd >= 0)
		close(rc->rc_fd);
	pthread_mutex_destroy(&rc->rc_lock);
	free(rc);
}

/* Lowers rc_stay at once, but doubles it at most, since the kernel reclaims in bursts. */
static void
reclaim_note_rate(struct reclaim *rc, uint64_t pages, uint64_t us)
{
	uint64_t stay = RECLAIM_USED, most = RECLAIM_USED;

	if (rc->rc_rated)
		most = 2 * atomic_load(&rc->rc_stay) + 1;
	rc->rc_rated = true;
	if (rc->rc_memory < RECLAIM_LEAST / os_page_size())
		stay = 0;
	else if (pages > 0)
		stay = rc->rc_memory / RECLAIM_SHARE * us / pages;
	if (most > RECLAIM_USED)
		most = RECLAIM_USED;
	atomic_store(&rc->rc_stay, stay < most ? stay : most);
}

/*
 * Reads the counters.  `now` is a time before the read, so that the counters never seem newer than they
 * are.  The first read counts as a change, since it does not tell what was reclaimed before it.
 */
static void
reclaim_read(struct reclaim *rc, uint64_t now)
{
	int64_t taken = os_reclaimed(rc->rc_fd);
	uint64_t looked = atomic_load(&rc->rc_looked);

	/* Another thread may have read them since `now`. */
	if (taken < 0 || now <= looked)
		return;
	if (taken != rc->rc_taken)
		atomic_store(&rc->rc_moved, now);
	if (rc->rc_taken >= 0)
		reclaim_note_rate(
		    rc, (uint64_t)(taken - rc->rc_taken), now - looked);
	rc->rc_taken = taken;
	atomic_store(&rc->rc_looked, now);
}

void
reclaim_look(struct reclaim *rc)
{
	uint64_t now = clock_now();

	if (rc->rc_fd < 0 || now < atomic_load(&rc->rc_looked) + LOOK_LEAST ||
	    pthread_mutex_trylock(&rc->rc_lock) != 0)
		return;
	reclaim_read(rc, now);
	pthread_mutex_unlock(&rc->rc_lock);
}

/* Writes rc_moved at most once in LOOK_LEAST, since all loops read its cache line. */
void
reclaim_expect(struct reclaim *rc)
{
	uint64_t now = clock_now();

	if (now - atomic_load(&rc->rc_moved) > LOOK_LEAST)
		atomic_store(&rc->rc_moved, now);
}

void
reclaim_read_begins(struct reclaim *rc)
{
	atomic_fetch_add(&rc->rc_reads, 1);
	reclaim_expect(rc);
}

void
reclaim_read_ends(struct reclaim *rc)
{
	reclaim_expect(rc);
	atomic_fetch_sub(&rc->rc_reads, 1);
}

/* Returns true for one loop at a time. */
bool
reclaim_due(struct reclaim *rc, uint64_t now)
{
	uint64_t asked = atomic_load(&rc->rc_asked);

	if (rc->rc_fd < 0 || now - atomic_load(&rc->rc_looked) <= LOOK_DUE ||
	    now - asked <= LOOK_DUE || atomic_load(&rc->rc_busy) ||
	    !atomic_compare_exchange_strong(&rc->rc_asked, &asked, now))
		return false;
	atomic_store(&rc->rc_busy, true);
	return true;
}

void
reclaim_done(struct reclaim *rc)
{
	atomic_store(&rc->rc_busy, false);
}

/* Adds instead of subtracting, since another thread may have written a time later than now. */
bool
reclaim_is_quiet(struct reclaim *rc, uint64_t now)
{
	return rc->rc_fd >= 0 && atomic_load(&rc->rc_reads) == 0 &&
	       now < atomic_load(&rc->rc_looked) + LOOK_STALE &&
	       now > atomic_load(&rc->rc_moved) + QUIET;
}

uint64_t
reclaim_used_stay(const struct reclaim *rc, uint64_t now)
{
	return now < atomic_load(&rc->rc_looked) + LOOK_STALE
		   ? atomic_load(&rc->rc_stay)
		   : 0;
}
