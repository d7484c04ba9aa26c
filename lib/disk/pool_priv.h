/*
 * pool_priv: private to pool.c (queues and threads of devices), fetch.c (jobs that read
 * windows of files), device.c (properties, budget and statistics of devices),
 * tier_fetch.c and tier_offer.c (windows of the tier).
 */
#ifndef LIB_DISK_POOL_PRIV_H
#define LIB_DISK_POOL_PRIV_H

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "lib/disk/budget.h"
#include "lib/disk/cold.h"
#include "lib/disk/drop_lock.h"
#include "lib/disk/gate.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/disk/shares.h"
#include "lib/disk/sweep.h"
#include "lib/util/cacheline.h"

#define POOL_DEVICES 64
#define POOL_GATES   8	 /* processor n uses gate n % POOL_GATES */
#define DEVICE_HASH  256 /* hash chains of windows in flight, by inode */

struct pins;
struct tiered;

/* Messages about a device, each of which is logged once. */
enum untold {
	UNTOLD_RESIDENCY = 1,
	UNTOLD_REFUSAL = 2,
	UNTOLD_SEEKS = 4,
};

struct pw_device {
	/* guards the fields below, except atomic and constant ones, dv_work, dv_room, dv_gates, dv_drops */
	pthread_mutex_t dv_lock;
	sem_t dv_work;	      /* posted once for each thread to wake */
	unsigned dv_sleepers; /* idle threads that sleep, guarded by dv_lock */
	struct pw_pool *dv_pool;
	dev_t dv_id;
	enum pool_queue dv_kind;
	struct shares dv_shares; /* queued jobs */
	size_t dv_long;		 /* bytes of running JOB_LONG jobs */
	/* order of reads if the disk rotates, else NULL (device_find_sweep) */
	struct sweep *_Atomic dv_sweep;
	atomic_bool dv_asked_sweep;
	atomic_bool dv_told_seeks; /* true after UNTOLD_SEEKS was set */
	unsigned dv_queued;
	unsigned dv_threads;
	unsigned dv_idle;     /* of these, threads without a job */
	unsigned dv_starting; /* of these, threads that are not started yet */
	unsigned
	    dv_dismissed; /* threads that end as soon as they have no job */
	bool dv_stop;
	atomic_uint dv_untold; /* set of enum untold: messages not logged yet */
	/* errno with which sendfile(2) was refused, or 0 */
	atomic_int dv_copies;
	enum os_ask dv_ask;
	struct os_fs dv_fs;    /* constant once dv_ask is set */
	atomic_ulong dv_ended; /* jobs that have ended (pool_shows_progress) */
	uint64_t dv_bytes;
	uint64_t dv_refused;
	struct pw_histogram dv_wait;
	/* maximum bytes of one advice; 0 before device_step */
	atomic_size_t dv_step;
	atomic_bool dv_folios;	    /* result of os_folios, set with dv_step */
	atomic_size_t dv_readahead; /* read-ahead in bytes, set with dv_step */
	/* moving average time of a fetch, microseconds */
	atomic_ullong dv_latency;
	struct budget_part dv_room;
	struct gate dv_gates[POOL_GATES];
	struct window *dv_windows[DEVICE_HASH];
	struct drop_lock dv_drops[DROP_LOCKS];
};

/*
 * A job that reads a window of a file.  The descriptor stays open until all waiters are delivered.
 * job_len is the length of the window.
 */
struct window {
	struct job win_job; /* first member, as free(job) frees this struct */
	struct pw_device *win_device;
	int win_fd;
	struct pins_key win_key;
	off_t win_off;
	enum fetch_how win_how;
	/* true if the window is copied into a pin (pool_fetch_copy) */
	bool win_lent;
	/* true if the window is offered to the tier (tier_fetch.h) */
	bool win_tier;
	/* value of pk_dev in the tier (tier_place) */
	uint64_t win_place;
	/* next window of the hash chain, guarded by the device's lock */
	struct window *win_next;
};

struct pw_pool {
	/* Constant fields, some of which are read for each request with cache = auto. */
	struct pw_pool_conf pl_conf;
	struct admission *pl_popular;
	struct reclaim *pl_reclaim;
	struct budget *pl_room;
	struct pins *pl_pins;
	struct tiered *pl_tiered; /* state of tier_fetch.c, or NULL */
	/*
	 * functions of tier_fetch.c, as pointers, since tier_fetch.c calls the pool; NULL without a
	 * tier
	 */
	void (*pl_offer)(const struct window *, bool direct);
	void (*pl_tier_destroy)(struct tiered **);
	int pl_sink;	/* descriptor of /dev/null, for os_fetch_end */
	int pl_pagemap; /* result of os_pagemap_open, or -1 */
	/* true if the memory limit includes socket memory (pool_sockets) */
	bool pl_sockets;
	/* memory and number of pw_pool_share, or NULL */
	struct shares_common *pl_common;
	unsigned pl_process;

	/* guards the fields down to pl_stop; acquired after dv_lock */
	alignas(CACHE_LINE) pthread_mutex_t pl_lock;
	pthread_cond_t pl_ended;
	struct pw_device *pl_devices[POOL_DEVICES];
	size_t pl_ndevices;
	/* threads that have not ended, also those that are not started yet */
	unsigned pl_running;
	bool pl_started; /* true if the starter runs */
	bool pl_stop;
	sem_t pl_start; /* wakes the starter */
	atomic_uint pl_loops;
	atomic_ullong pl_refused;
	struct cold pl_cold;
	atomic_ullong pl_dropped;
};

/*
 * Returns the number of devices, so that the caller may acquire the lock of each.  A device never moves.
 */
size_t device_count(struct pw_pool *);

/*
 * pool_enqueue queues a job as pool_submit does.  pool_await adds a waiter to a queued or running job.
 * The caller of either holds the device's lock.
 */
int pool_enqueue(struct pw_device *, struct job *, enum admit);
void pool_await(struct job *, struct pw_loop *, struct pw_waiter *);

/*
 * Sets dv_sweep, once, if the device rotates, and UNTOLD_SEEKS, once, if the device seeks.  The first
 * call reads sysfs.  Disk threads.
 */
void device_find_sweep(struct pw_device *);

/*
 * Queues a read of the window that `like` describes, for a list of waiters, linked by wt_next,
 * whose read from the tier was given up.  Delivers the waiters with an error if memory is short or
 * no thread can be started.
 */
void fetch_resume(const struct window *like, struct pw_waiter *);

/* Returns the kind of a job that reads a window. */
static inline enum job_kind
pool_window_kind(enum admit admit)
{
	return admit == ADMIT_NEW || admit == ADMIT_EARLY ? JOB_NEW : JOB_LONG;
}

/* Fetches a window of the file, which `like` describes, as pool_fetch does. */
int fetch_window(struct pw_file *, const struct window *like, enum admit,
    struct pw_waiter *);

#endif
