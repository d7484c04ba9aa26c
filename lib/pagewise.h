/*
 * libpagewise: asynchronous sendfile for any event loop.
 *
 * The library sends file data at once, without a copy, if the data is in memory.  Otherwise
 * a disk thread fetches the missing window, and then the library notifies the caller.  So the
 * thread that runs the event loop never waits for a disk.  The library contains no HTTP and
 * has no global state.  The program must ignore SIGPIPE.
 * libpagewise(3) describes the life cycle and the rules for threads; examples are in lib/examples/.
 * Each section of this header is also a manual page: `make man'.
 *
 *   struct pw_pool       disk threads, which wait for disks; shared by all loops
 *   struct pw_loop       one per event-loop thread: completions, open files
 *   struct pw_root       a directory; by default nothing outside it is opened
 *   struct pw_file       an open file of one loop, with a reference count
 *   struct pw_send       one transmission: memory, then a range of a file
 *   struct pw_send_path  a way of sending, chosen by name
 *
 * Functions return 0 or -errno unless their comment says otherwise.  Sizes and offsets are bytes,
 * times are microseconds of CLOCK_MONOTONIC.
 *
 * A call that breaks the rules below fails with -EINVAL, and changes nothing.  If continuing would
 * corrupt memory, the library prints a sentence on stderr that names the function and the rule, and
 * aborts the program (abort(3)).  The library prints nothing else.
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

#define PW_VERSION "0.3.0"

#ifdef __cplusplus
extern "C" {
#endif

struct pw_pool;
struct pw_loop;
struct pw_send;
struct pw_root;
struct pw_send_path;

/*
 * -------- pw_pool(3): the process, and its threads that wait for disks
 * Every device (st_dev) has queues of its own, for files, tasks and mounts, and every queue has threads
 * of its own, which start when they are first needed.  So a device that hangs blocks only its own jobs.
 * A program needs one pool, and creates it before its loops.
 */

/*
 * Returns PW_VERSION of the running library, a constant string.  The library may be newer than this
 * header.
 */
const char *pw_version(void);

/*
 * Locks the program and its libraries in memory (some 4 MiB), and enlarges the descriptor table to
 * 65536 descriptors, or to RLIMIT_NOFILE if that is less.  Otherwise a loop may wait for the disk
 * when it needs a page of the program, and for other processors while the descriptor table of a
 * process with threads grows.  With glibc, pw_process_prepare also makes later threads map their
 * heaps in one piece.  Call before the first thread is started and after RLIMIT_NOFILE is set.
 * Returns 0, or -errno if some pages of the program could only be read into memory, not locked; the
 * kernel may then evict these pages.  RLIMIT_MEMLOCK causes -ENOMEM and -EPERM.
 */
int pw_process_prepare(void);

/* Configuration of a pool. */
struct pw_pool_conf {
	/*
	 * threads per queue, plus up to 2 for lookups; tasks with wt_client have a quarter; 0 means 16
	 */
	unsigned ppc_threads;
	unsigned ppc_queue; /* maximum jobs in a queue; 0 means 4096 */
};

/* Creates a pool.  The configuration may be NULL.  Returns 0 or -errno. */
int pw_pool_create(const struct pw_pool_conf *, struct pw_pool **);

/*
 * Starts the thread that starts the pool's disk threads, so that no loop does: the start of a thread may wait
 * for other threads.  Disk threads inherit the caller's capabilities and Landlock rules, so call after these
 * have changed and before the first request.  Otherwise the loop of the first job starts this thread.
 * While no disk thread can be started, the jobs of a device without one wait.  Returns 0 or -errno.
 */
int pw_pool_start(struct pw_pool *);

/*
 * Lets the pools of several processes share disks: a client that requests much from one process then
 * delays the clients of the others no more than those of its own.  `memory` is PW_POOL_SHARED bytes,
 * zeroed at first, that all of them map (MAP_SHARED), and stays the caller's until the pool is destroyed.
 * Numbers of processes begin at 0; a process that replaces another may have its number.  Call before
 * the first loop is created.
 */
#define PW_POOL_SHARED 65536
void pw_pool_share(struct pw_pool *, void *memory, unsigned process);

/*
 * Destroys a pool.  Destroy its loops first.  Waits up to timeout_us for running jobs.  Returns 0.
 * Returns -EINVAL, and changes nothing, if a loop still exists and no job is queued or running.
 * Returns -EBUSY if threads still wait for a disk, or such a wait kept a loop from being destroyed.
 * Then the threads stay, with all memory that they use.
 */
int pw_pool_destroy(struct pw_pool **, uint64_t timeout_us);

/*
 * Returns the number of jobs that were refused because a queue was full or no thread could be
 * started.  Any thread may call it.
 */
uint64_t pw_pool_refused(const struct pw_pool *);

/*
 * -------- pw_loop(3): the library's end of an event loop, and waits
 * A program creates a loop in each thread that runs an event loop.  The event loop watches pw_loop_fd
 * for reading; when it is readable, the program calls pw_loop_drain, which calls the callbacks of waits
 * that have ended, for about 300 us.  If more have ended, pw_loop_fd becomes readable again.
 *
 * A loop, its files, opens, fetches and transmissions belong to its thread, which must make all calls.
 * Any thread may call pw_wait_end and pw_now.  A callback may call every function except pw_loop_drain
 * and pw_loop_destroy.
 */

/* Returns the present time, for parameters named now_us.  Any thread may call it. */
uint64_t pw_now(void);

/*
 * Every wait ends with exactly one call of wt_done, unless pw_open_cancel cancels the wait.
 * pw_loop_drain calls wt_done on the loop's thread; the function that returned -EINPROGRESS or
 * PW_SEND_PENDING never calls it.  The caller owns the struct, which must stay valid until wt_done
 * is called.
 */
struct pw_waiter {
	void (*wt_done)(struct pw_waiter *);
	struct pw_loop *wt_loop;   /* owned by the library while waiting */
	struct pw_waiter *wt_next; /* owned by the library while waiting */
	int wt_error;		   /* 0 or -errno, valid in wt_done */
	/*
	 * for pw_file_open, pw_fetch and pw_task_run, set by the caller: number of the client, as plc_client
	 * returns it, or 0
	 */
	unsigned wt_client;
};

/*
 * Begin and end a wait of the caller.  Such a wait lets another thread pass the result `error` to
 * the loop.  Set wt_done first.  Call pw_wait_begin on the loop's thread, and then pw_wait_end
 * once, on any thread.  pw_wait_begin aborts the program if wt_done is not set, and pw_wait_end if
 * the wait was not begun.
 */
void pw_wait_begin(struct pw_loop *, struct pw_waiter *);
void pw_wait_end(struct pw_waiter *, int error);

/* Configuration of a loop. */
struct pw_loop_conf {
	unsigned plc_open_files; /* maximum files in the cache; 0 means 1024 */
	/*
	 * Callback for log messages about a device, or NULL.  The first message reports how
	 * residency is checked on the device; later ones may report that sendfile(2) cannot send
	 * its files, or that the disk is as slow as a single one that rotates.  The library calls it on the loop's thread.
	 */
	void (*plc_device)(void *arg, const char *message);
	void *plc_arg;
	/*
	 * Name of an extended attribute in the namespace `user' ("user.NAME" on Linux), for
	 * pw_open.op_attribute, or NULL.  The caller owns the string, which must outlive the loop.
	 */
	const char *plc_attribute;
	/*
	 * Callback that returns the number of a transmission's client, or 0 if the client is unknown.
	 * May be NULL.  Clients share the time of a device's threads equally, and so do the connections
	 * of a client: the upper 20 bits of the number tell clients apart, such as by a hash of their
	 * addresses, the lower 12 bits the connections.  The library calls it on the loop's thread
	 * before it reads a disk, except after pw_send_cancel.
	 */
	unsigned (*plc_client)(void *arg, const struct pw_send *);
};

/* Creates a loop.  The configuration may be NULL.  Returns 0, -EINVAL without a pool, or -errno. */
int pw_loop_create(
    struct pw_pool *, const struct pw_loop_conf *, struct pw_loop **);

/*
 * Call pw_loop_drain when pw_loop_fd is readable, and pw_loop_tick about every 250 ms: the tick closes
 * unused files, drops pages that were sent with PW_CACHE_DROP, and resumes transmissions that wait for
 * memory.
 */
int pw_loop_fd(const struct pw_loop *);
void pw_loop_drain(struct pw_loop *);
void pw_loop_tick(struct pw_loop *, uint64_t now_us);

/*
 * Closes the least recently used file that only the cache refers to.  Returns false if there is no
 * such file.  Call when the process has no free descriptor.
 */
bool pw_loop_spare(struct pw_loop *);

/*
 * Limits the bytes that a transmission passes to its socket per call.  If `bytes` is above 0, the
 * loop's transmissions send copies, at most `bytes` per call; if `bytes` is 0, they send pages of
 * files again.  Pages in a socket stay in memory, and count for the control group, until the client
 * acknowledges them.
 */
void pw_loop_bound(struct pw_loop *, size_t bytes);

/*
 * Returns the number of waits that are not delivered yet; pw_loop_destroy requires that it is 0.
 * A cancelled wait counts until its disk thread has finished.
 */
unsigned pw_loop_pending(const struct pw_loop *);

/*
 * Destroys a loop.  Returns 0.  Returns -EINVAL, and keeps the loop, if a wait is not delivered
 * yet or pw_loop_drain is running.
 */
int pw_loop_destroy(struct pw_loop **);

/*
 * -------- pw_root(3): directories below which files are opened
 * Any thread may use a root.  Close a root when no loop will use it for another open.
 */

/*
 * Opens a directory as a root of paths.  A root has a reference count, and the files that a loop caches
 * hold references, too.  Opening or closing a root may wait for the disk.  Returns 0 or -errno.
 */
int pw_root_open(const char *path, struct pw_root **);

/*
 * Opens a root as pw_root_open does, but with the rule for symbolic links that `flags` selects: 0,
 * or one of the values below.  With 0, the library follows only links that are relative and do not
 * leave the root.  Returns -EOPNOTSUPP if this system lacks the rule, or -EINVAL if `flags` is
 * unknown or has several values.
 */
enum pw_root_flags {
	PW_ROOT_NO_LINKS = 1, /* a path with a link fails with -ELOOP */
	/*
	 * Paths and links that begin with '/' begin at the root, as after chroot(2), and ".." of the root
	 * is the root.
	 */
	PW_ROOT_AS_SLASH = 2,
	/* The library follows all links, as open(2) does, even out of the root. */
	PW_ROOT_ALL_LINKS = 4,
};

int pw_root_open_with(const char *path, unsigned flags, struct pw_root **);
void pw_root_close(struct pw_root **);

/* Returns the st_dev of the root, for pw_task_run. */
uint64_t pw_root_dev(const struct pw_root *);

/* Returns the root's descriptor, which the root owns. */
int pw_root_fd(const struct pw_root *);

/*
 * Opens a directory below the root for reading.  Returns a descriptor, which the caller closes, or
 * -errno.  May wait; call in tk_work only.
 */
int pw_root_open_dir(const struct pw_root *, const char *path);

/*
 * Opens a regular file below the root for reading.  Returns a descriptor, which the caller closes,
 * or -errno (-EACCES for other types).  May wait; call in tk_work only.
 */
int pw_root_open_file(const struct pw_root *, const char *path);

/*
 * Fills in the struct as fstatat(2) does for `name` in the directory, without following a link.
 * Returns -EXDEV for a mount point, since the other file system may hang.  May wait; call in tk_work
 * only.
 */
int pw_stat_name(int dirfd, const char *name, struct stat *);

/*
 * Fills in the struct as stat(2) does for a path below the root, with the root's rule for links.
 * Returns -EXDEV for paths outside the root, or on another file system, which may hang.  May wait;
 * call in tk_work only.
 */
int pw_root_stat(const struct pw_root *, const char *path, struct stat *);

/*
 * Reads an extended attribute, named as in plc_attribute, of the regular file `name` in the
 * directory.  Returns the length of its value, or -errno: -ENOENT if the file has no such
 * attribute, -EXDEV for a mount point.  May wait; call in tk_work only.
 */
long pw_name_attribute(
    int dirfd, const char *name, const char *attribute, void *to, size_t size);

/*
 * -------- pw_file(3): open files of a loop
 * A program opens files by path (pw_file_open), or makes them from descriptors of its own
 * (pw_file_from_fd), and releases its references to files by pw_file_unref.  The loop caches files
 * that were opened by path, for 10 s after their last use.  The caller reads the members of the
 * struct to make a response, and may set fil_stale and fil_user.  Call all functions on the loop's
 * thread.
 */
#define PW_ATTRIBUTE_MAX 256 /* maximum length of an attribute's value */

enum pw_file_type { PW_FILE_REGULAR, PW_FILE_DIRECTORY, PW_FILE_OTHER };

struct pw_file {
	int fil_fd; /* descriptor, or -1 if the file is not regular */
	enum pw_file_type fil_type;
	off_t fil_size;
	struct timespec fil_mtime;
	struct timespec fil_ctime;
	uint64_t fil_ino;
	uint64_t fil_dev;
	/* Start time of the last lookup that found the file, microseconds. */
	uint64_t fil_checked;
	/*
	 * Value of the attribute plc_attribute, if an open requested it.  NULL if the file has no
	 * such attribute, or if the value exceeds PW_ATTRIBUTE_MAX bytes.  A change of the
	 * attribute changes fil_ctime too.
	 */
	const char *fil_attribute;
	size_t fil_attribute_len;
	/*
	 * Data of the caller, and a function that frees the data.  The library calls fil_user_free
	 * when the last reference is released.  The caller sets both once.
	 */
	void *fil_user;
	void (*fil_user_free)(void *);
	/*
	 * True if the file has changed; the next open then looks its path up again.  The caller may
	 * set fil_stale.
	 */
	bool fil_stale;
};

#define PW_FRESH_US 1000000 /* microseconds between lookups of a cached path */

/* The caller zeroes the struct, then sets op_waiter.wt_done. */
struct pw_open {
	struct pw_waiter op_waiter;
	/*
	 * True if the caller wants fil_attribute.  Then the pool opens a file that is new or has changed,
	 * since reading its attribute may wait for the disk.
	 */
	bool op_attribute;
	struct pw_file *op_file; /* result: a reference that the caller owns */
	/* List entry, owned by the library until it calls op_waiter.wt_done. */
	struct {
		struct pw_open *tqe_next;
		struct pw_open **tqe_prev;
	} op_link;
	void *op_others; /* list that op_link is in; NULL if not pending */
};

/*
 * Opens `path`, which is relative to the root ("." is the root itself).  Uses a cached file, opens
 * the file at once if that does not wait, or else has a disk thread open it.
 *   0             op->op_file is set
 *   -EINPROGRESS  op_waiter.wt_done will be called, with wt_error and op_file
 *   -ENOENT, -ENOTDIR, -EACCES, -ENAMETOOLONG, ... as openat2(2)
 *   -EXDEV        the path leaves the root
 *   -ELOOP        the path has a loop of links, or a link with PW_ROOT_NO_LINKS
 *   -EAGAIN       the device's queue is full, or no thread can be started
 *   -EINVAL       op_waiter.wt_done is not set
 * pw_file_open notices a created or moved file within PW_FRESH_US, a second.  The function notices
 * a change, replacement or removal of an open file in the next iteration of the loop (at once if
 * the program does not call pw_loop_rest), and on network file systems within a second.
 */
int pw_file_open(struct pw_loop *, struct pw_root *, const char *path,
    uint64_t now_us, struct pw_open *op);

/*
 * Cancels a pending open: the library does not call wt_done, and the caller may free the struct
 * when the function returns.  A disk thread that is looking the path up continues, and
 * pw_loop_pending counts the open until that thread has finished.  Returns -EINVAL if the open is
 * not pending.
 */
int pw_open_cancel(struct pw_open *);

/*
 * Lets the lookups and reads of other clients go first, if no other open waits for the path.  Call when the
 * client has closed its side, since it may not read the response.  Does nothing if the open is not pending.
 */
void pw_open_defer(struct pw_open *);

/*
 * Makes a file from `fd`, a descriptor of the caller that is open for reading, for a program that
 * opens files itself.  The file behaves like one of pw_file_open, but the loop does not cache it;
 * so call this function once for each open file and loop, not for each request.  If you open the
 * path again and it leads to the same version, keep the earlier file: the library has to find out
 * again which bytes of a new file are resident.
 *
 * The caller keeps fd, and may close it when the function returns.  The library opens the file
 * again by /proc/self/fd, with O_NOATIME if permitted, so fd's offset, flags and read-ahead stay as
 * they are.  If that fails (no /proc, no permission for the file), and always on FreeBSD, the
 * library duplicates fd.  On Linux fd must then not have O_DIRECT, the library sets
 * POSIX_FADV_RANDOM on fd, and the caller must not give other advice on read-ahead for fd by
 * posix_fadvise(2), or a loop may wait for a disk.  As any close(2) does, the last pw_file_unref
 * releases the process's fcntl(2) record locks of the file.
 *
 * `st` is the caller's stat of the file, from which its validators were made, or NULL.  If the file has
 * changed since, the function returns -ESTALE, so no bytes are sent under validators of another version.
 *
 * A disk thread examines the first file of each device, every file of a network or unknown file
 * system, and every file if op_attribute is set.  The function itself calls fstat(2) only where
 * fstat(2) does not wait.  On FreeBSD pw_file_from_fd may still wait for a file server, since the
 * library determines the device of fd by fstat(2).
 *   0             op->op_file is set
 *   -EINPROGRESS  op_waiter.wt_done will be called, with wt_error and op_file; pw_open_cancel
 *                 cancels the wait
 *   -ESTALE       size, mtime or ctime of the file are not those of `st`
 *   -EINVAL       op_waiter.wt_done is not set, the file is not regular, `st` is of another file, or fd has
 *                 O_DIRECT and could only be duplicated
 *   -EBADF        fd is not open for reading
 *   -EAGAIN       the device's queue is full, or no thread can be started
 *   -EMFILE, ...  as open(2), fstat(2)
 */
int pw_file_from_fd(
    struct pw_loop *, int fd, const struct stat *st, struct pw_open *op);

/* Add and release a reference.  pw_file_unref sets the pointer to NULL, and accepts a pointer to NULL. */
void pw_file_ref(struct pw_file *);
void pw_file_unref(struct pw_file **);

/*
 * Copies `len` bytes at `off` if all of them are resident; never waits for the disk.
 *   0        all bytes were copied, from the version that was looked up
 *   -EAGAIN  some byte is not resident, or the file system is not in memory and does not
 *            support RWF_NOWAIT, so that every read may wait
 *   -ESTALE  the file has changed since it was looked up (see fil_stale)
 *   -EIO, ... as pread(2), fstat(2)
 * May write to `to` even on failure.
 */
int pw_file_copy(struct pw_file *, off_t off, void *to, size_t len);

/*
 * Checks, without waiting for the disk, whether `len` bytes at `off` are resident.
 *   1            all are: a sendfile(2) of fil_fd would not wait for the disk now
 *   0            some byte is not resident, or the file's pages are being dropped
 *   -EOPNOTSUPP  unknown: on FreeBSD except tmpfs, and on file systems without a residency check, such as
 *                network file systems
 *   -EINVAL      the range is empty or not within fil_size, or the file is not regular
 * The kernel may evict pages at any moment after the call, and the library keeps a result for up to
 * 100 ms, so check each chunk just before it is sent.  A chunk should have at most 512 KiB, whose
 * check takes some 10 us, or 100 us if the process neither owns nor may write the file.  Send from
 * fil_fd, since with another descriptor the kernel may read ahead, and wait.
 */
int pw_resident(struct pw_file *, off_t off, size_t len);

/*
 * -------- pw_fetch(3): windows of files, for programs that send by themselves
 * pw_fetch makes a range of a file resident, and lends the range to the caller until pw_unpin.  The
 * caller sends the bytes by sendfile(2), MSG_ZEROCOPY or kernel TLS, or as frames of HTTP/2 or
 * QUIC.  Fetches and transmissions share windows, memory and budget: all clients of a window wait
 * for one fetch.  Call both functions on the loop's thread.
 *
 * ft_want selects the kind of loan:
 * - PW_FETCH_PAGES: the bytes are in the page cache, and locked there if possible.  Then ft_mem
 *   points to a mapping, which only system calls may read: if the file was truncated, system calls
 *   fail with EFAULT, but the program itself would get SIGBUS.  Otherwise ft_mem is NULL; call
 *   pw_resident again before you send the bytes from fil_fd, since the kernel may have evicted
 *   them.  Where pw_resident fails with -EOPNOTSUPP, use PW_FETCH_MEMORY, or FreeBSD's sendfile(2),
 *   which does not wait for data.  Bytes can be locked on Linux 6.5 and later if ft_off is a
 *   multiple of PW_FETCH_WINDOW, ft_have is PW_FETCH_WINDOW or at least 128 KiB that reach
 *   fil_size, the device's read_ahead_kb is below 2048, and RLIMIT_MEMLOCK or RLIMIT_NOFILE permits
 *   it.  The bytes are not locked if the fetch joins another one that does not lock.  A writer can
 *   still change the bytes.  So send the last bytes of a response from a copy that pw_file_copy
 *   makes after all earlier bytes were passed to the socket; if pw_file_copy returns -ESTALE, close
 *   the connection.
 * - PW_FETCH_MEMORY: ft_mem points to a copy, which the program may read, and which never changes.
 *   The copy has the version that fil_size and fil_mtime describe.  A disk thread makes this copy,
 *   past the page cache if the pages would be dropped.  All clients of the window share the copy.
 *   Each copy takes the next power of two in memory, 64 KiB at least, so fetch small files as pages,
 *   and copy them by pw_file_copy.
 *
 * Limits: locked pages and copies, with those of transmissions, take at most an eighth of memory
 * (pw_pool_pinned).  Above that PW_FETCH_PAGES does not lock, and PW_FETCH_MEMORY fails with
 * -ENOBUFS.  A range that was not lent at once takes ft_have bytes of the budget (ps_unsent) until
 * pw_unpin, so other transmissions may wait for pw_unpin.  Unpin a range that a client does not
 * read, and fetch the range again later.
 */
#define PW_FETCH_WINDOW ((size_t)2 << 20)
#define PW_FETCH_ROOM	112 /* size of ft_private, bytes */

enum pw_fetch_want { PW_FETCH_PAGES, PW_FETCH_MEMORY };

/* Options for the pages that a transmission or pw_fetch fetched (thesis 4.4.1). */
enum pw_cache {
	PW_CACHE_KEEP, /* kept until the kernel evicts them */
	PW_CACHE_DROP, /* dropped once the client has acknowledged them */
	PW_CACHE_AUTO, /* kept if the file is popular, else dropped */
};

/* The caller zeroes the struct, then sets ft_waiter.wt_done, ft_file, ft_off and ft_len. */
struct pw_fetch {
	struct pw_waiter ft_waiter;
	struct pw_file *ft_file; /* pw_fetch adds a reference */
	off_t ft_off;		 /* first byte */
	size_t ft_len;		 /* bytes that are wanted */
	enum pw_fetch_want ft_want;
	/* Treatment, by pw_unpin, of the pages that this fetch read into the page cache. */
	enum pw_cache ft_cache;
	bool ft_begun; /* true to fetch even if the device's queue is full */

	/* Results, valid after 0 until pw_unpin. */
	const char *ft_mem; /* the bytes at ft_off, or NULL */
	/*
	 * Bytes that are lent: ft_len, but not beyond the next multiple of PW_FETCH_WINDOW.  pw_fetch
	 * sets it, also when it returns -EINPROGRESS.
	 */
	size_t ft_have;

	union {
		uint64_t pr_align;
		char pr_room[PW_FETCH_ROOM];
	} ft_private; /* owned by the library */
};

/*
 * Fetches a range.
 *   0             the bytes are lent
 *   -EINPROGRESS  ft_waiter.wt_done will be called, with wt_error 0 or -errno; until then the struct must
 *                 stay, and pw_unpin must not be called
 *   -EINVAL       wt_done or ft_file is not set, the file is not regular, the range is empty or not within
 *                 fil_size, or pw_unpin was not called for an earlier range
 *   -EAGAIN       the device's queue is full, or no thread can be started
 *   -ENOBUFS      PW_FETCH_MEMORY: the limit of copies is reached
 *   -ESTALE       the file has changed since it was looked up (see fil_stale)
 *   -EIO, ...     as pread(2)
 * After an error nothing is lent.  If the client left during the fetch, call pw_unpin in wt_done.
 */
int pw_fetch(struct pw_fetch *);

/*
 * Releases the range that pw_fetch lent; does nothing if none is lent.  The library uses memory of
 * PW_FETCH_MEMORY again; so after MSG_ZEROCOPY, vmsplice(2) and the like, call pw_unpin only when
 * the kernel has sent the bytes.  Aborts the program if the fetch is pending.  Unpin all ranges
 * before pw_loop_destroy.
 */
void pw_unpin(struct pw_fetch *);

/*
 * -------- pw_task(3): work that waits for a disk
 * pw_task_run runs work that reads a disk, such as a directory listing.  A disk thread of the
 * device `dev` (fil_dev) calls tk_work; then the loop's thread calls wt_done.  The struct must stay
 * valid until wt_done is called.  pw_task_run returns -EAGAIN if no thread can be started, or if
 * the device's queue is full and tk_begun is false.  pw_task_run returns -EINVAL if tk_work or
 * wt_done is not set.
 */
struct pw_task {
	struct pw_waiter tk_waiter;
	bool tk_begun; /* true to queue the task even if the queue is full */
	/*
	 * True if tk_work rarely reads, such as a lookup of a path that was open a moment ago.  Two
	 * disk threads run only such tasks, so these do not wait for tasks that read.
	 */
	bool tk_again;
	int (*tk_work)(struct pw_task *); /* returns wt_error */
};

int pw_task_run(struct pw_loop *, uint64_t dev, struct pw_task *);

/* Lets the tasks of other clients go first, as pw_open_defer does.  Call while the task is pending. */
void pw_task_defer(struct pw_task *);

/*
 * -------- pw_sink(3): destinations of transmissions other than sockets
 * A sink is a destination other than a plain socket, such as TLS in user space.  The library copies
 * resident data for the sink on the loop, without waiting, and fetches missing data first.  A sink
 * that can send ranges of files itself, by sendfile(2) for example, sets take_range.
 *
 * The library calls a sink on the loop's thread only.  So with a sink the send paths differ only in
 * the thread that reads: `blocking' and `copy' always read on the loop, `aio' and `pool' never do.
 */
struct pw_sink;

/* Callbacks of a sink; take and unacked are required. */
struct pw_sink_ops {
	/*
	 * Accepts some of `len` bytes, where `len` is above 0.  If `more` is true, further bytes follow
	 * at once.  Returns 0, and sets *taken to the number of accepted bytes, at least 1.  Returns
	 * -EAGAIN if the sink is full; pw_send_step then returns PW_SEND_WANT_WRITE.  With any other
	 * -errno the transmission fails.
	 */
	int (*take)(struct pw_sink *, const char *, size_t len, bool more,
	    size_t *taken);

	/*
	 * Returns the number of accepted bytes that the client has not acknowledged; PW_CACHE_DROP does
	 * not drop their pages yet.  A sink that copies may return 0.  Returns -1 if the number is
	 * unknown; then nothing is dropped before the transmission ends.
	 */
	long (*unacked)(struct pw_sink *);

	/*
	 * Accepts some of a range of snd_file that is resident now, and sets *taken to the number of
	 * bytes that it sent.  Returns as take does, but may also set *taken when it returns -EAGAIN.
	 *
	 * The sink may queue the rest of the range.  Before it sends the rest, it calls
	 * pw_send_step; the take_range that follows then offers all of the rest, which is resident
	 * again.  The sink must return -EAGAIN only after it tried to send in the same call, since
	 * a write event that occurred earlier, while the transmission was pending, does not occur
	 * again.
	 *
	 * The library calls take instead for the last bytes, at most 16 KiB, and if residency
	 * cannot be checked or the window was evicted.  It then offers to take all
	 * that is left of the range: the sink must not send that from the file, which may wait for
	 * the disk.  take_range may be NULL.
	 */
	int (*take_range)(
	    struct pw_sink *, off_t, size_t len, bool more, size_t *taken);

	/*
	 * Returns memory into which the library reads the next bytes of a file, so that take need
	 * not copy them.  Sets *room to the size of that memory, or to 0 if the sink is full, but only
	 * after it tried to send in the same call.  The callback may be NULL.
	 */
	char *(*room)(struct pw_sink *, size_t *room);
};

/* A sink.  The caller embeds it in a struct of its own. */
struct pw_sink {
	const struct pw_sink_ops *sk_ops;
};

/*
 * -------- pw_send(3): transmissions of memory and ranges of files
 * A program zeroes a struct pw_send, sets its members, and calls pw_send_start, then pw_send_step until it
 * returns something other than PW_SEND_AGAIN, and at last pw_send_finish.  The rules that every send path keeps:
 * 1. Every operation runs on the loop's thread, and a disk thread never uses a
 *    connection.  An exception is the path pool, whose disk threads send on the
 *    non-blocking socket, and do nothing else with the socket.
 * 2. After PW_SEND_PENDING, pw_loop_drain delivers exactly one completion, even
 *    after pw_send_cancel.  pw_send_step never delivers it.
 * 3. While a transmission is pending, the library holds references.  A caller
 *    that cancels the transmission may shut the socket down, but must not close
 *    the socket before snd_done is called, unless pw_send_take_back returned
 *    true.
 * 4. One pure function counts the bytes of all paths (lib/send/account.h).
 * 5. If the file shrinks, or its size or modification time differs after its
 *    last byte was read, or just before the call that sends the last byte without
 *    waiting, the transmission fails with PW_SEND_ERROR and -ESTALE before the
 *    last byte is sent.  With snd_grows, a larger size is no error.
 *    The caller must then close the connection, and never pad the response.
 * 6. Queues are bounded.  If the device's queue is full, a new transmission is
 *    refused (-EAGAIN, counted).  A transmission that has begun is always
 *    admitted; the caller bounds the number of these by limiting connections.
 */

/* Results of pw_send_step, each with the next action of the caller. */
enum pw_send_status {
	PW_SEND_DONE,	    /* the kernel or the sink accepted everything */
	PW_SEND_WANT_WRITE, /* the socket is full; step when it is writable */
	PW_SEND_AGAIN,	    /* a chunk was sent; step after other connections */
	PW_SEND_PENDING,    /* step after snd_done was called */
	PW_SEND_ERROR,	    /* snd_error is set; close the connection */
};

/*
 * Special values of snd_readahead.  Other values are the size of a window in bytes: the library
 * fetches missing data window by window, and fetches the next window while it sends the last one,
 * as FreeBSD does with SF_FLAGS(readahead, flags).  PW_READAHEAD_AUTO chooses 64 KiB to 2 MiB by
 * the rates of client and device and by free memory.  PW_READAHEAD_NONE fetches one chunk at a
 * time, and nothing ahead.
 */
#define PW_READAHEAD_AUTO 0
#define PW_READAHEAD_NONE UINT64_MAX

/*
 * A transmission.  The caller zeroes the struct, then sets the required fields; zero is the default of
 * all others.  Later versions may add options where snd_private begins now.
 */
#define PW_SEND_ROOM 240 /* size of snd_private, bytes */

struct pw_send {
	/* Set by the caller before pw_send_start; snd_path, snd_loop and snd_done are required. */
	const struct pw_send_path *snd_path;
	struct pw_loop *snd_loop;
	int snd_sock;		  /* non-blocking socket, owned by the caller */
	struct pw_sink *snd_sink; /* destination, or NULL for snd_sock */
	bool snd_more;		  /* true if another transmission follows */
	bool snd_begun;		  /* true if the response has begun already */
	/*
	 * True to prefetch the index of an MP4 file that has it at the end, when the file's first bytes
	 * were fetched.  Only nodiskio, splice and uring do so.
	 */
	bool snd_index;
	/*
	 * True to send a file to the end of the range also if it grows meanwhile.  Its bytes may then be
	 * of two versions, so do not send a strong validator.
	 */
	bool snd_grows;
	const char *snd_mem; /* memory to send first; valid until sent */
	size_t snd_mem_len;
	struct pw_file *snd_file; /* file or NULL; the start adds a reference */
	off_t snd_off;		  /* next byte of the file */
	off_t snd_len;		  /* bytes of the file that are left */
	uint64_t snd_readahead;	  /* window size, bytes, or PW_READAHEAD_... */
	enum pw_cache snd_cache;
	/* Rate of the client in bytes/s, from its last transmission; 0 if unknown. */
	uint64_t snd_rate;
	/* Rate limit of the caller in bytes/s, by which windows are sized; 0 if there is none. */
	uint64_t snd_pace;
	/*
	 * Maximum bytes of the file that the next step sends; the head may use up a part of them.  0
	 * sets no limit.  Set it before each step.
	 */
	uint64_t snd_limit;
	void (*snd_done)(struct pw_send *); /* completion callback */

	/* Read by the caller. */
	uint64_t snd_sent; /* bytes sent, including snd_mem */
	uint64_t snd_wait; /* microseconds spent pending */
	/* true until snd_done is called; snd_mem and this struct must stay valid */
	bool snd_pending;
	int snd_error; /* -errno after PW_SEND_ERROR */

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

/*
 * Returns 0 if this host can use the path.  Otherwise returns -errno, and sets *why to a constant
 * string.
 */
int pw_send_probe(const struct pw_send_path *, const char **why);

/*
 * Starts a transmission.  Returns 0.  Returns -EINVAL, and the first step fails, if snd_path, snd_loop or
 * snd_done is missing, the sink lacks take or unacked, the file is not regular or belongs to another
 * loop, or the range is negative.  Returns -EINVAL, and changes nothing, if the transmission is pending.
 */
int pw_send_start(struct pw_send *);

/*
 * Sends a chunk.  If the transmission is pending, returns PW_SEND_ERROR and sets snd_error to -EINVAL;
 * the library still calls snd_done.  After PW_SEND_ERROR, snd_error is
 *   -EAGAIN      the device's queue is full; if nothing was sent, send another response
 *   -ECANCELED   pw_send_cancel was called
 *   -EINVAL      pw_send_start failed, or the transmission was pending
 *   -EPIPE, ...  as send(2): the client has closed the connection
 *   -ESTALE      the file is shorter than it was, or was written to while it was sent; set fil_stale
 *   -EIO, ...    as pread(2): the disk has failed
 */
enum pw_send_status pw_send_step(struct pw_send *);

/*
 * Cancels a transmission.  If the transmission is pending, the library still calls snd_done later; keep
 * its memory and its socket until that call.
 */
void pw_send_cancel(struct pw_send *);

/* Does the same as pw_open_defer for a pending transmission. */
void pw_send_defer(struct pw_send *);

/*
 * Takes the socket of a pending transmission back, for another response or to close it; call
 * pw_send_cancel next.  Returns false if a disk thread (path pool) or the kernel (path ring)
 * may be sending on the socket, which must then stay open until snd_done is called.
 */
bool pw_send_take_back(struct pw_send *);

/*
 * Returns true if the device of a pending transmission has finished no job since the last call, or
 * since the wait began if that is later.  Such a device hangs; a busy device would finish jobs.
 */
bool pw_send_stuck(struct pw_send *);

/*
 * Releases the transmission's part of the budget for fetched data.  Call when the sink accepts
 * nothing for a long time, since other transmissions may wait for that part.  Does nothing if the
 * transmission is pending.
 */
void pw_send_yield(struct pw_send *);

/*
 * Sets how many bytes the destination can accept now, such as the flow-control window of an HTTP/2
 * stream; by default any number.  The library fetches nothing behind these bytes, except the rest
 * of a page or, where residency is checked by pieces, of 64 KiB.  After 0 a step fetches nothing, and
 * returns PW_SEND_WANT_WRITE.  Call after pw_send_start, and before each later step.
 */
void pw_send_reach(struct pw_send *, uint64_t bytes);

/*
 * Returns the number of bytes that the socket has sent or queued and the peer has not acknowledged,
 * or 0 if that number is unknown.
 */
uint64_t pw_unacked(int sock);

/* Returns true if all bytes in the socket still wait for the disk (path native). */
bool pw_awaits_disk(int sock);

/* Ends a transmission and releases its file.  Aborts the program if the transmission is pending. */
void pw_send_finish(struct pw_send *);

/*
 * -------- pw_stats(3): counters and times
 * Counters since the pool or the loop was created.  Any thread may read them; the values that one call
 * returns may be of different moments.
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

/* Adds a time.  Only one thread at a time may call it. */
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
 * pw_loop_awake marks the start of an event-loop iteration, and pw_loop_rest marks its end.  In
 * between, the thread should not sleep; the library counts how often and how long it does.  Call
 * pw_loop_awake after each wait for events, and again when the program changes to other work; call
 * pw_loop_rest before the next wait.  Call both on the loop's thread, which must not run another
 * loop in between.
 */
void pw_loop_awake(struct pw_loop *, uint64_t now_us);
void pw_loop_rest(struct pw_loop *, uint64_t now_us);

#define PW_SLEEPS 24 /* maximum entries in a list of sleeps */

struct pw_sleep {
	const char *sl_call; /* name such as "sendfile"; constant */
	uint64_t sl_times;   /* number of sleeps; omits some below 50 us */
	uint64_t sl_us;	     /* time of the calls that slept, microseconds */
};

/*
 * Lists the sleeps in each call that the library makes, in a fixed order, and returns the number of
 * entries.  sl_call may also be "page fault" (one that read a disk, in any call), "lock", or "elsewhere".
 */
size_t pw_loop_sleeps(const struct pw_loop *, struct pw_sleep list[PW_SLEEPS]);

struct pw_device_stats {
	uint64_t ds_dev;       /* st_dev; 0 if the table has no slot left */
	const char *ds_queue;  /* "files", "tasks", "mounts" or "tier" */
	const char *ds_fsname; /* file system type, or NULL if unknown */
	const char *ds_mount;  /* mount point on FreeBSD, else NULL */
	unsigned ds_threads;
	unsigned ds_busy;
	unsigned ds_queued;
	uint64_t ds_jobs;  /* finished jobs */
	uint64_t ds_bytes; /* bytes that were fetched */
	uint64_t ds_refused;
	/* durations of jobs, including their time in the queue */
	struct pw_histogram ds_wait;
};

/*
 * Fills in one entry for each queue of each device, at most `max` entries, and returns their
 * number.
 */
size_t pw_pool_devices(struct pw_pool *, struct pw_device_stats *, size_t max);

struct pw_pool_stats {
	uint64_t ps_refused;	/* as pw_pool_refused */
	uint64_t ps_dropped;	/* bytes dropped (PW_CACHE_DROP, _AUTO) */
	uint64_t ps_unsent;	/* bytes in flight, or fetched and unsent */
	uint64_t ps_unsent_max; /* budget for ps_unsent */
};

void pw_pool_stats(struct pw_pool *, struct pw_pool_stats *);

/*
 * Returns the bytes of memory that hold windows of files until these are sent: kept pages of the
 * page cache, and copies; together at most an eighth of memory.  Any thread may call it.
 */
uint64_t pw_pool_pinned(struct pw_pool *);

#ifdef __cplusplus
}
#endif

#endif
