/*
 * libpagewise: asynchronous sendfile for any event loop.
 *
 * A request for file data is answered at once, without a copy, when the data is in
 * memory; otherwise another thread fetches only the missing window and then notifies
 * the caller.  The thread that runs the event loop never waits for a disk.  No HTTP, no
 * global state, nothing is printed.  SIGPIPE must be ignored by the program.
 * libpagewise(3) has a life cycle, the rules of threads and a table of returns; examples
 * are in lib/examples/.
 *
 *   struct pw_pool       threads that wait for disks; shared by all loops
 *   struct pw_loop       one per event-loop thread: completions, open files
 *   struct pw_root       a directory; nothing outside it is opened, unless it may be
 *   struct pw_file       an open file of one loop, counted
 *   struct pw_send       one transmission: memory, then a range of a file
 *   struct pw_send_path  a way of sending, chosen by name
 *
 * Functions return 0 or -errno unless they say otherwise.  Sizes and offsets
 * are bytes, times are microseconds of CLOCK_MONOTONIC.
 *
 * A call that the rules below forbid is -EINVAL, and changes nothing.  Where that could
 * only ruin memory the program ends (abort(3)), with a sentence on stderr that names the
 * function and the rule: the one thing that is ever printed.
 *
 * Structs that the caller makes keep their size within a soname; of those that the library
 * makes (pw_file) new members come at the end.
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

/* PW_VERSION of the library that runs: it may be newer than this header.  A constant. */
const char *pw_version(void);

/* The time, as functions of the library want it.  Any thread. */
uint64_t pw_now(void);

/*
 * ------------------------------------------------------------- the process
 * A loop also waits for the disk when its program is not in memory, and for other
 * processors when a table of descriptors grows that several threads share.  To be
 * called before the first thread is started, descriptors' limit (RLIMIT_NOFILE)
 * set: locks the program and its libraries in memory, some 4 MiB, and makes the
 * table large enough for 65536 descriptors, or as many as the limit is.  Threads that are
 * started later have their heaps at once (glibc).  -errno (-ENOMEM,
 * -EPERM: RLIMIT_MEMLOCK): they were brought in, but can be evicted.
 */
int pw_process_prepare(void);

/*
 * ---------------------------------------------------------------- the pool
 * Every device (st_dev) has its own queue and its own threads, started when
 * they are first needed: a device that hangs blocks only its own.
 */
struct pw_pool_conf {
	unsigned ppc_threads; /* threads per device: its quota; 0: 16 */
	unsigned ppc_queue;   /* windows that may wait per device; 0: 4096 */
};

/* NULL: the defaults. */
int pw_pool_create(const struct pw_pool_conf *, struct pw_pool **);

/*
 * After the last of its loops.  Waits up to timeout_us for what still
 * runs; threads that a hung disk holds then are left behind, with what they use,
 * and -EBUSY is returned; as it is if a loop could not be destroyed because of one.
 * -EINVAL: it has a loop, and none of its threads is at work.
 */
int pw_pool_destroy(struct pw_pool **, uint64_t timeout_us);

/* How often a job was refused because a queue was full.  Any thread. */
uint64_t pw_pool_refused(const struct pw_pool *);

/*
 * ---------------------------------------------------------------- waiting
 * Every wait ends in exactly one call of wt_done, on the loop's own thread, from inside
 * pw_loop_drain: never from inside the function that said -EINPROGRESS or
 * PW_SEND_PENDING.  The memory belongs to the caller and stays until then.
 */
struct pw_waiter {
	void (*wt_done)(struct pw_waiter *);
	struct pw_loop *wt_loop;   /* owned by the library while waiting */
	struct pw_waiter *wt_next; /* owned by the library while waiting */
	int wt_error;		   /* 0 or -errno, valid in wt_done */
};

/*
 * A wait for something of the caller's own, by which another thread gives a result to the
 * loop: wt_done is set before.  Begin on the loop's thread; end once, any thread.  An end
 * without a begin, or a begin without wt_done, ends the program.
 */
void pw_wait_begin(struct pw_loop *, struct pw_waiter *);
void pw_wait_end(struct pw_waiter *, int error);

/*
 * ---------------------------------------------------------------- the loop
 * When pw_loop_fd becomes readable, call pw_loop_drain.  Call pw_loop_tick a few
 * times a second: it ages the cache of open files and drops pages that were
 * sent with PW_CACHE_DROP.
 */
struct pw_loop_conf {
	unsigned plc_open_files; /* size of the cache of open files; 0: 1024 */
	/*
	 * Called on the loop's thread when a device is seen for the first time:
	 * how residency is asked there, for the log.  May be NULL.
	 */
	void (*plc_device)(void *arg, const char *message);
	void *plc_arg;
	/*
	 * Name of an extended attribute in the namespace of users ("user.NAME" on Linux), for
	 * pw_open.op_attribute; stays the caller's.  NULL: none.
	 */
	const char *plc_attribute;
};

/* Without a configuration (NULL): the defaults. */
int pw_loop_create(
    struct pw_pool *, const struct pw_loop_conf *, struct pw_loop **);
int pw_loop_fd(const struct pw_loop *);
void pw_loop_drain(struct pw_loop *);
void pw_loop_tick(struct pw_loop *, uint64_t now_us);

/*
 * Closes the least recently used file of the cache without another reference; for a
 * process that has run out of descriptors.  False: there is none.
 */
bool pw_loop_spare(struct pw_loop *);

/*
 * Bounds what the loop's transmissions give their sockets.  With bytes > 0 they send copies, at most
 * `bytes` a call; with 0 they send pages of files again.  Pages in a socket stay in memory, and count
 * for the control group, until the client acknowledges them.
 */
void pw_loop_bound(struct pw_loop *, size_t bytes);

/*
 * Waits that have not been delivered yet: 0 before pw_loop_destroy.  What was cancelled counts
 * until its thread has come back.
 */
unsigned pw_loop_pending(const struct pw_loop *);

/* -EINVAL: there are waits, or it is being drained; it stays. */
int pw_loop_destroy(struct pw_loop **);

/*
 * ---------------------------------------------------------------- files
 */
/*
 * A root is counted: what a loop has cached of it holds it too, so a root that
 * was opened later is never taken for it.  Opening and closing may wait.
 */
int pw_root_open(const char *path, struct pw_root **);

/*
 * The same with other rules for symbolic links.  By default those are followed that are
 * relative and do not leave the root.  -EOPNOTSUPP: this system has no such lookup;
 * -EINVAL: no such flag, or more than one.
 */
enum pw_root_flags {
	PW_ROOT_NO_LINKS = 1, /* -ELOOP for every link in a path */
	/*
	 * A path or link that begins with '/' begins here, as after chroot(2), and what leads
	 * above it leads to it.
	 */
	PW_ROOT_AS_SLASH = 2,
	/* Every link leads where it leads, as for open(2): the root is only where a path begins. */
	PW_ROOT_ALL_LINKS = 4,
};

int pw_root_open_with(const char *path, unsigned flags, struct pw_root **);
void pw_root_close(struct pw_root **);

/* The st_dev of its directory, for pw_task_run. */
uint64_t pw_root_dev(const struct pw_root *);

/* Its descriptor, the root's own. */
int pw_root_fd(const struct pw_root *);

/* A directory below the root, for reading: may wait, so for tk_work only. */
int pw_root_open_dir(const struct pw_root *, const char *path);

/* The same of a regular file; -EACCES: it is none. */
int pw_root_open_file(const struct pw_root *, const char *path);

/*
 * As fstatat(2) of a name in that directory, not following a link; -EXDEV if
 * another file system is mounted there: it would be asked, and may hang.
 */
int pw_stat_name(int dirfd, const char *name, struct stat *);

/*
 * As stat(2) of a path below the root, with the links that the root allows; may wait, so for
 * tk_work only.  -EXDEV: outside the root, or on another file system, which may hang.
 */
int pw_root_stat(const struct pw_root *, const char *path, struct stat *);

/*
 * An extended attribute of a regular file of that directory, as plc_attribute; may wait, so for
 * tk_work only.  How many bytes, or -errno; -ENOENT: it has none; -EXDEV: another file system
 * is mounted there.
 */
long pw_name_attribute(
    int dirfd, const char *name, const char *attribute, void *to, size_t size);

#define PW_ATTRIBUTE_MAX 256 /* bytes of an attribute that is read */

enum pw_file_type { PW_FILE_REGULAR, PW_FILE_DIRECTORY, PW_FILE_OTHER };

struct pw_file {
	int fil_fd; /* -1 unless regular: nothing else is opened */
	enum pw_file_type fil_type;
	off_t fil_size;
	struct timespec fil_mtime;
	struct timespec fil_ctime;
	uint64_t fil_ino;
	uint64_t fil_dev;
	/* When it was last found where its path leads: that lookup's begin. */
	uint64_t fil_checked;
	/*
	 * What plc_attribute had then, if an open has asked for it; NULL: there is none, or it
	 * has more than PW_ATTRIBUTE_MAX bytes.  A change of it changes fil_ctime as well, so
	 * it is as old as the rest.
	 */
	const char *fil_attribute;
	size_t fil_attribute_len;
	/* The caller's: set it once, fil_free is called with the last reference. */
	void *fil_user;
	void (*fil_user_free)(void *);
	/* The file has changed: the next open looks its path up.  The caller may set this. */
	bool fil_stale;
};

#define PW_FRESH_US 1000000 /* after a lookup: then the next one is due */

struct pw_open {
	struct pw_waiter op_waiter;
	/*
	 * Set by the caller: the file's attribute is wanted.  It may be on the disk, so what is
	 * opened for the first time, or has changed, is opened by the pool then.
	 */
	bool op_attribute;
	struct pw_file *op_file; /* the result, one reference, the caller's */
	/* owned by the library while waiting */
	struct {
		struct pw_open *tqe_next;
		struct pw_open **tqe_prev;
	} op_link;
	void *op_others; /* that wait for the same path; NULL: not waiting */
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
 * A file that was made or moved is noticed within a second of now_us; that an open one was
 * changed, replaced or removed, in the next iteration of the loop (pw_loop_rest; without it, at
 * once).  On network file systems that takes a second as well.
 */
int pw_file_open(struct pw_loop *, struct pw_root *, const char *path,
    uint64_t now_us, struct pw_open *op);

/*
 * Nobody wants to know any more: wt_done will not be called, and the memory is the caller's
 * again when this returns.  A thread that is looking the path up goes on, so the loop's
 * waits may not be fewer.  -EINVAL: it is not waiting.
 */
int pw_open_cancel(struct pw_open *);

void pw_file_ref(struct pw_file *);
void pw_file_unref(struct pw_file **);

/*
 * Copies len bytes from off on, if they are in memory; never waits for the disk.
 *   0        all are there, and of the file as it was looked up
 *   -EAGAIN  not all are in memory, or there is no way to read them that would
 *            not wait: neither RWF_NOWAIT nor a file system in memory
 *   -ESTALE  the file has changed since it was looked up (see fil_stale)
 *   -EIO, ... as pread(2), fstat(2)
 * to may have been written to in any case.
 */
int pw_file_copy(struct pw_file *, off_t off, void *to, size_t len);

/*
 * Runs tk_work on the pool's threads for a device (fil_dev), then wt_done on the
 * loop: for directory listings and other work that reads a disk.  The memory must stay
 * until then.  -EAGAIN: the device's queue is full, or, for what has begun, there is no
 * thread.  -EINVAL: there is no tk_work, or no wt_done.
 */
struct pw_task {
	struct pw_waiter tk_waiter;
	bool
	    tk_begun; /* of a request under way: let in though the queue is full */
	int (*tk_work)(struct pw_task *); /* result in wt_error */
};

int pw_task_run(struct pw_loop *, uint64_t dev, struct pw_task *);

/*
 * ---------------------------------------------------------------- sending
 * The rules of the seam, which every send path keeps:
 * 1. Every operation runs on the loop's thread; a prefetch thread never touches
 *    a connection.  (The path pool breaks it, for that is what it is: its
 *    threads send on the non-blocking socket and do nothing else with it.)
 * 2. PW_SEND_PENDING means exactly one later completion, delivered by
 *    pw_loop_drain, never from inside pw_send_step, and also after
 *    pw_send_cancel.
 * 3. While pending, references are held; cancelling may shut the socket down
 *    but closes nothing, unless pw_send_take_back gave it back.
 * 4. Byte accounting is one pure function (lib/send/account.h), used by all paths.
 * 5. Zero bytes before the end of the range means the file shrank, and another size or time
 *    of modification after its last byte was read that it was written to: PW_SEND_ERROR with
 *    -ESTALE, before the last byte is sent; the connection is closed, never padded.
 * 6. Queues are bounded.  A new transmission that finds its device's queue
 *    full is refused (-EAGAIN, counted); one that has begun is always let in:
 *    it is bounded by the number of connections.
 */
enum pw_send_status {
	PW_SEND_DONE, /* everything was handed to the kernel, or the sink */
	PW_SEND_WANT_WRITE, /* socket full: call again when it is writable */
	PW_SEND_AGAIN,	    /* a chunk was sent; continue after others */
	PW_SEND_PENDING,    /* snd_done will be called: step again then */
	PW_SEND_ERROR,	    /* snd_error; the connection cannot go on */
};

/* Thesis 4.4.1: what happens to the pages that this transmission brought in. */
enum pw_cache {
	PW_CACHE_KEEP, /* they stay, as the kernel sees fit */
	PW_CACHE_DROP, /* they go once the client has acknowledged them */
	PW_CACHE_AUTO, /* stay if the file is popular, else go: admission.h */
};

/*
 * snd_readahead, as in FreeBSD's SF_FLAGS(readahead, flags): missing data is
 * fetched in windows of this size, the next while the last is being sent.  PW_READAHEAD_AUTO:
 * 64 KiB to 2 MiB, by the speed of the client and of the device, and by the memory that is
 * free (window_size.h).  PW_READAHEAD_NONE: no more than is sent at once, and nothing ahead.
 */
#define PW_READAHEAD_AUTO 0
#define PW_READAHEAD_NONE UINT64_MAX

/*
 * The destination of a transmission other than a plain socket: TLS in user space, for
 * example.  It gets memory, no range of a file: resident data, by the query of
 * `nodiskio', is copied for it on the loop without waiting; missing data is fetched
 * first.  No pool thread uses it.  So the paths differ in the reading thread:
 * `blocking' and `copy' read on the loop whether it is resident or not, `aio' and
 * `pool' never.  Loop's thread.
 *
 * One that sends ranges of files itself, by sendfile(2) or as it likes, says so by take_range.
 */
struct pw_sink;

struct pw_sink_ops {
	/*
	 * Takes some of len > 0 bytes; more: others follow at once.  0 and how many, at least one;
	 * -EAGAIN: none, it is full, and pw_send_step returns PW_SEND_WANT_WRITE; any
	 * other -errno: the transmission fails with it.
	 */
	int (*take)(struct pw_sink *, const char *, size_t len, bool more,
	    size_t *taken);

	/*
	 * Bytes of what it took that the client has not acknowledged: what PW_CACHE_DROP does not
	 * give back yet; one that copies may say 0.  -1: it is not known; then nothing is given back
	 * before the transmission ends.
	 */
	long (*unacked)(struct pw_sink *);

	/*
	 * May be NULL.  Takes some of a range of snd_file that is resident now: how many bytes
	 * have left the file.  0, -EAGAIN (full) or another -errno as from take, but -EAGAIN too
	 * may come with bytes.  What it has seen and not taken it may keep for later, in a queue of
	 * its own: before that is sent it calls pw_send_step, and in take_range, the next one, all of
	 * it is resident again.  That it is full it says only of what it has tried in this call: the
	 * event may have come while the transmission was pending, and there is no other.  Where
	 * nothing can be known of a file, or what was fetched is evicted again and again, take is
	 * called, with bytes that it may have seen here; and with the last 16 KiB, which it has not.
	 */
	int (*take_range)(
	    struct pw_sink *, off_t, size_t len, bool more, size_t *taken);

	/*
	 * May be NULL.  Memory into which the next bytes of a file are read: take is called with them
	 * there, and need not copy them.  *room: how many fit; 0: it is full.
	 */
	char *(*room)(struct pw_sink *, size_t *room);
};

struct pw_sink {
	const struct pw_sink_ops *sk_ops;
};

/*
 * Zeroed, it has the defaults but for those that have to be set.  Options of later versions
 * begin where the room begins now, so the whole of it has to be zeroed.
 */
#define PW_SEND_ROOM 240 /* bytes */

struct pw_send {
	/* set by the caller before pw_send_start; path, loop and snd_done have to be */
	const struct pw_send_path *snd_path;
	struct pw_loop *snd_loop;
	int snd_sock; /* non-blocking; stays the caller's */
	struct pw_sink
	    *snd_sink;	     /* in its place, or NULL; stays the caller's */
	bool snd_more;	     /* another transmission follows at once */
	bool snd_begun;	     /* one of the same answer went before */
	const char *snd_mem; /* sent first; must stay until it is */
	size_t snd_mem_len;
	struct pw_file *snd_file; /* may be NULL; a reference is taken */
	off_t snd_off;		  /* next byte of the file */
	off_t snd_len;		  /* bytes of the file still to send */
	uint64_t snd_readahead;	  /* window to fetch, bytes; see above */
	enum pw_cache snd_cache;
	/* Bytes/s that the client takes: what the last one has left there; 0: ? */
	uint64_t snd_rate;
	/* Bytes/s that the caller will send at, 0: as fast as the client takes them: for windows. */
	uint64_t snd_pace;
	/* Bytes that the next step may send, and a head besides, 0: all; set it before each. */
	uint64_t snd_limit;
	void (*snd_done)(
	    struct pw_send *); /* ends PW_SEND_PENDING: step again */

	/* readable by the caller */
	uint64_t
	    snd_sent; /* bytes handed to the kernel or sink, memory included */
	uint64_t snd_wait; /* microseconds spent pending */
	bool snd_pending;  /* snd_done is still to come: the memory must stay */
	int snd_error;	   /* -errno after PW_SEND_ERROR */

	union {
		uint64_t pr_align;
		char pr_room[PW_SEND_ROOM];
	} snd_private; /* the library's */
};

/* By name; NULL if there is none. */
const struct pw_send_path *pw_send_path(const char *name);

/* The default of this system: native where there is such a thing, else nodiskio. */
const struct pw_send_path *pw_send_default(void);

/* The names; the list ends with NULL and is constant. */
const char *const *pw_send_path_names(void);

/* 0, or -errno and why this host cannot use it (a constant string). */
int pw_send_probe(const struct pw_send_path *, const char **why);

/*
 * -EINVAL, and so says the first step: there is no path, loop or snd_done, the sink has no
 * functions, the file is not a regular one or of another loop, or the range begins or ends
 * before 0.  Of one that is pending nothing is changed.
 */
int pw_send_start(struct pw_send *);

/* While it is pending: PW_SEND_ERROR, -EINVAL; it has failed then, but snd_done is still to come. */
enum pw_send_status pw_send_step(struct pw_send *);

/*
 * The connection is going away.  If snd_pending, snd_done is called all the
 * same, and the memory and the socket must stay until then.
 */
void pw_send_cancel(struct pw_send *);

/*
 * Takes the socket of a pending transmission back, for an answer of another kind or to
 * close it; pw_send_cancel has to follow.  False if a pool thread is sending on it (path
 * pool): then it must stay until snd_done.
 */
bool pw_send_take_back(struct pw_send *);

/*
 * Pending for long?  True if nothing that waited for its device has come to an end
 * since this was last asked, or since the wait began: it is not only busy.  False if it is
 * not pending.
 */
bool pw_send_stuck(struct pw_send *);

/*
 * Gives back what a transmission has of the budget for data that was fetched and not sent.  Call when
 * its sink will take nothing for long: others would wait for that part.  Not while it is pending.
 */
void pw_send_yield(struct pw_send *);

/*
 * Bytes that were handed to the kernel for a socket, and that the other end has not
 * acknowledged; 0 if that cannot be known.
 */
uint64_t pw_unacked(int sock);

/* All that is in the socket has yet to be read from a disk (the path native). */
bool pw_awaits_disk(int sock);

/* Gives the file back.  While it is pending that ends the program. */
void pw_send_finish(struct pw_send *);

/*
 * ---------------------------------------------------------------- what is counted
 * Since the start, for an operator.  Any thread; the figures of one call need not
 * be of one moment.
 */
#define PW_HISTOGRAM 26

/*
 * Times: bucket i has those of at most 2^i microseconds that are in none before,
 * and the last one all that are longer.
 */
struct pw_histogram {
	uint64_t hg_count[PW_HISTOGRAM];
	uint64_t hg_sum; /* microseconds */
};

/* One thread at a time. */
void pw_histogram_add(struct pw_histogram *, uint64_t us);
void pw_histogram_copy(struct pw_histogram *to, const struct pw_histogram *);

struct pw_loop_stats {
	uint64_t ls_resident; /* chunks in memory when asked for */
	uint64_t ls_missed;   /* windows that had to be waited for */
	uint64_t ls_ahead;    /* windows fetched while the last one was sent */
	uint64_t ls_evicted;  /* gone from memory between fetch and sending */
	uint64_t ls_held;     /* waits for room in the budget */
};

void pw_loop_stats(const struct pw_loop *, struct pw_loop_stats *);

/*
 * How often and how long the loop's thread slept outside its wait for events, since the
 * start: it should not.  Counted if the program marks the begin and end of each
 * iteration: awake after each wait, with the first callback, and again when the program
 * changes to other work; rest before the next wait.  Both on the loop's thread, which
 * has one loop then.
 */
void pw_loop_awake(struct pw_loop *, uint64_t now_us);
void pw_loop_rest(struct pw_loop *, uint64_t now_us);

#define PW_SLEEPS 24 /* calls at most */

struct pw_sleep {
	const char *sl_call; /* "sendfile", ...; a constant string */
	uint64_t sl_times;   /* exact, but for what lasted less than 50 us */
	uint64_t sl_us;	     /* what these calls took, computing included */
};

/*
 * For each call that the library makes, in the same order each time; returns how many. The name
 * may also be "page fault" (one that read a disk, in any call), "lock", or "elsewhere".
 */
size_t pw_loop_sleeps(const struct pw_loop *, struct pw_sleep list[PW_SLEEPS]);

struct pw_device_stats {
	uint64_t ds_dev; /* st_dev; 0: all that found no place in the table */
	const char *ds_queue;  /* "files", "tasks", "mounts": one each */
	const char *ds_fsname; /* NULL: not known yet */
	const char *ds_mount;  /* FreeBSD: where it is; else NULL */
	unsigned ds_threads;
	unsigned ds_busy;
	unsigned ds_queued;
	uint64_t ds_jobs;  /* that have ended */
	uint64_t ds_bytes; /* that were fetched */
	uint64_t ds_refused;
	struct pw_histogram ds_wait; /* from the queue to the end */
};

/* Fills in as many as max; returns how many. */
size_t pw_pool_devices(struct pw_pool *, struct pw_device_stats *, size_t max);

struct pw_pool_stats {
	uint64_t ps_refused; /* as pw_pool_refused */
	uint64_t ps_dropped; /* bytes to be given back (PW_CACHE_DROP, _AUTO) */
	uint64_t ps_unsent;  /* bytes being fetched or to be sent, now */
	uint64_t ps_unsent_max; /* the budget for them */
};

void pw_pool_stats(struct pw_pool *, struct pw_pool_stats *);

/*
 * Returns the bytes of memory that are kept for windows of files until they are sent: pages of the
 * page cache that are locked, and copies.  An eighth of memory at most, and of it RLIMIT_MEMLOCK for
 * what is locked.  Any thread.
 */
uint64_t pw_pool_pinned(struct pw_pool *);

#ifdef __cplusplus
}
#endif

#endif
