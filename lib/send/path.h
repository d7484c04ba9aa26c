/*
 * path: the interface of the send paths, and functions that they share; for lib/send/ only.
 */
#ifndef LIB_SEND_PATH_H
#define LIB_SEND_PATH_H

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/pagewise.h"
#include "lib/send/account.h"
#include "lib/send/send_private.h"

/*
 * Least and most bytes of a chunk, which one step sends in 40 to 300 us of the loop's time.  A socket seldom
 * has space for more than 2 MiB.  SEND_CHUNK_LESS is the most if bytes are copied, which takes longer,
 * and if pages of the chunk may be evicted meanwhile.
 */
#define SEND_CHUNK	((size_t)128 << 10)
#define SEND_CHUNK_LESS ((size_t)512 << 10)
#define SEND_CHUNK_MAX	((size_t)2 << 20)
/* Chunk if sockets count for the memory limit: the 16 pages that sendfile(2) references at once, bytes. */
#define SEND_CHUNK_HELD ((size_t)64 << 10)
/*
 * Size from which memory is sent alone, bytes.  Less memory is sent together with a chunk of the
 * file.
 */
#define SEND_HEAD	((size_t)16 << 10)
/* Maximum bytes of a range, or of its rest, that are copied in one call (copied.c). */
#define SEND_TAIL	((size_t)16 << 10)
/* Bytes at the end of a longer range that are copied; one byte suffices for the check of the version. */
#define SEND_LAST	((size_t)1)

struct pw_send_path {
	const char *path_name;
	/*
	 * Returns 0 if the path works on this system, else -errno, and sets *why.  NULL if the path
	 * works everywhere.
	 */
	int (*path_probe)(const char **why);
	enum pw_send_status (*path_step)(struct pw_send *);
	/* Called at the end, when nothing is pending.  May be NULL. */
	void (*path_finish)(struct pw_send *);
	/*
	 * True if the path itself fetches windows; pw_send_start then switches kernel read-ahead
	 * off.
	 */
	bool path_prefetches;
	/* True if the path may send copies in place of pages (enum fetch_how). */
	bool path_copies;
	/*
	 * True if the path drops no pages, since it does not know which pages the kernel fetched.
	 */
	bool path_keeps;
	/* True if all windows of the path wait in one queue, as in nginx. */
	bool path_queues;
	/* True if the path's call sends snd_mem together with bytes of the file. */
	bool path_takes_memory;
	/*
	 * True if the path reads into a buffer, from which its call sends; then copied.c sends no
	 * tail.
	 */
	bool path_reads;
};

extern const struct pw_send_path send_aio;
extern const struct pw_send_path send_blocking;
extern const struct pw_send_path send_copy;
extern const struct pw_send_path send_mlock;
extern const struct pw_send_path send_native;
extern const struct pw_send_path send_nodiskio;
extern const struct pw_send_path send_pool;
extern const struct pw_send_path send_ring;
extern const struct pw_send_path send_splice;
extern const struct pw_send_path send_uring;

/*
 * Sends the rest of snd_mem, and then bytes of the file by the function `call`, until ss_chunk bytes
 * (and a head of less than SEND_HEAD bytes) or snd_limit bytes are sent, or file_end is reached.
 * Common to all paths.  `call` sends up to `len` bytes at snd_off, sets *sent, and returns 0 or -errno.
 */
typedef int (*send_call_f)(struct pw_send *, size_t len, size_t *sent);
enum pw_send_status send_window(struct pw_send *, off_t file_end, send_call_f);

/* Converts the outcome of a call to a result of path_step. */
enum pw_send_status send_status(enum account_next);

/*
 * Sends the next chunk by `call` if the chunk is resident.  Otherwise calls `fetch` for its window,
 * and the transmission is pending until the window arrives.  `fetch` completes ss_waiter when [off,
 * off + len) was read, or returns -errno.  Files whose residency cannot be checked are sent from copies.
 */
typedef int (*send_fetch_f)(struct pw_send *, off_t off, size_t len);
enum pw_send_status send_prefetched(
    struct pw_send *, send_fetch_f, send_call_f);

/*
 * send_room_take takes budget (budget.h) for a window of `len` bytes.  If the window does not fit,
 * send_room_take returns -EAGAIN if `done` is NULL; otherwise it returns -EINPROGRESS, and the
 * transmission is pending until the budget is taken, when the function `done` is called.
 * send_room_settle returns the budget for the sent bytes, or all of the transmission's budget if
 * the socket is full (`full`) and the loop bounded.
 */
int send_room_take(
    struct pw_send *, size_t len, void (*done)(struct pw_waiter *));
void send_room_settle(struct pw_send *, bool full);

/*
 * send_window_choose sets ss_window, ss_lead and ss_how by the client's rate, or for a new client by the
 * median rate of other clients.  send_rate_measure updates snd_rate if 256 KiB were acknowledged, or 250 ms
 * have passed, since the last update.
 */
void send_window_choose(struct pw_send *);
void send_rate_measure(struct pw_send *);

/*
 * Returns true if a residency check of the next window would read single pages, so that the window
 * could no longer be read as one folio (residency_is_by_pieces).  Then a window behind a pinned
 * window is fetched without a check: the pinned one was not resident, so the next one probably is
 * not resident either.
 */
bool send_check_spoils(const struct pw_send *);

/*
 * send_ahead fetches the next windows if that is due; call it after a step.  send_ahead_comes returns
 * true if the window of snd_off is in flight.  send_ahead_wait makes the transmission pending until that
 * window arrives, or returns false if none is in flight.  send_ahead_forget detaches the fetches from the
 * transmission; call it when the transmission ends.  send_ahead_leave lets fetches that no other transmission
 * waits for not begin; call it when the transmission is cancelled.
 */
void send_ahead(struct pw_send *);
bool send_ahead_comes(const struct pw_send *);
bool send_ahead_wait(struct pw_send *);
void send_ahead_forget(struct pw_send *);
void send_ahead_leave(struct pw_send *);

/*
 * Prefetches the index at the end of an MP4 file (index_ahead.c).  Call when the window of the file's first
 * byte has arrived.  The prefetch may outlive the transmission.
 */
void send_index_ahead(struct pw_send *);

/* Releases the transmission's pin (pins.h). */
static inline void
send_unpin(struct pw_send *s)
{
	pins_release(pool_pins(s->snd_loop->lp_pool), &send_priv(s)->ss_pin);
}

/*
 * send_fetch fetches the range as tier_fetch does if send_takes_tier returns true, and as
 * pool_fetch does otherwise; send_fetch_room returns the budget that the fetch takes.  send_takes_tier may
 * call admission_judge, as send_drops does.
 */
int send_fetch(
    struct pw_send *, off_t off, size_t len, enum admit, struct pw_waiter *);
size_t send_fetch_room(struct pw_send *, off_t off, size_t len);
bool send_takes_tier(struct pw_send *);

/* Returns the number of the client, or 0 if it is unknown: see wt_client. */
unsigned send_client(const struct pw_send *);

/* Calls send_fetch for ss_waiter.  Is a send_fetch_f. */
int send_fetch_by_pool(struct pw_send *, off_t off, size_t len);

/*
 * Has a disk thread read the indirect blocks of the byte at `off` (FETCH_MAP), and completes
 * ss_waiter.
 */
int send_map_by_pool(struct pw_send *, off_t off);

/*
 * Begin and end a wait.  In between, the transmission is pending, and a completion is in flight.  The
 * completion calls the function `done` with ss_waiter; that function calls send_pending_end and, last,
 * snd_done.  If no completion will arrive, call send_pending_fail instead of send_pending_end.
 */
void send_pending_begin(struct pw_send *, void (*done)(struct pw_waiter *));
void send_pending_end(struct pw_send *, int error);
enum pw_send_status send_pending_fail(struct pw_send *, int error);
struct pw_send *send_of_waiter(struct pw_waiter *);

/*
 * Has a disk thread of the file's device call the function `run`, which may wait, and completes ss_waiter
 * with its result.  Call after send_pending_begin.  A JOB_LONG counts as JOB_NEW before the
 * transmission's first byte, except with path_queues.  Until send_pending_end the loop changes only
 * snd_error of the transmission.
 */
int send_on_pool(struct pw_send *, enum job_kind, int (*run)(struct pw_send *));

/*
 * Holes of sparse files (holes.c).  send_hole_may_begin returns true if a disk thread must look for
 * a hole before the byte at `off` is read; send_hole_find makes the transmission pending until a
 * disk thread has looked for a hole at snd_off.  send_hole_is_next returns true if the next byte is
 * in a hole that was found, and the file is unchanged; send_hole then sends the next chunk.
 * send_hole_end returns the end of that hole, or snd_off.
 */
bool send_hole_may_begin(const struct pw_send *, off_t off);
enum pw_send_status send_hole_find(struct pw_send *);
bool send_hole_is_next(struct pw_send *);
enum pw_send_status send_hole(struct pw_send *);

static inline off_t
send_hole_end(const struct pw_send *s)
{
	return send_priv(s)->ss_hole && s->snd_off < send_priv(s)->ss_extent
		   ? send_priv(s)->ss_extent
		   : s->snd_off;
}

/*
 * Decides whether pages are dropped.  With PW_CACHE_AUTO, and with PW_CACHE_DROP if the pool has a tier,
 * leaves the decision to the first send_drops.  Call after snd_file is set.
 */
void send_drop_start(struct pw_send *);

/*
 * Returns true if fetched pages are dropped.  With PW_CACHE_AUTO the first call calls admission_judge,
 * which acquires a lock; so the paths nodiskio, uring and splice call send_drops only when they fetch.
 */
bool send_drops(struct pw_send *);

/* Returns how a window of WINDOW_MOST bytes is read.  Calls send_drops. */
enum fetch_how send_fetch_how(struct pw_send *);

/*
 * Note which pages a fetch reads, so that these are dropped if send_drops is true.  Call them before and
 * after a fetch, in the paths that fetch without a residency check.  Resident pages before the first missing
 * page are not dropped.
 */
void send_fetch_begin(struct pw_send *, off_t end);
void send_fetch_end(struct pw_send *, off_t off, off_t end);

/*
 * Notes a range that was fetched for this transmission.  If send_drops is true, the range is dropped once
 * the client has acknowledged it.
 */
void send_brought_in(struct pw_send *, off_t off, off_t end);

/*
 * send_drop_acknowledged drops the fetched pages that the client has acknowledged.  send_drop_rest
 * drops the whole stretch that was fetched last, after a delay.
 */
void send_drop_acknowledged(struct pw_send *);
void send_drop_rest(struct pw_send *);

/*
 * Sends by sendfile(2), as a send_call_f.  Copies the tail, and the whole file if sendfile(2) refuses the
 * file.
 */
int send_by_sendfile(struct pw_send *, size_t len, size_t *sent);

/*
 * Sends from the copy of ss_pin, which has the next `len` bytes, as a send_call_f.  Calls file_check before
 * it sends the last byte.
 */
int send_from_copy(struct pw_send *, size_t len, size_t *sent);

/*
 * send_from_mapping is a send_call_f that sends from the mapping of ss_pin (pins_mapping), which
 * has the next len bytes.  send_from_mapping copies the tail, as send_by_sendfile does.
 * send_can_map returns true if the transmission may use send_from_mapping, because its path may
 * send copies and its destination is a socket.
 */
int send_from_mapping(struct pw_send *, size_t len, size_t *sent);
bool send_can_map(const struct pw_send *);

/*
 * Returns true if the transmission sends marked mappings: its path may send copies, and its sink, if it
 * has one, accepts memory.
 */
bool send_can_read_marked(const struct pw_send *);

/*
 * Reads the next bytes of the file into memory, calls file_check after the last one, and sends the bytes
 * behind snd_mem, as a send_call_f.  Returns -EBUSY with ss_result -EAGAIN if a page was evicted.
 */
int send_copied(struct pw_send *, size_t len, size_t *sent);

/* Returns how many of the next `len` bytes may be sent as pages of the file; the rest is copied. */
size_t send_before_tail(const struct pw_send *, size_t len);

/*
 * Returns file_check() if `len` bytes at snd_off are the last ones, else 0.  Call after these bytes
 * were read.
 */
int send_check(const struct pw_send *, size_t len);

/*
 * Returns true if `error`, the result of a call, means that sendfile(2) or splice(2) does not support
 * files of this file system.  Then calls device_refuses.  Any thread.
 */
bool send_is_refused(const struct pw_send *, int error);

/*
 * Returns the end of the window that has the byte at `from`, at most the end of the range, ss_extent or
 * ss_reach.
 */
off_t send_window_end(const struct pw_send *, off_t from);

/* Returns the end of the next chunk, which lies in one window. */
off_t send_chunk_end(const struct pw_send *);

/* Returns the most bytes that a call may send (pw_loop_bound), or 0 without a bound.  Any thread. */
static inline size_t
send_bound(const struct pw_send *s)
{
	return atomic_load_explicit(
	    &s->snd_loop->lp_bound, memory_order_relaxed);
}

/* Returns how many bytes at snd_off may be fetched: see pw_send_reach. */
static inline uint64_t
send_reach(const struct pw_send *s)
{
	return s->snd_off < send_priv(s)->ss_reach
		   ? (uint64_t)(send_priv(s)->ss_reach - s->snd_off)
		   : 0;
}

/* Returns `bytes`, or snd_limit if snd_limit is set and less. */
uint64_t send_limited(const struct pw_send *, uint64_t bytes);

#endif
