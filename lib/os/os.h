/*
 * os: the system calls whose form or meaning differs between kernels.  posix.c, linux*.c
 * and freebsd*.c implement them, and server/process/sandbox_*.c the functions
 * sandbox_os_*.  Functions return 0 (or a descriptor) or -errno and may be called from
 * any thread unless stated otherwise.
 */
#ifndef LIB_OS_OS_H
#define LIB_OS_OS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Send memory, or a range of a file, to a non-blocking socket.  Set *sent to the bytes that the kernel
 * accepted, also on an error: -EAGAIN means that the socket is full.  If `more` is true, the kernel may delay a partial
 * segment, since more data follows at once.  Return 0 or -errno.
 */
int os_send(int sock, const void *mem, size_t len, bool more, size_t *sent);
int os_sendfile(int sock, int fd, off_t off, size_t len, size_t *sent);

/* Arguments of os_native_send, besides the range of the file. */
struct os_native {
	const void *on_mem;
	size_t on_mem_len;
	size_t on_readahead; /* bytes to read ahead, past the range */
	bool on_nocache;     /* SF_NOCACHE: the kernel frees the sent pages */
};

/*
 * Sends memory and then a range of a file (`len` is above 0) by FreeBSD's sendfile(2), which does not
 * wait for the disk: the kernel reads pages that are not resident, and sends them later.  Sets *sent as
 * os_send does.  Fails with -EBUSY if a page is being read for another request, or the kernel has no free
 * page or buffer.  Call only for files whose os_ask is OS_ASK_NATIVE or OS_ASK_NEVER_COLD.
 */
int os_native_send(int sock, int fd, off_t off, size_t len,
    const struct os_native *, size_t *sent);

/*
 * Reads the indirect blocks that lead to the byte at off, for which os_native_send would wait.  `block` is
 * the block size of the file system (fs_block).  Reading the byte itself is not enough: the kernel does
 * not use indirect blocks to read a cached page.  Returns 0, or -EOPNOTSUPP if the file system has no such
 * call, or -errno.  Waits for the disk.
 */
int os_native_map(int fd, off_t off, size_t block);

/*
 * Returns the number of bytes in the socket, from the first one on that the kernel still reads from
 * the disk for os_native_send, or -errno.  The number may include acknowledged bytes if many small
 * pieces are queued, or if bytes were acknowledged during the call.
 */
long os_unready(int sock);

/*
 * Returns a number for the address of the socket's peer.  Returns 0 if os_unready does not work on
 * the socket: if it is closed, not connected, or a Unix socket (the peer's queue has its bytes).
 */
uint64_t os_peer(int sock);

/*
 * Returns the number of reads for os_native_send that the machine can have in flight; all processes
 * share it.  Returns 0 on Linux, which has no os_native_send.  Call before sandbox_os_confine.
 */
unsigned os_native_reads(void);

/* Returns 0 if os_native_send works on this kernel; else returns -errno and sets *why to the reason. */
int os_native_probe(const char **why);

/* Returns the bytes that the peer has not acknowledged yet, or -errno. */
long os_unacked(int sock);

/* Returns the bytes that the socket accepts now, about, or -errno. */
long os_space(int sock);

/*
 * Returns the microseconds since the kernel last sent data on the socket, or 0 if that is unknown (Unix
 * sockets, FreeBSD).  Window probes do not count; so while data is queued, the peer has accepted none
 * for that long.
 */
uint64_t os_sent_ago(int sock);

/* Returns true if all unacknowledged bytes wait for a disk (os_native_send), not for the peer. */
bool os_awaits_disk(int sock);

/* Returns the round trip time in microseconds, or -errno. */
long os_round_trip(int sock);

/*
 * Opens the counter of the memory that all TCP sockets of the machine use.  Sets *enough to the bytes
 * up to which the kernel does not limit that memory.  Returns a descriptor or -errno; -ENOSYS if there
 * is no such counter.  Reads /proc.
 */
int os_tcp_memory_open(uint64_t *enough);

/* Reads the counter of os_tcp_memory_open.  Returns the bytes in use, or -errno.  Does not wait. */
int64_t os_tcp_memory(int fd);

/*
 * Limits the unsent bytes of a socket, apart from its buffer for bytes in flight (TCP_NOTSENT_LOWAT).  If
 * `bytes` is 0, sets the default, os_unsent_limit.  Returns 0 or -errno.
 */
int os_limit_unsent(int sock, size_t bytes);

/* Returns the system-wide TCP_NOTSENT_LOWAT default, or SIZE_MAX if there is none.  Reads /proc. */
size_t os_unsent_limit(void);

/* Replaces bbr, which paces, by reno.  Accepted sockets inherit reno.  Returns 0 or -errno. */
int os_unpace(int sock);

/*
 * Lets several sockets bind the same address; the kernel divides the connections among them.  Call
 * before bind(2), or see os_share_listening.
 */
int os_share_port(int sock);

/* Returns true if os_share_port also works for a socket that listens already. */
bool os_share_listening(void);

/* Returns true if a socket of os_share_port gets no connections before listen(2). */
bool os_share_late(void);

/* Delays accept(2) until a request has arrived.  Call after listen(2).  Returns 0 or -errno. */
int os_accept_filter(int sock);

/* Modes of os_lookup and os_open. */
enum os_resolve {
	/*
	 * never waits for a disk: fails with -EAGAIN if a wait is necessary, or for another mount, where
	 * open(2) may wait
	 */
	OS_CACHED,
	OS_ONE_MOUNT, /* may wait; -EXDEV for another mount */
	OS_ANY_MOUNT, /* may wait; -EXDEV for a path that leads outside */
};

/*
 * Rules for symbolic links, one of which may be added to an enum os_resolve.  A call fails with
 * -EOPNOTSUPP if the system lacks the rule.  Without a rule, links must be relative and stay below dirfd.
 */
#define OS_NO_LINKS  4 /* a link in the path fails with -ELOOP */
/* '/' means dirfd in the path and in links, as after chroot(2) */
#define OS_AS_SLASH  8
#define OS_ALL_LINKS 16 /* all links are followed, also outside of dirfd */
#define OS_RESOLVE   3	/* mask of enum os_resolve */

/*
 * os_lookup and os_open look up a path below dirfd.  Both refuse magic links (/proc/PID/fd) and, without
 * OS_ALL_LINKS, paths that lead outside.  os_lookup returns an O_PATH descriptor, for fstat(2) only, and
 * does not open the file itself.
 */
int os_lookup(int dirfd, const char *path, int resolve);
int os_open(int dirfd, const char *path, int resolve);
/*
 * Fills in the struct as fstatat(2) does for `name` in dirfd, without following a link.  Fails with
 * -EXDEV for a mount point.
 */
int os_stat_name(int dirfd, const char *name, struct stat *);
/* Opens a directory below dirfd for reading.  `links` is 0, or a rule for links such as OS_NO_LINKS. */
int os_open_dir(int dirfd, const char *path, int links);

/*
 * Sets *dev to the st_dev of an open file.  Returns 0 or -errno.  On Linux, sends no request to a
 * file server.
 */
int os_device_of(int fd, dev_t *dev);

/*
 * Opens the file of `fd` again for reading, so that the result has a file description of its own.
 * If that is not possible (no /proc, no permission), duplicates fd.  Returns a descriptor or
 * -errno: -EBADF if fd is not open for reading, -EINVAL if fd could only be duplicated and reads
 * past the page cache (O_DIRECT).  May wait where os_open may.
 */
int os_own(int fd);

/*
 * Reads the extended attribute `name` of an open file, in the namespace `user'.  Returns the length of
 * its value; -ENOENT if the file has no attribute of this name, -EOPNOTSUPP if the file system has no
 * attributes, -ERANGE if the value does not fit.  May wait for a disk.
 */
long os_attribute(int fd, const char *name, void *to, size_t size);

/* Returns true if OS_CACHED works on the file system of dirfd. */
bool os_cached_works(int dirfd);

/* Means of checking residency. */
enum os_ask {
	OS_ASK_UNKNOWN,
	OS_ASK_NOWAIT,	/* preadv2(RWF_NOWAIT), cachestat(2) where permitted */
	OS_ASK_MINCORE, /* mincore(2): exact, but only for the file's owner */
	/* always resident: tmpfs, on FreeBSD without a swap device */
	OS_ASK_NEVER_COLD,
	OS_ASK_FETCH,  /* no check: always fetch first */
	OS_ASK_NATIVE, /* no check needed: os_native_send does not wait */
};

/* Facts about a file system. */
struct os_fs {
	char fs_name[24];  /* type, such as "ext4" */
	char fs_mount[96]; /* mount point, or empty */
	/* true if fstat(2) of an open file never waits for a file server */
	bool fs_local;
	/* Block size in bytes if os_native_send may wait for indirect blocks (indirect.h), else 0. */
	size_t fs_block;
};

/*
 * Reads the facts about the kernel that os_ask_means needs, and that FreeBSD's sandbox hides later.
 * Each process reads these facts once: a later change, such as a new swap device, has no effect.
 */
void os_learn(void);

/* Returns the best residency check for the file system of `fd`.  Fills in a zeroed struct os_fs. */
enum os_ask os_ask_means(int fd, struct os_fs *);

/*
 * Returns true if the kernel reports to this process which pages of the file are resident: the process
 * owns the file, or sandbox_os_confine kept CAP_FOWNER.
 */
bool os_owner(int fd);

/*
 * Opens the counter of pages that the kernel reclaimed since it started.  Returns a descriptor or -errno;
 * -ENOSYS if there is no such counter.
 */
int os_reclaim_open(void);

/* Returns the number of reclaimed pages, or -errno.  Reads counters of all processors. */
int64_t os_reclaimed(int fd);

/*
 * Returns 1 if all pages of the range are present, 0 if not, or -errno (-EPERM, -ENOSYS) if that is
 * unknown.
 */
int os_cachestat(int fd, off_t off, size_t len);

/*
 * Tries to read one or two bytes without waiting.  Returns how many are resident, or -errno.  If a byte is not
 * resident, the kernel may have started to read its page (residency.c).  Returns len at the end of the file, which
 * sendfile(2) reports without waiting.
 */
int os_nowait(int fd, off_t off, size_t len);

/*
 * Reads up to `len` bytes.  Returns how many, 0 at the end of the file, or -errno.  If `wait` is false,
 * reads only resident bytes, fails with -EAGAIN if there are none, and may start a read as os_nowait
 * does.
 */
long os_read(int fd, off_t off, void *to, size_t len, bool wait);

/* Returns the same as os_cachestat, by mincore(2) on a mapping of the whole file. */
int os_mincore(void *map, off_t off, size_t len);
void *os_map(int fd, off_t off, size_t len); /* returns NULL on failure */
void os_unmap(void *map, size_t len);

/* Reads the pages of a mapping into memory, and locks them.  Returns 0 or -errno. */
int os_lock(void *map, size_t len);
size_t os_page_size(void);

/*
 * os_splice_in moves bytes from a file into a pipe, os_splice_out from the pipe into a socket.  Both may
 * wait for the disk, but not for the peer.  At the end of the file os_splice_in returns 0 and sets *taken
 * to 0.
 */
int os_pipe(int fds[2], size_t size); /* -EPERM above the limit of sizes */
void os_pipe_close(int fds[2]);
int os_splice_in(int pipe, int fd, off_t off, size_t len, size_t *taken);
int os_splice_out(int sock, int pipe, size_t len, bool more, size_t *sent);

/*
 * Moves references to the pages of a mapping into a pipe, as many as it has space for, and sets *taken to
 * their bytes.  Returns 0 or -errno; -EFAULT if the file of the mapping was truncated.
 */
int os_vmsplice(int pipe, const void *mem, size_t len, size_t *taken);

/* Reads up to len bytes from a pipe.  Returns how many, or -errno. */
long os_pipe_read(int pipe, void *to, size_t len);

/* Switches kernel read-ahead off (or on) for this descriptor. */
void os_advise_random(int fd, bool random);

/*
 * Fetch a range into the page cache without copying it.  os_fetch_begin submits the reads, which
 * costs CPU time (0.1 ms for 512 KiB) and hardly waits; `step` is the number of bytes per advice
 * (os_advice_limit).  os_fetch_end waits until every page is resident; all threads may share
 * `sink`, a descriptor of os_sink_open.  os_fetch_end fails with -ESTALE if the file ends before
 * the range.
 *
 * os_fetch_wait waits as os_fetch_end does, but does not use the pages if os_owner returns true.
 * Otherwise the send would be the second use of a page, at which Linux makes the page active.
 */
int os_sink_open(void);
void os_fetch_begin(int fd, off_t off, size_t len, size_t step);
int os_fetch_end(int sink, int fd, off_t off, size_t len);
int os_fetch_wait(int sink, int fd, off_t off, size_t len);

/*
 * Reads a whole OS_FOLIO of a file, or its part up to the end of the file, as one large folio if
 * the file system has them.  Such a read needs a fifth of the CPU time of os_fetch_begin, and one
 * disk request.  Waits for the read; os_fetch_end must still be called afterwards.  Returns false if
 * nothing was read; then call os_fetch_begin.
 *
 * If `fo` is not NULL, keeps the folio in memory as well, and sets fo_map to its mapping; then
 * os_fetch_end is not needed, and os_folio_release releases it.  Sets fo_map to NULL if the folio
 * cannot be kept.  A kept folio is locked.  Where RLIMIT_MEMLOCK does not permit that and `pagemap`
 * is not -1, one page of the folio is put into a pipe instead, since the kernel does not evict a
 * folio while a pipe has a page of the folio.
 *
 * The folio has a read-ahead mark: a read(2) or sendfile(2) of the folio, but not an access through
 * the mapping, makes the kernel read up to `readahead` bytes behind the folio, unless these are
 * resident.  `readahead` is that of the device (os_folios).  If `readahead` is OS_FOLIO or more,
 * os_fetch_folio fails unless the folio can be kept.
 */
#define OS_FOLIO ((size_t)2 << 20)
struct os_folio {
	void *fo_map; /* mapping, or NULL if no folio is kept */
	size_t fo_len;
	int fo_pipe; /* descriptor of the pipe, or -1 if the mapping is locked */
};
bool os_fetch_folio(int fd, off_t off, size_t len, size_t readahead,
    int pagemap, struct os_folio *fo);
void os_folio_release(struct os_folio *);

/*
 * Opens /proc/self/pagemap, by which os_fetch_folio checks that a mapping is one folio (PAGEMAP_SCAN, Linux
 * 6.7).  Returns a descriptor, or -errno where that is not possible.  Call it before the process changes its
 * user, which removes the right to read that file.
 */
int os_pagemap_open(void);

/*
 * Returns the number of pipes that may keep folios of `bytes` bytes in all: 0 if RLIMIT_MEMLOCK
 * permits locking the folios, else at most an eighth of RLIMIT_NOFILE, and at most 256.
 */
unsigned os_folio_pipes(size_t bytes);

/*
 * os_unmark removes the read-ahead mark of the folio at `off`.  The removal starts a read, unless the
 * `readahead` bytes behind the folio's first page, or all bytes up to the end of the file, are
 * resident.  os_can_unmark returns true if these bytes are resident, and false if they are not, or
 * if the process may not check them (cachestat(2)).  Call both on disk threads.
 */
void os_unmark(int fd, off_t off);
bool os_can_unmark(int fd, off_t off, size_t readahead);

/* Identifies a version of a file. */
struct os_version {
	off_t ov_size;
	struct timespec ov_mtime;
	struct timespec ov_ctime;
};

/*
 * Opens the file again for direct reads (O_DIRECT), which bypass the page cache.  Fills in the file's
 * version, and sets *align to the alignment of a read's offset, length and address in bytes.  Returns a
 * descriptor, or -errno; -EOPNOTSUPP if the file system does not report direct reads.  Only for files of
 * local file systems.
 */
int os_direct_open(int fd, struct os_version *, size_t *align);

/*
 * Reads `len` bytes, rounded up to a multiple of `align`, or up to the end of the file, through a
 * descriptor of os_direct_open.  Waits for the disk.  Returns how many bytes were read, or -errno.
 */
long os_direct_read(int fd, off_t off, void *to, size_t len, size_t align);

/*
 * Returns true if st_dev is the number of a block device.  Other file systems, such as NFS, FUSE, btrfs and ZFS,
 * get a number at each mount, possibly the earlier number of another file system.
 */
bool os_is_block_device(dev_t);

/*
 * Writes the path of an open file into `path`.  Returns its length, or -errno; -ENAMETOOLONG if `size` bytes are
 * too few.  Does not wait.  Only on Linux; elsewhere returns -EOPNOTSUPP.
 */
long os_path(int fd, char *path, size_t size);

/*
 * Fills in the version of an open file.  Waits for the server of a network file system, also if the kernel has
 * attributes of the file in its cache.  Returns 0 or -errno.
 */
int os_fresh_version(int fd, struct os_version *);

/*
 * Maps `len` bytes, a power of two; OS_FOLIO bytes as one huge page if possible.  os_unmap releases them.  Returns
 * NULL on failure.
 */
void *os_huge_page(size_t len);

/* Evicts clean pages of a range from the page cache. */
void os_drop(int fd, off_t off, size_t len);

/*
 * Has the buffers of FreeBSD's read(2) release the pages of a range, which stay in the page cache.  May
 * wait for buffers that are being read.  Does nothing on Linux.
 */
void os_unbuffer(int fd, off_t off, size_t len);

/*
 * Return the offset of the first byte at `off` or later that lies in data, or in a hole.  The end
 * of the file counts as a hole; os_seek_data returns OFFSET_MAX if no data follows.  Return -errno,
 * -EINVAL if the file system cannot tell.  Both read the block map, so they may wait for the disk,
 * and both move the descriptor's file offset.
 */
off_t os_seek_data(int fd, off_t off);
off_t os_seek_hole(int fd, off_t off);

/* Returns the most bytes that one advice covers on a device, at least 64 KiB.  Reads sysfs. */
size_t os_advice_limit(dev_t dev);

/*
 * Returns true if os_fetch_folio reads exactly one folio on this device, and sets *readahead to the
 * device's read-ahead in bytes.  Reads sysfs.
 */
bool os_folios(dev_t dev, size_t *readahead);

/* Formats st_dev as the system's tools do: "254:0"; on FreeBSD also "0x8700ff01". */
void os_dev_name(uint64_t dev, char *text, size_t size);

/*
 * Create, signal, clear and close a pair of descriptors by which one thread wakes another.  fds[0] is to
 * poll and clear, fds[1] to signal; they may be the same descriptor.  os_wake_signal returns false if
 * fds[0] may not be readable now.
 */
int os_wake_create(int fds[2]);
bool os_wake_signal(int fd);
void os_wake_clear(int fd);
void os_wake_close(int fds[2]);

/* Memory that this process may use, including the page cache. */
struct os_memory {
	uint64_t om_bytes;
	bool om_limited; /* true if a control group sets om_bytes */
	/* True if socket memory counts too (cgroup v2), so that sending may evict pages. */
	bool om_sockets;
};

/* Fills in the struct.  Reads /proc and control groups. */
void os_memory(struct os_memory *);

/*
 * Opens the counter that os_anonymous reads.  Returns a descriptor or -errno (-ENOSYS if the system has
 * no such counter).
 */
int os_anonymous_open(void);

/* Returns the process's anonymous memory in bytes, or -errno.  Takes 2 us. */
int64_t os_anonymous(int fd);

/*
 * Lets each new thread map its heap in one piece and keep it.  Growing a heap needs the mmap lock of the
 * process, which a disk thread may hold while it reads.  Call before threads are started.  Reads /proc.
 */
void os_prepare_heap(void);

/*
 * Releases the whole pages of a piece of malloc(3)ed memory to the kernel; their contents are lost.
 * Returns the number of released bytes that were resident, or 0 where malloc(3) itself releases
 * free memory.  May wait.
 */
size_t os_release(void *, size_t len);

/*
 * Releases free whole pages of all heaps to the kernel.  Holds the lock of each heap for 0.1 ms per MiB.
 */
void os_trim(void);

/*
 * Locks the program and its libraries in memory.  Returns 0, or -errno if some pages could only be read.
 */
int os_lock_program(void);

/* Locks libcrypto, which os_lock_program leaves out. */
int os_lock_crypto(void);

/*
 * Reads the target of a symbolic link and its owner.  Returns 0, 1 if only open(2) can follow the
 * link, as in Linux' /proc, or -errno.
 */
int os_read_link(const char *path, char *to, size_t size, uid_t *owner);

/*
 * Has the kernel kill this process when its parent, the process `parent`, ends.  Returns 0, or -ESRCH if
 * the parent has ended already.  A `parent` of 0 cancels this, and so does a change of the process's
 * user: call again after that.
 */
int os_follow_parent(pid_t parent);

/*
 * Closes inherited descriptors except the standard files.  A descriptor without FD_CLOEXEC is an
 * inherited one, since the process sets FD_CLOEXEC on all its own.  Call before threads are started.
 * Reads /proc.
 */
int os_close_inherited(void);

/*
 * Returns true if the process may not change its groups because the one who created its user namespace could
 * map only the own user (user_namespaces(7)).  Reads /proc.
 */
bool os_one_user(void);

/*
 * Prepares a change of the process's user, if sandbox_os_confine follows: programs that the process
 * starts get no capabilities.  If `keep` is true, the process keeps the right to check pages of other
 * users' files across the change (CAP_FOWNER on Linux).  Returns 0, 1 if that right is missing or cannot
 * be kept, or -errno.
 */
int sandbox_os_begin(bool keep);

/*
 * Confines the process for good, once it has opened everything: it gains no rights by exec, drops its
 * capabilities (unless it is root, and except for oc_keep), reads only below oc_roots, writes to no file
 * and creates no name, starts no program, opens no socket, and makes no memory executable.  Call before
 * threads are started.
 *
 * Returns 0.  Returns 1 if a restriction is missing because the kernel or the container lacks it, or if
 * files below oc_roots can still be truncated (Landlock before Linux 6.2).  Returns -errno if a
 * restriction failed; then the process must exit.  Sets `missing` to a text that names the missing
 * restrictions or the one that failed, or to the empty string.
 */
struct os_confine {
	/* Directories that stay readable, with all that is mounted below them. */
	const int *oc_roots;
	size_t oc_nroots;
	bool oc_async; /* true if io_uring is used, which bypasses the filter */
	/* true if files that are open for writing may be truncated */
	bool oc_cuts;
	/* true if a tier is written and locked (lib/disk/tier.h) */
	bool oc_tier;
	bool oc_ktls; /* true if TLS keys may be passed to the kernel */
	/* true to keep CAP_FOWNER if a seccomp filter guards it */
	bool oc_keep;
	/* reason why the right of oc_keep was dropped, or NULL */
	const char *oc_gave_up;
};

int sandbox_os_confine(struct os_confine *, char *missing, size_t size);

/*
 * Limits what the process can do with a descriptor, for good, where the kernel has such limits
 * (capsicum(4)).  Copies of the descriptor that are made later, and connections that it accepts, have the
 * same limits; other copies do not.  Returns 0 or -errno.
 */
enum os_rights {
	OS_RIGHTS_LISTENER, /* accept, and what connections need */
	OS_RIGHTS_CHANNEL,  /* send and receive messages */
	OS_RIGHTS_LOG,	    /* append, and truncate an incomplete line */
};

int os_limit_rights(int fd, enum os_rights);

/* Fills a buffer with unpredictable bytes, without waiting.  Returns 0 or -errno. */
int os_random(void *to, size_t len);

/* Creates anonymous shared memory of this size, which write(2) may extend.  Returns a descriptor or -errno. */
int os_memfd(const char *name, size_t size);

/*
 * Allocates zeroed memory for secrets: it is left out of core dumps, zeroed in a child of fork(2), and
 * locked if RLIMIT_MEMLOCK permits.  Returns NULL if memory is short.
 */
void *os_secret_create(size_t size);

/* Wipes and frees memory of os_secret_create.  The pointer may be NULL. */
void os_secret_destroy(void *, size_t size);

/*
 * Removes the process's limit of locked memory.  Returns 0 or -errno (-EPERM: CAP_SYS_RESOURCE is
 * needed).
 */
int os_lift_memlock(void);

/*
 * Forbids core dumps of this process, and tracing by other processes of its user.  A change of the
 * process's user cancels both.  Returns 0 or -errno.
 */
int os_forbid_cores(void);

/* Sets path to the path of the running program.  Returns 0 or -errno. */
int os_program(char *path, size_t size);

/*
 * The calling thread's voluntary context switches, one for each sleep, and its major page faults since
 * its start.  Reading them takes 0.3 us.
 */
struct os_switches {
	uint64_t sw_slept;
	uint64_t sw_faults;
};

int os_switches(struct os_switches *);

/* Returns the processor that the calling thread runs on. */
unsigned os_cpu(void);

/* The directory of sockets and pid files: hier(7). */
extern const char os_run_directory[];

/* Names the calling thread.  The name has at most 15 bytes, since Linux refuses longer ones. */
void os_thread_name(const char *name);

/* Names the process for ps(1).  Call on its main thread. */
void os_process_name(const char *name);

/* Names the calling disk thread, and lowers its priority below that of the loops. */
void os_thread_fetcher(void);

/* Lowers the priority of the calling thread, which computes for the loops. */
void os_thread_helper(void);

/* Joins a thread that has ended.  Fails with -EBUSY or -ETIMEDOUT at once if the thread still runs. */
int os_thread_reap(pthread_t);

/*
 * Waits as sem_wait(3) does, but at most `us` microseconds of CLOCK_MONOTONIC.  Returns 0 or
 * -ETIMEDOUT.
 */
int os_sem_wait(sem_t *, uint64_t us);

#define OS_SAMPLE ((size_t)64 << 10) /* distance of residency samples, bytes */

#endif
