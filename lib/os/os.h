/*
 * os: the system calls whose form or meaning differs between kernels.
 * posix.c, os_linux*.c and os_freebsd*.c implement it; no other file depends on the
 * system.  Functions return 0 (or a descriptor) or -errno and may be called from any
 * thread unless they say otherwise.
 */
#ifndef LIB_OS_OS_H
#define LIB_OS_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Sends memory, or a range of a file, to a non-blocking socket.  *sent is what
 * the kernel took, also when an error is returned (FreeBSD reports both).
 * more: more data follows at once, so a partial segment may wait for it.
 */
int os_send(int sock, const void *mem, size_t len, bool more, size_t *sent);
int os_sendfile(int sock, int fd, off_t off, size_t len, size_t *sent);

/*
 * sendfile(2) as FreeBSD has it: memory and then a range of a file, len > 0, in one call that
 * does not wait for the disk: data that is not resident is sent later, after the kernel
 * has read it.  *sent as above. -EBUSY: a page is being read for another request, or
 * there is no free one.  Only for files whose os_ask is OS_ASK_NATIVE or
 * OS_ASK_NEVER_COLD.
 */
struct os_native {
	const void *on_mem;
	size_t on_mem_len;
	size_t on_readahead; /* bytes to be read as well, behind the range */
	bool
	    on_nocache; /* SF_NOCACHE: the pages are freed once they are sent */
};

int os_native_send(int sock, int fd, off_t off, size_t len,
    const struct os_native *, size_t *sent);

/* 0, or -errno and why this kernel has no such call. */
int os_native_probe(const char **why);

/* Bytes the peer has not acknowledged yet, or -errno. */
long os_unacked(int sock);

/*
 * Returns the microseconds since the kernel sent data there last.  While it has data to send, the peer has taken none
 * for so long: a probe of a closed window is no data.  Returns 0 where that is not known: Unix sockets, FreeBSD.
 */
uint64_t os_sent_ago(int sock);

/* All of them are still to be read from a disk (os_native_send), so not the peer's fault. */
bool os_awaits_disk(int sock);

/* How long the peer takes to acknowledge, us, or -errno. */
long os_round_trip(int sock);

/*
 * The memory that the kernel has for the queues of all TCP sockets of the machine: a descriptor
 * to ask with, and how much of it is no reason for the kernel to save any, bytes.  -errno;
 * -ENOSYS: it cannot be asked.  Reads files.
 */
int os_tcp_memory_open(uint64_t *enough);

/* Bytes, or -errno.  Waits for nothing. */
int64_t os_tcp_memory(int fd);

/*
 * The socket is full once it holds this many unsent bytes, independent of its room for
 * bytes in flight.  0: os_unsent_limit.  0, or -errno.
 */
int os_limit_unsent(int sock, size_t bytes);

/* The default of all sockets; SIZE_MAX: as many as there is room for.  Reads files. */
size_t os_unsent_limit(void);

/*
 * Before bind(2): several sockets may have this address, and each gets a part of its
 * connections.
 */
int os_share_port(int sock);

/* Does such a socket get none before listen(2)? */
bool os_share_late(void);

/* After listen(2): nothing is accepted before its request is there. -errno: no such filter. */
int os_accept_filter(int sock);

/*
 * Path lookup below dirfd, never leaving it, no magic links.  os_lookup returns
 * an O_PATH descriptor: good for fstat, opens nothing.
 */
enum os_resolve {
	OS_CACHED, /* never waits for a disk: -EAGAIN if it would have to, and
		      for another mount, where open itself may wait */
	OS_ONE_MOUNT, /* may wait; -EXDEV for another mount */
	OS_ANY_MOUNT, /* may wait; -EXDEV for what lies outside */
};

/* One of these besides; none: links that are relative and stay below dirfd. */
#define OS_NO_LINKS 4 /* -ELOOP: there is one in the path */
#define OS_AS_SLASH \
	8 /* dirfd is what '/' is; -EOPNOTSUPP, as before: not here */
#define OS_ALL_LINKS 16 /* links lead where they lead; the same */
#define OS_RESOLVE   3	/* the enum's bits */

int os_lookup(int dirfd, const char *path, int resolve);
int os_open(int dirfd, const char *path, int resolve);
/* As fstatat(2) of a name in dirfd itself, no link is followed; -EXDEV: a mount point. */
int os_stat_name(int dirfd, const char *name, struct stat *);
int os_open_dir(int dirfd, const char *path, int links);

/*
 * An extended attribute of an open file, in the namespace of users: how many bytes it has.  May
 * wait for a disk.  -ENOENT: there is none of this name; -EOPNOTSUPP: the file system has none;
 * -ERANGE: it does not fit.
 */
long os_attribute(int fd, const char *name, void *to, size_t size);

/* Does OS_CACHED work on this file system?  dirfd is a root. */
bool os_cached_works(int dirfd);

/* How to learn whether a range of a file is in memory. */
enum os_ask {
	OS_ASK_UNKNOWN,
	OS_ASK_NOWAIT,	/* preadv2(RWF_NOWAIT), cachestat(2) where permitted */
	OS_ASK_MINCORE, /* mincore(2): exact, but only for the file's owner */
	OS_ASK_NEVER_COLD, /* tmpfs: always resident */
	OS_ASK_FETCH,	   /* no way to ask: always fetch first */
	OS_ASK_NATIVE,	   /* none, and no need to: see os_native_send */
};

/* A file system. */
struct os_fs {
	char fs_name[24];  /* its type: "ext4" */
	char fs_mount[96]; /* where it is; empty: the device's number says it */
	bool fs_local;	   /* fstat(2) of an open file waits for no server */
	size_t
	    fs_block; /* bytes: files have indirect blocks; 0: they have none, or
			      os_native_send does not wait for them: indirect.h */
};

/* The best means for the file system of fd; the other is all zeros before. */
enum os_ask os_ask_means(int fd, struct os_fs *);

/*
 * Is the kernel honest to this process about this file's pages?  For files of other users it is
 * where sandbox_os_confine has kept what that takes.
 */
bool os_owner(int fd);

/*
 * A descriptor to ask with how many pages of files the kernel has taken back since it was
 * started, for others or on request.  -ENOSYS: it cannot be asked.
 */
int os_reclaim_open(void);
int64_t os_reclaimed(
    int fd); /* pages, or -errno; reads counters of all processors */

/* 1 all pages present, 0 not all, -errno (-EPERM, -ENOSYS): cannot say. */
int os_cachestat(int fd, off_t off, size_t len);

/* Is the byte in memory?  1, 0 or -errno.  A 0 may start I/O: residency.c */
int os_nowait(int fd, off_t off);

/*
 * How much was read, 0 at the end of the file, or -errno.  wait: false: what is in
 * memory, -EAGAIN if that is nothing; what os_nowait may start it may start as well.
 */
long os_read(int fd, off_t off, void *to, size_t len, bool wait);

/* As os_cachestat, on a mapping of the whole file. */
int os_mincore(void *map, off_t off, size_t len);
void *os_map(int fd, off_t off, size_t len); /* NULL: no */
void os_unmap(void *map, size_t len);

/* Bring the pages of a map in and, with lock, keep them there: 0 or -errno. */
int os_lock(void *map, size_t len);
int os_populate(void *map, size_t len);
size_t os_page_size(void);

/*
 * From a file into a pipe, and from there into a socket; neither end waits but
 * for the disk.  0 bytes without an error: end of file.
 */
int os_pipe(int fds[2], size_t size); /* -EPERM: larger than is permitted */
void os_pipe_close(int fds[2]);
int os_splice_in(int pipe, int fd, off_t off, size_t len, size_t *taken);
int os_splice_out(int sock, int pipe, size_t len, bool more, size_t *sent);

/* Switches kernel read-ahead off (or on) for this descriptor. */
void os_advise_random(int fd, bool random);

/*
 * Brings a range into the page cache without copying it.  begin submits the
 * reads, which costs the processor's time (0.1 ms for 512 KiB) and hardly waits;
 * end waits until every page is there.  step: bytes that one advice covers.
 * sink is a descriptor of os_sink_open, shared by all.  -ESTALE: the file ends
 * before.
 *
 * wait is end, but does not count as a use of the pages, where the kernel tells us of them:
 * Linux makes a page active at its second use, and to send it is one.
 */
int os_sink_open(void);
void os_fetch_begin(int fd, off_t off, size_t len, size_t step);
int os_fetch_end(int sink, int fd, off_t off, size_t len);
int os_fetch_wait(int sink, int fd, off_t off, size_t len);

/*
 * In place of begin, for a whole OS_FOLIO of a file, or what the file has of it:
 * into one large folio, where the file system has them, which takes a fifth of the
 * processor's time and one request to the disk.  Waits for it; os_fetch_end has to
 * follow all the same.  false: nothing was read, use begin.
 *
 * With map, locks the folio in memory as well: *map is its mapping, for os_unmap, and nothing has to
 * follow; or NULL if it cannot be locked (RLIMIT_MEMLOCK).
 */
#define OS_FOLIO ((size_t)2 << 20)
bool os_fetch_folio(int fd, off_t off, size_t len, void **map);

/* What tells versions of a file apart. */
struct os_version {
	off_t ov_size;
	struct timespec ov_mtime;
	struct timespec ov_ctime;
};

/*
 * Returns the bytes of which offset, length and address of a direct read of this file have to be
 * multiples, or 0 if its file system has no direct reads, and its version.  For local file systems.
 */
size_t os_direct_align(int fd, struct os_version *);

/*
 * Reads len bytes past the page cache (O_DIRECT), and to the next multiple of align as far as the
 * file goes.  Waits for the disk.  Returns how many bytes were read, or -errno.
 */
long os_direct_read(int fd, off_t off, void *to, size_t len, size_t align);

/* Memory in one huge page, if there are any, for os_unmap; len is OS_FOLIO.  NULL: there is none. */
void *os_huge_page(size_t len);

/* Gives clean pages of a range back. */
void os_drop(int fd, off_t off, size_t len);

/* Bytes that one advice covers on a device, at least 64 KiB.  Reads sysfs. */
size_t os_advice_limit(dev_t dev);

/*
 * As os_fetch_folio with a map, for a caller that sends from the mapping: to the kernel that is no use of
 * the folio.  exact: the device is OS_FOLIOS_EXACT; if not, the folio keeps a mark, and a read or
 * sendfile of any of its bytes starts a read of what follows.  NULL: the folio was in memory before, or
 * cannot be read or locked.
 */
void *os_lock_folio(int fd, off_t off, size_t len, bool exact);

/* What a device's folios are like.  Reads sysfs. */
enum os_folios {
	OS_FOLIOS_NONE,
	OS_FOLIOS_MARKED, /* os_fetch_folio would read more: read-ahead is long */
	OS_FOLIOS_EXACT,
};
enum os_folios os_folios(dev_t dev);

/* A device's st_dev as people know it: "254:0"; on FreeBSD also "0x8700ff01". */
void os_dev_name(uint64_t dev, char *text, size_t size);

/* A descriptor that one thread makes readable to wake another. */
int os_wake_create(int fds[2]); /* [0] to poll and clear, [1] to signal */
void os_wake_signal(int fd);
void os_wake_clear(int fd);
void os_wake_close(int fds[2]);

/* Memory that this process may have, page cache included. */
struct os_memory {
	uint64_t om_bytes;
	bool om_limited; /* less than the machine has: by a control group */
	bool
	    om_sockets; /* what sockets hold counts as well (v2): to send may evict */
};

/* Reads files. */
void os_memory(struct os_memory *);

/* Opens what os_anonymous reads.  Returns a descriptor, or -errno; -ENOSYS on this system. */
int os_anonymous_open(void);

/* Returns bytes of memory that the process has now and that are no file's, or -errno.  2 us. */
int64_t os_anonymous(int fd);

/*
 * From here on threads have their heaps from the kernel in one piece each, and give nothing
 * back: to let a heap grow takes a lock of the process, which a fetcher may have while it
 * reads a folio for the second time.  Before there are threads.  Reads files.
 */
void os_prepare_heap(void);

/*
 * Returns the whole pages of a malloc(3)ed piece to the kernel; their contents are lost.  Returns how
 * many of their bytes were in memory, or 0 where malloc returns its free memory itself.  May wait.
 */
size_t os_release(void *, size_t len);

/*
 * Gives whole pages of free memory of all heaps back.  Holds the lock of each heap for 0.1 ms a MiB: see
 * os_release.
 */
void os_trim(void);

/* Keeps the program and its libraries in memory; 0, or -errno if only brought in. */
int os_lock_program(void);

/* libcrypto as well, which is left out there where it can be. */
int os_lock_crypto(void);

/*
 * The target of a symbolic link, and its owner.  0; 1: only open(2) can follow it
 * (Linux: those of /proc); or -errno.
 */
int os_read_link(const char *path, char *to, size_t size, uid_t *owner);

/*
 * From now on the end of this parent, which lives on when it runs another program, kills
 * the process: 0; -ESRCH: it has ended already.  0 in place of it: its end does nothing any
 * more.  A process that becomes another user has to say it again.
 */
int os_follow_parent(pid_t parent);

/*
 * Closes inherited descriptors other than the standard files: all without FD_CLOEXEC,
 * which every descriptor opened here has.  Reads files; before there are threads.
 */
int os_close_inherited(void);

/*
 * To be called before the process changes its user, if sandbox_os_confine follows: no program that it
 * may start gets capabilities.  keep: what it takes to ask about the pages of other users'
 * files (on Linux CAP_FOWNER) is not lost by the change.  0; 1: it is not there, or cannot be
 * kept; or -errno.
 */
int sandbox_os_begin(bool keep);

/*
 * Takes from the process, for good, what a server that has opened everything does
 * not need: it gains no rights by exec, gives up capabilities (unless it is root, and but for
 * oc_keep), reads below oc_roots and nowhere else, writes to no file and no name, starts no
 * program, opens no socket, gives no memory the right to be run.  Before there are
 * threads.
 *
 * 0; 1: a wall is not there at all, since the kernel, or a container around, has not
 * got it, or it leaves files below oc_roots to be emptied (Landlock before Linux 6.2);
 * -errno: it is there and could not be put up, and the process has to end.
 * missing is a text: what this kernel cannot hold back, or what failed; empty if there
 * is nothing.
 */
struct os_confine {
	const int
	    *oc_roots; /* directories; what is mounted below them as well */
	size_t oc_nroots;
	bool oc_async; /* io_uring is used: its operations bypass the filter */
	bool oc_cuts;  /* files that are open for writing may be cut */
	bool oc_ktls;  /* the kernel may be given keys of TLS */
	bool oc_keep;  /* what sandbox_os_begin has, if the filter guards it */
	const char *oc_gave_up; /* why it was not kept, else NULL */
};

int sandbox_os_confine(struct os_confine *, char *missing, size_t size);

/* Unpredictable bytes, without waiting: 0 or -errno. */
int os_random(void *to, size_t len);

/* Anonymous shared memory of this size, as a descriptor. */
int os_memfd(const char *name, size_t size);

/*
 * Memory for secrets, zeroed: in no core dump, zeroed in a child of fork, and not swapped out
 * if that may be locked.  NULL: no memory.
 */
void *os_secret_create(size_t size);

/* Wipes it; NULL is none. */
void os_secret_destroy(void *, size_t size);

/*
 * This process is dumped into no core, and other processes of its user cannot look into it, from
 * now on; a change of the user takes that back.  0 or -errno.
 */
int os_forbid_cores(void);

/* The path of the program that runs. */
int os_program(char *path, size_t size);

/*
 * How often the calling thread has given up its processor, as every sleep does, and how
 * often it had a page read from a disk by touching it.  Takes 0.3 us.
 */
struct os_switches {
	uint64_t sw_slept;
	uint64_t sw_faults;
};

int os_switches(struct os_switches *);

/* The processor that the calling thread runs on. */
unsigned os_cpu(void);

/* Names the calling thread; at most 15 bytes are shown everywhere. */
void os_thread_name(const char *name);

/* The same for the process, by its main thread: ps(1). */
void os_process_name(const char *name);

/* A thread of the pool: named, and standing back behind the loops. */
void os_thread_fetcher(void);

/* A thread that computes for the loops: it stands back behind them. */
void os_thread_helper(void);

/* Joins it if the kernel has done with it, else -EBUSY or -ETIMEDOUT at once. */
int os_thread_reap(pthread_t);

#define OS_SAMPLE ((size_t)64 << 10) /* distance between residency samples */

#endif
