/*
 * kernel: files, their pages in the page cache, disks and descriptors of the simulated machine.
 */
#ifndef TESTS_SIM_KERNEL_H
#define TESTS_SIM_KERNEL_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "tests/sim/world.h"

#define PAGE	    4096
#define FOLIO_PAGES 512 /* pages of a large folio */
#define DISKS_MAX   3
#define NAMES_MAX   12 /* names in the root of a disk */
#define INODES_MAX  64
#define WRITES_MAX  64 /* versions of a file */
#define FDS_MAX	    2048

/* ------------------------------------------------------------------ machine */
struct machine {
	uint64_t ma_memory;    /* bytes */
	uint64_t ma_memlock;   /* RLIMIT_MEMLOCK, bytes */
	unsigned ma_readahead; /* read_ahead_kb */
	bool ma_cachestat;     /* Linux 6.5 */
	bool ma_cachestat_all; /* also for files of others: before 6.13 */
	bool ma_pagemap;       /* PAGEMAP_SCAN: Linux 6.7 */
	bool ma_folios;	       /* a fault reads 2 MiB */
	bool ma_direct;	       /* STATX_DIOALIGN: Linux 6.1 */
	bool ma_group;	       /* a control group with a limit */
	bool ma_vmstat;	       /* /proc/vmstat can be read */
};
extern struct machine machine;
void machine_draw(void);
/* Returns the text of a file below /proc or /sys, or NULL. */
const char *machine_text(const char *path);
unsigned machine_blocks(void);

/* --------------------------------------------------------------------- disks */
enum kind { EXT4, OVERLAY, NFS, TMPFS, KINDS };
struct disk {
	dev_t di_dev;
	enum kind di_kind;
	uint64_t di_latency, di_page; /* nanoseconds of a request, of a page */
	uint64_t di_free;	      /* time at which its head is free */
	uint64_t di_hung;	      /* time until which it hangs */
	uint64_t di_ill;	      /* last time at which it hung or failed */
	bool di_hangs, di_copies, di_nowait;
	struct name {
		char na_text[16];
		unsigned na_inode;
		bool na_cached; /* in the cache of names */
	} di_names[NAMES_MAX];
	unsigned di_nnames;
};
extern struct disk disks[DISKS_MAX];
void disk_draw(void);
/* Time at which a request ends that begins now. */
uint64_t disk_end(struct disk *, unsigned pages);
/* Waits for a request that is not about a page, such as a lookup. */
void disk_wait(struct disk *);
/* Fails if the present task is a loop whose send path does not wait: it would wait for the disk in `call`. */
void disk_is_waited_for(const char *call);

/* --------------------------------------------------------------------- files */
enum state { ABSENT, FLIGHT, RESIDENT };
enum gone { GONE_NEVER, GONE_RECLAIMED, GONE_DROPPED, GONE_CUT, GONE_FAILED };

struct page {
	uint32_t pg_version; /* of the bytes; 0 in a hole */
	uint32_t pg_epoch;   /* counts how often it left the cache */
	uint32_t pg_request; /* the read in flight */
	uint16_t pg_kept;    /* references by locks, pipes, sockets */
	uint16_t pg_maps;
	uint8_t pg_state, pg_gone;
	bool pg_folio, pg_by_library;
	uint64_t pg_when; /* time at which it left the cache */
	uint64_t pg_used;
	uint64_t pg_mark; /* pages reclaimed before the last use */
	uint8_t pg_uses;  /* since it came, at most 2 */
};

struct inode {
	uint64_t in_number;
	struct disk *in_disk;
	off_t in_size;
	unsigned in_version, in_links, in_opens, in_npages;
	unsigned in_name; /* number of its name, also after its name went */
	time_t in_time; /* mtime and ctime; their nanoseconds are the version */
	uint64_t in_removed; /* time at which its name went */
	bool in_owned, in_bad;
	struct page *in_pages;
	struct {
		off_t wr_from, wr_end, wr_size;
		uint64_t wr_when;
	} in_writes[WRITES_MAX]; /* [v]: what version v wrote */
};
extern struct inode inodes[INODES_MAX];
extern unsigned ninodes;

unsigned inode_create(struct disk *, off_t size);
/* Overwrites pages, grows or truncates the file. */
void inode_write(struct inode *);
/* Returns the version that a page has in a version of the file. */
uint32_t inode_version_at(const struct inode *, off_t page, unsigned version);
/* Returns the page's bytes in this version. */
const char *inode_bytes(const struct inode *, off_t page, uint32_t version);
void inode_release(struct inode *);

/* ---------------------------------------------------------------- page cache */
struct page *page_at(struct inode *, off_t off);
/* Begins reads of the absent pages. */
void pages_read(struct inode *, off_t from, off_t end, bool by_library);
/*
 * Makes the page resident, with those of the `len` bytes that the call wants, or reads ahead if len is 0.  Returns -EIO.  A disk thread waits.  A loop must not; it fails unless the page was
 * lately reclaimed, which the kernel may do between check and send.
 */
int page_need(struct inode *, off_t off, size_t len, const char *call);
/* Fails the world as page_need does, for a call that starts a read. */
void page_excuse(struct inode *, struct page *, const char *call);
void page_drop(struct inode *, off_t from, off_t end);
void page_cut(struct inode *, struct page *);
/* A reference that keeps a page, until page_let_go of the same epoch. */
uint32_t page_keep(struct page *);
void page_let_go(struct page *, uint32_t epoch);
bool pages_are_resident(struct inode *, off_t from, off_t end);
/* Called at each point: reclaims pages. */
void kernel_pressure(void);
uint64_t kernel_reclaimed(void);
/* Remembers where a loop is, so that reclaim finds the worst moment. */
void kernel_call(const char *call, struct inode *, off_t off);

/* -------------------------------------------------------------- descriptors */
enum fd_kind {
	FD_FREE,
	FD_FILE,
	FD_DIR,
	FD_TEXT,
	FD_NULL,
	FD_EVENT,
	FD_PIPE_IN,
	FD_PIPE_OUT,
	FD_SOCKET,
	FD_PAGEMAP,
	FD_LISTEN,
	FD_EPOLL,
	FD_CHANNEL
};
struct fd {
	enum fd_kind fd_kind;
	bool fd_random, fd_direct, fd_path;
	struct inode *fd_inode;
	struct disk *fd_disk;
	const char *fd_text;
	struct pipe_sim *fd_pipe;
	struct tcp_sock *fd_sock;
	uint64_t fd_count;     /* of an eventfd */
	const void *fd_waiter; /* woken when an eventfd is written */
	struct listener *fd_listener;
	struct epoll_sim *fd_epoll;
};
extern struct fd fds[FDS_MAX];
int fd_new(enum fd_kind);
/* Returns the descriptor, or NULL with EBADF. */
struct fd *fd_of(int fd);
unsigned fds_open(void);
int fd_open_inode(struct inode *, int flags);

/* ------------------------------------------------------------------ mappings */
struct map *map_of(const void *mem);
/* Resolves an address in a mapping: its file, and where. */
struct inode *map_place(struct map *, const void *mem, off_t *off);
unsigned maps_left(void);

/* ------------------------------------------------------------------- sockets */
#define SEGMENTS 8192

/* Bytes of one page, or of memory. */
struct segment {
	struct inode *sg_inode; /* NULL for copied memory */
	off_t sg_off;
	unsigned sg_len;
	uint32_t sg_epoch, sg_version;
};

/* What the client's end of a socket does about what is sent: memory, or a page of a file. */
struct sock_end {
	void (*se_memory)(void *, const char *mem, size_t len);
	void (*se_page)(void *, const struct inode *, off_t off, size_t len,
	    uint32_t version);
	void (*se_queued)(void *);
	void (*se_writable)(void *);
};

struct tcp_sock {
	const struct sock_end *so_end;
	void *so_client;
	unsigned so_room, so_queued;
	bool so_full, so_reset;
	uint64_t so_sent; /* time of the last send */
	struct segment so_segments[SEGMENTS];
	unsigned so_first, so_count;
	struct wire *so_wire; /* of a server's socket: net.c */
};

struct pipe_sim;
struct tcp_sock *sock_create(
    const struct sock_end *, void *client, unsigned room);
int sock_open(struct tcp_sock *);
struct tcp_sock *sock_of(int fd);
void sock_reset(struct tcp_sock *);
/* The client reads up to n bytes.  Returns how many there were. */
unsigned sock_read(struct tcp_sock *, unsigned n);
unsigned sock_queued(const struct tcp_sock *);
bool sock_is_full(const struct tcp_sock *);
void sock_close(struct tcp_sock *);
void pipe_close(struct pipe_sim *);
int pipe_take(struct fd *, void *to, size_t len);

/* The program sends by itself, as a sink does. */
ssize_t __wrap_sendfile(int, int, off_t *, size_t);
ssize_t __wrap_send(int, const void *, size_t, int);

/* ------------------------------------------------------- sockets of a server */
/* Connects to a socket that listens.  Returns NULL if there is none. */
struct tcp_sock *net_connect(
    const struct sock_end *, void *client, unsigned room);
/* The client's end sends, shuts its side down, receives, and leaves. */
void net_write(struct tcp_sock *, const char *mem, size_t len);
void net_shut(struct tcp_sock *);
size_t net_read(struct tcp_sock *, char *to, size_t room);
void net_leave(struct tcp_sock *);
/* Returns true if the server has closed its side, and all was received. */
bool net_ended(const struct tcp_sock *);
void net_keep(struct tcp_sock *, const char *mem, size_t len);
/* Called by close(2), write(2) to an eventfd, and the client's end. */
void net_close(const struct fd *, int number);
void net_changed(int fd);
void net_writable(struct tcp_sock *);
unsigned net_unread(const struct tcp_sock *);
void net_linger(struct tcp_sock *);
/* Has the server's master send a message. */
void net_tell(unsigned kind);

#endif
