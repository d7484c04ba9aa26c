/*
 * libpagewise: asynchronous sendfile for any event loop.
 *
 * A request for file data is answered at once, without a copy, when the data is in
 * memory; otherwise another thread fetches only the missing window and then notifies
 * the caller.  The thread that runs the event loop never waits for a disk.  No HTTP, no
 * global state, nothing is printed.  SIGPIPE must be ignored by the program.
 * libpagewise(3) describes the life cycle, the rules for threads and all return values;
 * examples are in lib/examples/.
 *
 *   struct pw_pool       threads that wait for disks; shared by all loops
 *   struct pw_loop       one per event-loop thread: completions, open files
 *   struct pw_root       a directory; by default nothing outside it is opened
 *   struct pw_file       an open file of one loop, counted
 *   struct pw_send       one transmission: memory, then a range of a file
 *   struct pw_send_path  a way of sending, chosen by name
 *
 * Functions return 0 or -errno unless they say otherwise.  Sizes and offsets
 * are bytes, times are microseconds of CLOCK_MONOTONIC.
 *
 * A call that breaks the rules below fails with -EINVAL, and changes nothing.  Where going
 * on would corrupt memory, the library aborts the program (abort(3)), with a sentence on
 * stderr that names the function and the rule; it prints nothing else.
 *
 * Structs that the caller allocates keep their size within a soname; structs that the
 * library allocates (pw_file) get new members at the end.
 */
#ifndef PAGEWISE_H
#define PAGEWISE_H

#include <sched.h> /* struct timespec, also with -std=c99 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#define PW_VERSION "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

struct pw_pool;
struct pw_loop;
struct pw_root;
struct pw_send_path;

/* Returns PW_VERSION of the running library, which may be newer than this header.  A constant string. */
const char *pw_version(void);

/* Returns the time as the library's functions expect it (now_us).  Any thread. */
uint64_t pw_now(void);

/*
 * ------------------------------------------------------------- the process
 * A loop also waits for the disk when pages of its program are not resident, and for other processors
 * when a descriptor table grows that threads share.  pw_process_prepare locks the program and its
 * libraries in memory, some 4 MiB, sizes the table for 65536 descriptors, or RLIMIT_NOFILE if that is
 * less, and has later threads map their heaps in one piece (glibc).  Call it before the first thread is
 * started and after RLIMIT_NOFILE is set.  Returns 0, or -errno (-ENOMEM, -EPERM: RLIMIT_MEMLOCK) if the
 * program was read but can be evicted.
 */
int pw_process_prepare(void);

/*
 * ---------------------------------------------------------------- the pool
 * Every device (st_dev) has its own queue and threads, started at their first use, so that a device that
 * hangs blocks only these.
 */
struct pw_pool_conf {
	unsigned ppc_threads; /* most threads per device; 0 means 16 */
	unsigned ppc_queue;   /* most jobs queued per device; 0 means 4096 */
};

/* Creates a pool.  The configuration may be NULL.  Returns 0 or -errno. */
int pw_pool_create(const struct pw_pool_conf *, struct pw_pool **);

/*
 * Destroys a pool after its last loop.  Waits up to timeout_us for running jobs.  Returns 0; -EBUSY if a
 * disk still holds threads, which are left behind with what they use, or if that kept a loop from being
 * destroyed; -EINVAL if the pool has a loop although no thread is at work.
 */
int pw_pool_destroy(struct pw_pool **, uint64_t timeout_us);

/* Returns how many jobs were refused because a queue was full.  Any thread. */
uint64_t pw_pool_refused(const struct pw_pool *);

/*
 * ---------------------------------------------------------------- waiting
 * Every wait ends in exactly one call of wt_done, on the loop's thread, by pw_loop_drain; never by the
 * function that returned -EINPROGRESS or PW_SEND_PENDING.  The caller owns the memory, and keeps it until
 * then.
 */
struct pw_waiter {
	void (*wt_done)(struct pw_waiter *);
	struct pw_loop *wt_loop;   /* owned by the library while waiting */
	struct pw_waiter *wt_next; /* owned by the library while waiting */
	int wt_error;		   /* 0 or -errno, valid in wt_done */
};

/*
 * A wait of the caller's own, by which another thread passes a result to the loop.  Set wt_done before.
 * Call pw_wait_begin on the loop's thread, and pw_wait_end once, on any thread.  An end without a begin,
 * or a begin without wt_done, aborts the program.
 */
void pw_wait_begin(struct pw_loop *, struct pw_waiter *);
void pw_wait_end(struct pw_waiter *, int error);

/*
 * ---------------------------------------------------------------- the loop
 * Call pw_loop_drain when pw_loop_fd is readable, and pw_loop_tick a few times a second: it closes unused
 * files and drops pages that were sent with PW_CACHE_DROP.
 */
struct pw_loop_conf {
	unsigned plc_open_files; /* most files in the cache; 0 means 1024 */
	/*
	 * Called on the loop's thread when a device is first used, with a message for the log that
	 * says how residency is checked there.  May be NULL.
	 */
	void (*plc_device)(void *arg, const char *message);
	void *plc_arg;
	/*
	 * Name of an extended attribute in the namespace `user' ("user.NAME" on Linux), for
	 * pw_open.op_attribute, or NULL.  The caller owns it.
	 */
	const char *plc_attribute;
};

/* Creates a loop.  The configuration may be NULL.  Returns 0 or -errno. */
int pw_loop_create(
    struct pw_pool *, const struct pw_loop_conf *, struct pw_loop **);
int pw_loop_fd(const struct pw_loop *);
void pw_loop_drain(struct pw_loop *);
void pw_loop_tick(struct pw_loop *, uint64_t now_us);

/*
 * Closes the least recently used file that only the cache refers to, for a process that is out of
 * descriptors.  Returns false if there is none.
 */
bool pw_loop_spare(struct pw_loop *);

/*
 * Bounds what the loop's transmissions pass to their sockets.  With bytes > 0 they send copies, at most
 * `bytes` a call; with 0 they send pages of files again.  Pages in a socket stay in memory, and count
 * for the control group, until the client acknowledges them.
 */
void pw_loop_bound(struct pw_loop *, size_t bytes);

/*
 * Returns the number of waits that are not delivered yet; it must be 0 for pw_loop_destroy.  Cancelled waits
 * count until their thread has finished.
 */
unsigned pw_loop_pending(const struct pw_loop *);

/* Destroys a loop.  Returns 0, or -EINVAL if it has waits or is being drained; then it stays. */
int pw_loop_destroy(struct pw_loop **);

/*
 * ---------------------------------------------------------------- files
 */
/*
 * Opens a directory as a root of paths.  A root is reference-counted: files that a loop caches hold it too.
 * Opening and closing may wait.  Returns 0 or -errno.
 */
int pw_root_open(const char *path, struct pw_root **);

/*
 * Opens a root as pw_root_open does, with another rule for symbolic links.  By default only links that
 * are relative and do not leave the root are followed.  Returns -EOPNOTSUPP if this system lacks the
 * rule, or -EINVAL for an unknown flag or several.
 */
enum pw_root_flags {
	PW_ROOT_NO_LINKS = 1, /* fails with -ELOOP for a link in a path */
	/*
	 * Paths and links that begin with '/' begin at the root, as after chroot(2), and ".." of the root
	 * is the root.
	 */
	PW_ROOT_AS_SLASH = 2,
	/* Follows all links, as open(2) does, also out of the root. */
	PW_ROOT_ALL_LINKS = 4,
};

int pw_root_open_with(const char *path, unsigned flags, struct pw_root **);
void pw_root_close(struct pw_root **);

/* Returns the st_dev of the root, for pw_task_run. */
uint64_t pw_root_dev(const struct pw_root *);

/* Returns the root's descriptor, which the root owns. */
int pw_root_fd(const struct pw_root *);

/* Opens a directory below the root for reading.  May wait: call it in tk_work only. */
int pw_root_open_dir(const struct pw_root *, const char *path);

/*
 * Opens a regular file below the root for reading; -EACCES for other types.  May wait: call it in
 * tk_work only.
 */
int pw_root_open_file(const struct pw_root *, const char *path);

/*
 * As fstatat(2) of a name in the directory, not following a link.  Returns -EXDEV for a mount point, since
 * the other file system may hang.
 */
int pw_stat_name(int dirfd, const char *name, struct stat *);

/*
 * As stat(2) of a path below the root, with the root's rule for links.  Returns -EXDEV for paths outside the
 * root or on another file system, which may hang.  May wait: call it in tk_work only.
 */
int pw_root_stat(const struct pw_root *, const char *path, struct stat *);

/*
 * Reads an extended attribute (as plc_attribute) of a regular file in the directory.  Returns its length, or
 * -errno: -ENOENT if the file has none, -EXDEV for a mount point.  May wait: call it in tk_work only.
 */
long pw_name_attribute(
    int dirfd, const char *name, const char *attribute, void *to, size_t size);

#define PW_ATTRIBUTE_MAX 256 /* most bytes of an attribute */

enum pw_file_type { PW_FILE_REGULAR, PW_FILE_DIRECTORY, PW_FILE_OTHER };

struct pw_file {
	int fil_fd; /* -1 unless the file is regular */
	enum pw_file_type fil_type;
	off_t fil_size;
	struct timespec fil_mtime;
	struct timespec fil_ctime;
	uint64_t fil_ino;
	uint64_t fil_dev;
	/* Start time of the last lookup that found the file, microseconds. */
	uint64_t fil_checked;
	/*
	 * Value of the attribute plc_attribute, if an open requested it; NULL if the file has none or
	 * it has more than PW_ATTRIBUTE_MAX bytes.  A change of the attribute changes fil_ctime too.
	 */
	const char *fil_attribute;
	size_t fil_attribute_len;
	/*
	 * Set by the caller, once.  The library calls fil_user_free when the last reference is
	 * released.
	 */
	void *fil_user;
	void (*fil_user_free)(void *);
	/* True if the file has changed: the next open looks its path up.  The caller may set it. */
	bool fil_stale;
};

#define PW_FRESH_US 1000000 /* microseconds between lookups of a cached path */

struct pw_open {
	struct pw_waiter op_waiter;
	/*
	 * Set by the caller to get fil_attribute.  Since the attribute may be on the disk, the pool opens
	 * files that are new or have changed.
	 */
	bool op_attribute;
	struct pw_file *op_file; /* result: a reference that the caller owns */
	/* List entry.  The library owns it until it calls op_waiter.wt_done. */
	struct {
		struct pw_open *tqe_next;
		struct pw_open **tqe_prev;
	} op_link;
	void *op_others; /* opens of the same path; NULL if not waiting */
};

/*
 * Opens path (relative to root; "." is the root) from the cache, or without
 * waiting, or through the pool.
 *   0             op->op_file is set
 *   -EINPROGRESS  op_waiter.wt_done will be called, with wt_error and op_file
 *   -ENOENT, -ENOTDIR, -EACCES, -ENAMETOOLONG, ... as openat2(2)
 *   -EXDEV, -ELOOP the path leaves the root, or goes round in circles
 *   -EAGAIN       the device's queue is full
 *   -EINVAL       there is no wt_done
 * A file that was created or moved is noticed within a second of now_us.  A change, replacement or removal
 * of an open file is noticed in the next iteration of the loop (pw_loop_rest; without it, at once), and on
 * network file systems within a second.
 */
int pw_file_open(struct pw_loop *, struct pw_root *, const char *path,
    uint64_t now_us, struct pw_open *op);

/*
 * Cancels a pending open: wt_done is not called, and the caller owns the memory again when this returns.  A
 * disk thread that looks the path up goes on, so pw_loop_pending may stay the same.  Returns -EINVAL if
 * the open is not pending.
 */
int pw_open_cancel(struct pw_open *);

void pw_file_ref(struct pw_file *);
void pw_file_unref(struct pw_file **);

/*
 * Copies len bytes from off on, if they are resident; never waits for the disk.
 *   0        all bytes were copied, of the file as it was looked up
 *   -EAGAIN  not all are resident, or they cannot be read without waiting: neither
 *            RWF_NOWAIT nor a file system in memory
 *   -ESTALE  the file has changed since it was looked up (see fil_stale)
 *   -EIO, ... as pread(2), fstat(2)
 * May have written to `to' in any case.
 */
int pw_file_copy(struct pw_file *, off_t off, void *to, size_t len);

/*
 * Calls tk_work on a disk thread of a device (fil_dev), and then wt_done on the loop: for directory listings
 * and other work that reads a disk.  The memory must stay until then.  Returns -EAGAIN if the device's
 * queue is full, or for tk_begun if there is no thread, and -EINVAL without tk_work or wt_done.
 */
struct pw_task {
	struct pw_waiter tk_waiter;
	bool tk_begun; /* admitted even if the queue is full */
	int (*tk_work)(struct pw_task *); /* returns wt_error */
};

int pw_task_run(struct pw_loop *, uint64_t dev, struct pw_task *);

/*
 * ---------------------------------------------------------------- sending
 * The rules that every send path keeps:
 * 1. Every operation runs on the loop's thread; a disk thread never uses a
 *    connection.  (The exception is the path pool, whose threads send on the
 *    non-blocking socket, and do nothing else with it.)
 * 2. PW_SEND_PENDING means exactly one later completion, delivered by
 *    pw_loop_drain, never from inside pw_send_step, and also after
 *    pw_send_cancel.
 * 3. While pending, references are held; cancelling may shut the socket down
 *    but closes nothing, unless pw_send_take_back gave it back.
 * 4. Byte accounting is one pure function (lib/send/account.h), used by all paths.
 * 5. A file that shrinks, or whose size or modification time differs after its last byte was
 *    read, fails with PW_SEND_ERROR and -ESTALE before the last byte is sent; the caller closes
 *    the connection, and never pads it.
 * 6. Queues are bounded.  A new transmission that finds its device's queue
 *    full is refused (-EAGAIN, counted).  One that has begun is always admitted;
 *    there are no more of these than connections.
 */
enum pw_send_status {
	PW_SEND_DONE,	    /* the kernel or the sink has everything */
	PW_SEND_WANT_WRITE, /* the socket is full: step when it is writable */
	PW_SEND_AGAIN,	    /* a chunk was sent: step after other connections */
	PW_SEND_PENDING,    /* step after snd_done was called */
	PW_SEND_ERROR,	    /* snd_error is set: close the connection */
};

/* Treatment of pages that this transmission fetched (thesis 4.4.1). */
enum pw_cache {
	PW_CACHE_KEEP, /* the kernel decides */
	PW_CACHE_DROP, /* dropped once the client has acknowledged them */
	PW_CACHE_AUTO, /* kept if the file is popular, else dropped */
};

/*
 * Values of snd_readahead, as in FreeBSD's SF_FLAGS(readahead, flags): missing data is fetched in windows of
 * this size, the next one while the last is being sent.  PW_READAHEAD_AUTO chooses 64 KiB to 2 MiB by the
 * rates of client and device and by free memory.  PW_READAHEAD_NONE fetches a chunk at a time, and
 * nothing ahead.
 */
#define PW_READAHEAD_AUTO 0
#define PW_READAHEAD_NONE UINT64_MAX

/*
 * A destination other than a plain socket, such as TLS in user space.  A sink gets memory, not ranges of
 * files: resident data is copied for it on the loop without waiting; missing data is fetched first.  No
 * disk thread uses a sink.  So the paths differ in the thread that reads: `blocking' and `copy' always
 * read on the loop, `aio' and `pool' never.  Loop's thread.
 *
 * A sink that sends ranges of files itself, by sendfile(2) for example, sets take_range.
 */
struct pw_sink;

struct pw_sink_ops {
	/*
	 * Accepts some of len > 0 bytes; with more, others follow at once.  Returns 0 and sets *taken to
	 * at least one; or -EAGAIN if it is full, for which pw_send_step returns PW_SEND_WANT_WRITE; or
	 * another -errno, with which the transmission fails.
	 */
	int (*take)(struct pw_sink *, const char *, size_t len, bool more,
	    size_t *taken);

	/*
	 * Returns the accepted bytes that the client has not acknowledged, which PW_CACHE_DROP does not
	 * drop yet; a sink that copies may return 0.  Returns -1 if they are unknown; then nothing is
	 * dropped before the transmission ends.
	 */
	long (*unacked)(struct pw_sink *);

	/*
	 * Accepts some of a range of snd_file that is resident now, and sets *taken to the bytes sent of
	 * it.  Returns as take does, but may set *taken with -EAGAIN too.  It may queue the rest of the
	 * range; before it sends that, it calls pw_send_step, and in the take_range that follows all of
	 * it is resident again.  It returns -EAGAIN only for what it tried to send in this call: an
	 * earlier event may have come while the transmission was pending, and does not come again.
	 * take is called instead, also for bytes that were offered here, if residency cannot be checked
	 * or the window is evicted again and again; and for the last 16 KiB.  May be NULL.
	 */
	int (*take_range)(
	    struct pw_sink *, off_t, size_t len, bool more, size_t *taken);

	/*
	 * Returns memory into which the next bytes of a file are read, so that take need not copy them.
	 * Sets *room to its size, or 0 if the sink is full.  May be NULL.
	 */
	char *(*room)(struct pw_sink *, size_t *room);
};

struct pw_sink {
	const struct pw_sink_ops *sk_ops;
};

/*
 * A transmission.  Zero all of it, then set what is required: zero is the default of the others.  Later
 * versions put options where snd_private begins now.
 */
#define PW_SEND_ROOM 240 /* bytes */

struct pw_send {
	/* Set by the caller before pw_send_start; path, loop and snd_done are required. */
	const struct pw_send_path *snd_path;
	struct pw_loop *snd_loop;
	int snd_sock;		  /* non-blocking; the caller owns it */
	struct pw_sink *snd_sink; /* replaces snd_sock, or NULL */
	bool snd_more;		  /* another transmission follows at once */
	bool snd_begun;		  /* the response has begun already */
	const char *snd_mem;	  /* sent first; must stay until then */
	size_t snd_mem_len;
	struct pw_file *snd_file; /* or NULL; start takes a reference */
	off_t snd_off;		  /* next byte of the file */
	off_t snd_len;		  /* bytes of the file that are left */
	uint64_t snd_readahead;	  /* bytes of a window; see above */
	enum pw_cache snd_cache;
	/* Rate of the client in bytes/s, from its last transmission; 0 if unknown. */
	uint64_t snd_rate;
	/* The caller's rate limit in bytes/s, for the size of windows; 0 if there is none. */
	uint64_t snd_pace;
	/* Bytes that the next step may send beside a head; 0 for all.  Set it before each step. */
	uint64_t snd_limit;
	void (*snd_done)(struct pw_send *); /* ends PW_SEND_PENDING */

	/* Read by the caller. */
	uint64_t snd_sent; /* bytes sent, including snd_mem */
	uint64_t snd_wait; /* microseconds spent pending */
	bool snd_pending;  /* snd_done follows: the memory must stay */
	int snd_error;	   /* -errno after PW_SEND_ERROR */

	union {
		uint64_t pr_align;
		char pr_room[PW_SEND_ROOM];
	} snd_private; /* owned by the library */
};

/* Returns the send path of this name, or NULL. */
const struct pw_send_path *pw_send_path(const char *name);

/* Returns this system's default: native where it is supported, else nodiskio. */
const struct pw_send_path *pw_send_default(void);

/* Returns all names, in a constant list that ends with NULL. */
const char *const *pw_send_path_names(void);

/* Returns 0, or -errno and sets *why to a constant string if this host cannot use the path. */
int pw_send_probe(const struct pw_send_path *, const char **why);

/*
 * Starts a transmission.  Returns 0, or -EINVAL (as the first step does) without path, loop or snd_done, for a
 * sink without functions, a file that is not regular or of another loop, or a negative range.  Changes
 * nothing of a pending transmission.
 */
int pw_send_start(struct pw_send *);

/* Sends a chunk.  While pending it fails with PW_SEND_ERROR and -EINVAL; snd_done follows all the same. */
enum pw_send_status pw_send_step(struct pw_send *);

/*
 * Cancels a transmission.  If it is pending, the library still calls snd_done later; keep its memory and
 * its socket until that call.
 */
void pw_send_cancel(struct pw_send *);

/*
 * Takes the socket of a pending transmission back, for another response or to close it; call pw_send_cancel
 * next.  Returns false if a disk thread is sending on it (path pool): then it must stay until snd_done.
 */
bool pw_send_take_back(struct pw_send *);

/*
 * Returns true if a pending transmission's device has finished no job since the last call, or since the wait
 * began: the device hangs, and is not only busy.
 */
bool pw_send_stuck(struct pw_send *);

/*
 * Releases the transmission's part of the budget for fetched data.  Call it when the sink accepts
 * nothing for long, since other transmissions wait for that part.  Not while it is pending.
 */
void pw_send_yield(struct pw_send *);

/*
 * Returns the bytes that a socket has sent or queued and the peer has not acknowledged, or 0 if they are
 * unknown.
 */
uint64_t pw_unacked(int sock);

/* Returns true if all bytes in the socket are still to be read from a disk (path native). */
bool pw_awaits_disk(int sock);

/* Ends a transmission and releases its file.  Aborts the program if it is pending. */
void pw_send_finish(struct pw_send *);

/*
 * ---------------------------------------------------------------- what is counted
 * Counters since the start.  Any thread; the values of one call may be of different moments.
 */
#define PW_HISTOGRAM 26

/*
 * A histogram of times: bucket i counts times above 2^(i-1) and up to 2^i microseconds; the last bucket
 * also counts all longer times.
 */
struct pw_histogram {
	uint64_t hg_count[PW_HISTOGRAM];
	uint64_t hg_sum; /* sum of all times, microseconds */
};

/* Adds a time.  One thread at a time. */
void pw_histogram_add(struct pw_histogram *, uint64_t us);
void pw_histogram_copy(struct pw_histogram *to, const struct pw_histogram *);

struct pw_loop_stats {
	uint64_t ls_resident; /* chunks that were resident when checked */
	uint64_t ls_missed;   /* windows that a transmission waited for */
	uint64_t ls_ahead;    /* windows that were prefetched */
	uint64_t ls_evicted;  /* windows evicted before they were sent */
	uint64_t ls_held;     /* waits for the budget */
};

void pw_loop_stats(const struct pw_loop *, struct pw_loop_stats *);

/*
 * Mark the begin and end of an iteration, so that the library counts how often and how long the loop's
 * thread sleeps outside its wait for events, which it should not do.  Call pw_loop_awake after each wait,
 * and again when the program changes to other work; pw_loop_rest before the next wait.  Both on the loop's
 * thread, which has no other loop then.
 */
void pw_loop_awake(struct pw_loop *, uint64_t now_us);
void pw_loop_rest(struct pw_loop *, uint64_t now_us);

#define PW_SLEEPS 24 /* most calls in a list */

struct pw_sleep {
	const char *sl_call; /* "sendfile", ...; a constant string */
	uint64_t sl_times;   /* number of sleeps, but not all below 50 us */
	uint64_t sl_us;	     /* time of the calls that slept, microseconds */
};

/*
 * Lists the sleeps of each call that the library makes, in a fixed order, and returns how many.  A name may
 * also be "page fault" (one that read a disk, in any call), "lock", or "elsewhere".
 */
size_t pw_loop_sleeps(const struct pw_loop *, struct pw_sleep list[PW_SLEEPS]);

struct pw_device_stats {
	uint64_t ds_dev;       /* st_dev; 0 for devices past the table */
	const char *ds_queue;  /* "files", "tasks" or "mounts" */
	const char *ds_fsname; /* file system type, or NULL if unknown */
	const char *ds_mount;  /* mount point on FreeBSD, else NULL */
	unsigned ds_threads;
	unsigned ds_busy;
	unsigned ds_queued;
	uint64_t ds_jobs;  /* jobs that have ended */
	uint64_t ds_bytes; /* bytes that were fetched */
	uint64_t ds_refused;
	/* durations of jobs, with their time in the queue */
	struct pw_histogram ds_wait;
};

/* Fills in at most max devices, and returns how many. */
size_t pw_pool_devices(struct pw_pool *, struct pw_device_stats *, size_t max);

struct pw_pool_stats {
	uint64_t ps_refused;	/* as pw_pool_refused */
	uint64_t ps_dropped;	/* bytes dropped (PW_CACHE_DROP, _AUTO) */
	uint64_t ps_unsent;	/* bytes in flight, or fetched and unsent */
	uint64_t ps_unsent_max; /* budget for ps_unsent */
};

void pw_pool_stats(struct pw_pool *, struct pw_pool_stats *);

/*
 * Returns the bytes of memory that are kept for windows of files until they are sent: pages of the page
 * cache that are locked, and copies.  These are at most an eighth of memory, and the locked pages at
 * most RLIMIT_MEMLOCK.  Any thread.
 */
uint64_t pw_pool_pinned(struct pw_pool *);

#ifdef __cplusplus
}
#endif

#endif
