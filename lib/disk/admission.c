/*
 * admission: see admission.h.
 */
#include <pthread.h>
#include <stdlib.h>

#include "lib/disk/admission.h"
#include "lib/disk/file_private.h"
#include "lib/os/meter.h"
#include "lib/util/cacheline.h"

#define LARGE_CHUNK 4 /* files above 1/LARGE_CHUNK of pp_room never stay */

struct admission {
	/*
	 * Bytes of files that memory may hold.  Not in a cache line with the lock, since each
	 * request reads this field.
	 */
	uint64_t pp_room;
	char pp_line[CACHE_LINE - sizeof(uint64_t)];

	pthread_mutex_t pp_lock; /* guards all fields below */
	/* sum of the sizes of files with each count, bytes */
	uint64_t pp_bytes[ADMISSION_MOST + 1];
	uint64_t pp_sent;  /* bytes sent since the counts were halved */
	size_t pp_counted; /* requests since the counts were halved */
	uint8_t pp_counters[ADMISSION_ROWS][ADMISSION_COLUMNS];
};

struct admission *
admission_create(uint64_t room)
{
	struct admission *pp = cacheline_calloc(sizeof(*pp));

	if (pp == NULL)
		return NULL;
	pthread_mutex_init(&pp->pp_lock, NULL);
	pp->pp_room = room;
	return pp;
}

void
admission_destroy(struct admission **ppp)
{
	if (*ppp == NULL)
		return;
	pthread_mutex_destroy(&(*ppp)->pp_lock);
	free(*ppp);
	*ppp = NULL;
}

/* Mixes the bits of x by the finalizer of SplitMix64 (Steele, Lea, Flood, 2014). */
static uint64_t
admission_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
	x = (x ^ x >> 27) * 0x94d049bb133111ebU;
	return x ^ x >> 31;
}

static uint64_t
admission_hash(const struct pw_file *file)
{
	return admission_mix(file->fil_ino + admission_mix(file->fil_dev + 1));
}

/* Sets counters[i] to the file's counter in row i. */
static void
admission_counters(
    struct admission *pp, uint64_t hash, uint8_t *counters[ADMISSION_ROWS])
{
	size_t i;

	for (i = 0; i < ADMISSION_ROWS; i++, hash >>= 16)
		counters[i] = &pp->pp_counters[i][hash % ADMISSION_COLUMNS];
}

static unsigned
admission_minimum(uint8_t *const counters[ADMISSION_ROWS])
{
	unsigned n = ADMISSION_MOST;
	size_t i;

	for (i = 0; i < ADMISSION_ROWS; i++)
		if (*counters[i] < n)
			n = *counters[i];
	return n;
}

/* Increments the file's lowest counters, whose value is n.  Higher counters count other files as well. */
static void
admission_count_up(uint8_t *const counters[ADMISSION_ROWS], unsigned n)
{
	size_t i;

	for (i = 0; i < ADMISSION_ROWS; i++)
		if (*counters[i] == n)
			(*counters[i])++;
}

static void
admission_age_bytes(struct admission *pp)
{
	uint64_t *sums = pp->pp_bytes;
	uint64_t bytes;
	size_t i;

	for (i = 1; i <= ADMISSION_MOST; i++) {
		bytes = sums[i];
		sums[i] = 0;
		sums[i / 2] += bytes;
	}
	sums[0] = 0;
}

/* Halves all counts.  Takes 20 us, as the compiler vectorises the loop. */
static void
admission_age(struct admission *pp)
{
	uint8_t *counters = &pp->pp_counters[0][0];
	size_t i;

	for (i = 0; i < ADMISSION_ROWS * ADMISSION_COLUMNS; i++)
		counters[i] >>= 1;
	admission_age_bytes(pp);
	pp->pp_sent = 0;
	pp->pp_counted = 0;
}

/*
 * Moves a file's size from the sum of its count to that of the next count.  The sums are inexact if files
 * share all counters.
 */
static void
admission_move_bytes(struct admission *pp, uint64_t size, unsigned from)
{
	uint64_t *bytes = &pp->pp_bytes[from];

	if (from > 0)
		*bytes -= *bytes < size ? *bytes : size;
	pp->pp_bytes[from + 1] += size;
}

/*
 * Returns true if a file with the count n may stay.  From the highest count down, as many files may stay
 * as fit into pp_room bytes.  Of a count that fits in part, a fraction of the files, chosen by hash, may stay.
 * The parameter `more` is added to the bytes of count n.
 */
static bool
admission_is_earned(
    const struct admission *pp, unsigned n, uint64_t more, uint64_t hash)
{
	const uint64_t *sums = pp->pp_bytes;
	uint64_t bytes = sums[n] + more, left = pp->pp_room;
	unsigned i;

	for (i = ADMISSION_MOST; i > n; i--) {
		if (sums[i] > left)
			return false;
		left -= sums[i];
	}
	if (bytes <= left)
		return true;
	return (double)(admission_mix(hash) >> 32) * (double)bytes <
	       (double)left * 4294967296.0;
}

static bool
admission_is_larger(const struct admission *pp, uint64_t size)
{
	return size > pp->pp_room / LARGE_CHUNK;
}

/* Counts one request of a file of this size.  The lock is held. */
static void
admission_count_request(struct admission *pp, uint64_t size,
    uint8_t *const counters[ADMISSION_ROWS])
{
	unsigned n = admission_minimum(counters);

	pp->pp_sent += size;
	pp->pp_counted++;
	if (n < ADMISSION_MOST) {
		admission_count_up(counters, n);
		admission_move_bytes(pp, size, n);
	}
	if (pp->pp_sent >= ADMISSION_SAMPLE * pp->pp_room ||
	    pp->pp_counted >= 4 * ADMISSION_COLUMNS)
		admission_age(pp);
}

/* Counts the noted requests of the file, and returns its count.  The lock is held. */
static unsigned
admission_count_locked(struct admission *pp, struct pw_file *file)
{
	uint64_t size = (uint64_t)file->fil_size;
	uint8_t *counters[ADMISSION_ROWS];

	admission_counters(pp, admission_hash(file), counters);
	for (; file_priv(file)->fp_sent >= size && size > 0;
	     file_priv(file)->fp_sent -= size)
		admission_count_request(pp, size, counters);
	return admission_minimum(counters);
}

void
admission_sent(
    struct admission *pp, struct noted *nt, struct pw_file *file, off_t len)
{
	if (len == 0 || admission_is_larger(pp, (uint64_t)file->fil_size))
		return;
	file_priv(file)->fp_sent += (uint64_t)len;
	if (!file_priv(file)->fp_noted) {
		file_priv(file)->fp_noted = true;
		file_priv(file)->fp_next = nt->nt_first;
		nt->nt_first = file;
		nt->nt_files++;
	}
	if (nt->nt_files >= ADMISSION_NOTED ||
	    file_priv(file)->fp_sent >=
		ADMISSION_MOST * (uint64_t)file->fil_size)
		admission_tell(pp, nt);
}

void
admission_tell(struct admission *pp, struct noted *nt)
{
	struct pw_file *file;

	if (nt->nt_first == NULL)
		return;
	for (file = nt->nt_first; file != NULL;
	     file = file_priv(file)->fp_next) {
		meter_lock(&pp->pp_lock);
		admission_count_locked(pp, file);
		pthread_mutex_unlock(&pp->pp_lock);
		file_priv(file)->fp_noted = false;
	}
	*nt = (struct noted){0};
}

/*
 * Decides about a file of `size` bytes with the count n.  `more` is the size if the bytes of count n lack it.
 * The lock is held.
 */
static enum admission_verdict
admission_judge_locked(struct admission *pp, unsigned n, uint64_t more,
    uint64_t size, uint64_t hash)
{
	if (admission_is_earned(pp, n, more, hash))
		return n > 1 ? ADMISSION_STAYS : ADMISSION_TRIAL;
	if (n > 0 && n < ADMISSION_MOST &&
	    admission_is_earned(pp, n + 1, size, hash))
		return ADMISSION_TRIAL;
	return ADMISSION_GOES;
}

enum admission_verdict
admission_judge(struct admission *pp, struct pw_file *file, off_t len)
{
	uint64_t size = (uint64_t)file->fil_size;
	enum admission_verdict verdict;
	bool counts;
	unsigned n;

	if (admission_is_larger(pp, size))
		return ADMISSION_GOES;
	meter_lock(&pp->pp_lock);
	n = admission_count_locked(pp, file);
	counts = n < ADMISSION_MOST && size > 0 &&
		 file_priv(file)->fp_sent + (uint64_t)len >= size;
	verdict = admission_judge_locked(
	    pp, n + counts, counts ? size : 0, size, admission_hash(file));
	pthread_mutex_unlock(&pp->pp_lock);
	return verdict;
}
