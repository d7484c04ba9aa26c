/*
 * pool: the disk threads, with a queue and a quota of threads for each device.  All
 * transmissions that need the same window of a file wait for one fetch of it.
 *
 * The locks here protect lists, and are held for a few instructions.  No thread performs I/O while it
 * holds one.
 */
#ifndef LIB_DISK_POOL_H
#define LIB_DISK_POOL_H

#include <sys/queue.h>
#include <sys/types.h>

#include <limits.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"

struct admission;
struct cold;
struct pins;
struct pw_device;
struct reclaim;
struct budget;

struct share;

/* Kinds of jobs, which share the time of the device's threads (shares.h). */
enum job_kind {
	JOB_LONG,  /* next window of a download, or a task of no client */
	JOB_NEW,   /* first window of a transmission, or a task of a client */
	JOB_SHORT, /* a few reads at most, such as a drop */
	JOB_OPEN,  /* lookup of a path, perhaps without a read */
	JOB_AGAIN, /* lookup of the path of an open file, which rarely reads */
	JOB_CROWD_NEW,	/* JOB_NEW of a client with many jobs (shares.h) */
	JOB_CROWD_OPEN, /* the same of JOB_OPEN */
	JOB_KINDS,
};

/*
 * A disk thread runs a job once, delivers every waiter to its loop with the result of job_run, and frees
 * the job (free(3)).
 */
struct job {
	int (*job_run)(struct job *); /* returns 0, -errno or FETCHED_DIRECT */
	/*
	 * Called after job_run with the device's lock held.  `took` is the time since the job was queued,
	 * microseconds.  May be NULL.
	 */
	void (*job_done)(struct job *, int error, uint64_t took);
	struct pw_waiter *job_waiters; /* guarded by the device's lock */
	uint64_t job_since; /* time at which the job was queued, microseconds */
	enum job_kind job_kind;
	size_t job_len; /* bytes that the job reads, or 0 if few or unknown */
	uint64_t job_place;  /* place on a disk that rotates, or 0 (sweep.h) */
	unsigned job_client; /* wt_client of the first waiter, or 0 */
	/* connection that the job counts for, until the job ends */
	struct share *job_share;
	enum job_kind job_plain; /* job_kind outside the crowd */
	/* the caller's pointer to the job, which becomes NULL when the job begins, or NULL */
	struct job **job_ref;
	uint64_t job_began;  /* time at which the job began, microseconds */
	uint64_t job_charge; /* expected time, which shares_begin counted */
	bool job_queued;     /* true while the job is in struct shares */
	bool job_swept;	     /* true while the job is in sw_jobs (sweep.h) */
	bool job_other;	     /* true if the job counts in sh_others */
	bool job_stays;	     /* true if the job runs also if all waiters left */
	bool job_left;	     /* true if all waiters left before it began */
	TAILQ_ENTRY(job) job_next; /* guarded by the device's lock */
};

/* Treatment of a job when the queue is full. */
enum admit {
	ADMIT_NEW,   /* refused, and counted as a refused request */
	ADMIT_BEGUN, /* admitted, since the response has begun */
	ADMIT_HINT,  /* refused, but not counted, since the job is optional */
	/* refused as ADMIT_HINT is; a window is queued as JOB_NEW, since a transmission will need it first */
	ADMIT_EARLY,
};

/*
 * Queues a job, and takes ownership of it.  The waiter, if not NULL, is delivered when the job has
 * ended; its wt_client is the client of the job.  Returns -EAGAIN if the job is refused, or -ENOMEM; then
 * the caller still owns the job.  Loop's thread.
 */
int pool_submit(struct pw_device *, struct job *, enum admit, struct pw_loop *,
    struct pw_waiter *);

/*
 * Notes that the waiter's result is not needed.  A job all of whose waiters left does not begin; its
 * waiters are delivered with -ECANCELED.  Does nothing if the waiter has no job.  Loop's thread.
 */
void pool_leave(struct pw_waiter *);

/* Lets the jobs of other clients go first, until another client joins.  Loop's thread. */
void pool_defer(struct pw_waiter *);

/*
 * Notes that another client also waits for the job at *ref, by the waiter of the job.  *ref is the job_ref
 * of the job, and guarded by the device's lock.  Does nothing if the job has begun.  Loop's thread.
 */
void pool_join(
    struct pw_device *, struct job **ref, struct pw_waiter *, unsigned client);

/* Returns wt_client, or 0 if pool_leave or pool_defer was called. */
unsigned pool_client(const struct pw_waiter *);

/* wt_client of waiters for which pool_leave or pool_defer was called */
#define POOL_LEFT UINT_MAX
#define POOL_LAST (UINT_MAX - 1)

/*
 * Minimum size, in bytes, of a folio, and of a read that waits for its turn at the gate (gate.h),
 * since such a read takes 30 us to submit.
 */
#define POOL_LARGE ((size_t)128 << 10)

/* How a window is read.  A window that cannot be read direct is read as folios, or else as pages. */
enum fetch_how {
	FETCH_PAGES,  /* into the page cache, by advice */
	FETCH_FOLIO,  /* as large folios, if os_folios is true of the device */
	FETCH_DIRECT, /* past the page cache, into memory of a pin (pins.h) */
	/*
	 * as FETCH_PAGES, then released by FreeBSD's buffers (os_unbuffer), of which SF_NOCACHE would
	 * free no page
	 */
	FETCH_RELEASED,
	/* only the indirect blocks of the window's first byte (os_native_map) */
	FETCH_MAP,
};

/*
 * Fetches a window of a file.  Joins a queued or running fetch that covers the window; a FETCH_MAP
 * joins only another FETCH_MAP, and no other fetch joins a FETCH_MAP.  The descriptor must stay
 * open until the waiter is delivered.  wt_error is FETCHED_DIRECT if the window was read past the
 * page cache.  Returns 0, -EAGAIN as pool_submit does, or -ENOMEM.  Loop's thread.
 */
#define FETCHED_DIRECT 1
int pool_fetch(struct pw_file *, off_t off, size_t len, enum fetch_how,
    enum admit, struct pw_waiter *);

/*
 * Fetches a range within one OS_FOLIO of the file as pool_fetch does, and copies the range into a
 * pin (pins_take_copy) if the limit of pins permits.  Joins fetches that copy, and direct fetches;
 * a direct fetch makes no copy if it falls back to the page cache.  wt_error may also be -ESTALE.
 */
int pool_fetch_copy(struct pw_file *, off_t off, size_t len, enum fetch_how,
    enum admit, struct pw_waiter *);

/*
 * Returns true if mtime and ctime of the file are more than two seconds old, so that another change would
 * alter them: some file systems store whole seconds, and the kernel's clock for these times is up to a
 * tick late.  Any thread.
 */
bool pool_is_settled(const struct os_version *);

/* Returns true if a queued or running fetch covers the range, apart from FETCH_MAP.  Any thread. */
bool pool_fetching(struct pw_file *, off_t off, off_t end);

/* Returns true if a FETCH_MAP of the byte at off is queued or running.  Any thread. */
bool pool_mapping(struct pw_file *, off_t off);

/*
 * pool_room_take, pool_room_give and pool_room_plenty call the functions of budget.h for the device.
 * pool_room_half returns true if the device uses less than what is left.  pool_room returns the pool's
 * budget, which is a third of memory at first.  Loop's thread.
 */
int pool_room_take(struct pw_device *, size_t len, bool slow, struct pw_loop *,
    struct pw_waiter *);
void pool_room_give(struct pw_device *, size_t len);
bool pool_room_plenty(struct pw_device *);
bool pool_room_half(struct pw_device *);
struct budget *pool_room(struct pw_pool *);

/*
 * Returns the recent average time of a fetch on the device, including its time in the queue, in
 * microseconds; 0 if it is unknown.
 */
uint64_t device_latency(const struct pw_device *);

/*
 * Reads a range into the page cache, and waits for the disk.  Threads on the same processor take turns
 * (gate.h).  Reads large folios if `folio` is true.  Disk threads.
 */
int pool_read(struct pw_device *, int fd, off_t off, size_t len, bool folio);

/* Returns the drop lock of the file with this inode.  Any thread. */
struct drop_lock *device_drop_lock(struct pw_device *, uint64_t ino);

/*
 * Returns the number of the device's jobs that have ended, apart from lookups that ended while other jobs
 * occupied all threads of the quota.  Any thread.
 */
unsigned long device_ended(const struct pw_device *);

/* Counts dropped bytes for ps_dropped.  Any thread. */
void pool_dropped(struct pw_pool *, size_t len);

/* Returns the admission policy, which all loops share. */
struct admission *pool_admission(struct pw_pool *);

/* Returns a descriptor of /dev/null for splice(2), which all threads may share. */
int pool_sink(const struct pw_pool *);

/* Returns the counter of calls that may read from a disk (cold.h). */
struct cold *pool_cold(struct pw_pool *);

/* Returns the pool's pins (pins.h). */
struct pins *pool_pins(struct pw_pool *);

/* Calls pins_tick, and has a disk thread unmap pins.  Call at each tick of a loop.  Loop's thread. */
void pool_tick_pins(struct pw_loop *, uint64_t now_us);

/* Returns the observer of the kernel's reclaim (reclaim.h). */
struct reclaim *pool_reclaim(struct pw_pool *);

/* Increment and decrement the number of the pool's loops, which pw_pool_destroy checks.  Any thread. */
void pool_loop_begin(struct pw_pool *);
void pool_loop_end(struct pw_pool *);

/* Ends the threads that have no job now.  Later jobs start threads as before.  Any thread. */
void pool_dismiss(struct pw_pool *);

/* Returns true if the control group's limit includes socket memory, so that sending may evict pages. */
bool pool_sockets(const struct pw_pool *);

/* Returns the most bytes that one advice reads on the device.  Reads sysfs once, without waiting. */
size_t device_step(struct pw_device *);

/*
 * Returns true if the device's read-ahead is OS_FOLIO or more, so that the pins of its folios are marked
 * (pins_add).  Returns false before the first fetch.
 */
bool device_marks(struct pw_device *);

/* Returns true if the disk rotates, and its rate is that of a single disk (sweep.h).  Any thread. */
bool device_seeks(const struct pw_device *);

/* State of a device with a queue of POOL_FILES. */
struct pool_head {
	uint64_t ph_dev;  /* st_dev */
	uint64_t ph_rate; /* sw_rate (sweep.h); 0 if the disk does not rotate */
	bool ph_seeks;	  /* result of device_seeks */
};

/* Fills in at most `max` entries, and returns their number.  Any thread. */
size_t pool_heads(struct pw_pool *, struct pool_head *, size_t max);

/* Returns true if windows are read as folios (os_folios).  Returns false before the first fetch. */
bool device_folds(struct pw_device *);

/* Queues of a device.  Each has threads of its own, so a job waits only for jobs of the same queue. */
enum pool_queue {
	POOL_FILES,   /* opens and windows */
	POOL_TASKS,   /* tasks, such as listings */
	POOL_MOUNTS,  /* opens that lead to another mount below a root */
	POOL_TIER,    /* reads and writes of the tier (tier.h) */
	POOL_NO_DISK, /* work without a disk, on device 0; not in statistics */
	POOL_QUEUES,
};

/*
 * Returns the queue of this kind for the device with this st_dev.  Never fails: devices that do not fit
 * into the table share its first slot.
 */
struct pw_device *pool_device(struct pw_pool *, dev_t, enum pool_queue);

/*
 * Returns how residency is checked on the device of `fd`.  The first call queries the file system,
 * which does not wait if the file system is local.  Any thread.
 */
enum os_ask device_ask(struct pw_device *, int fd);

/*
 * Returns true if open(2) or fstat(2) of a file of the device may wait, or if that is unknown
 * because device_ask was not called yet.  Any thread.
 */
bool device_open_waits(struct pw_device *);

/*
 * Returns true if the file system is local, so that fstat(2) of an open file never waits for a
 * server.  Call after device_ask, on the same thread or in a job that this thread queued.
 */
bool device_is_local(const struct pw_device *);

/* Returns fs_block of the device's struct os_fs.  Call after device_ask. */
size_t device_block(struct pw_device *);

/*
 * device_has_news returns true if a message about the device should be logged.  device_announce writes
 * one such message, or returns false if none is left; call it until then.
 */
bool device_has_news(const struct pw_device *);
bool device_announce(struct pw_device *, char *text, size_t size);

/*
 * device_refuses notes that sendfile(2) or splice(2) refused a file of the device with this -errno
 * (GPFS, some FUSE file systems).  From then on device_copies returns true, and the send paths copy
 * files of the device.  Any thread.
 */
void device_refuses(struct pw_device *, int error);
bool device_copies(const struct pw_device *);

#endif
