/*
 * tcp_memory: whether the kernel has taken much memory for TCP, of the whole machine: tcp(7),
 * tcp_mem.  When that is exhausted, it resets connections, and not necessarily those
 * that use most of it.
 *
 * A client that stops reading fills its socket, with up to 4 MiB (tcp_wmem) as soon as
 * the client has been quick for 100 KB, or at once over loopback.  So under pressure a
 * socket accepts less at a time (TCP_NOTSENT_LOWAT), and each holds 0.2 MiB:
 * docs/security/slow-clients.md has the figures.
 *
 * One object for the process, which all workers check.  Times are microseconds.
 */
#ifndef SERVER_WORKER_TCP_MEMORY_H
#define SERVER_WORKER_TCP_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes a socket may hold that its client has not acknowledged. */
enum tcp_level {
	TCP_ALL,    /* as many as the kernel accepts */
	TCP_LESS,   /* 128 KiB */
	TCP_LITTLE, /* 4 KiB: see unacked.h */
};

struct tcp_memory {
	int pr_fd;		  /* -1 if never read */
	uint64_t pr_limit;	  /* limit of the control group, bytes, or 0 */
	uint64_t pr_share;	  /* bytes of it for sockets: see unacked.h */
	uint64_t pr_most;	  /* pressure begins above it, bytes */
	size_t pr_unsent;	  /* bytes, for os_limit_unsent */
	_Atomic uint64_t pr_next; /* time of the next check */
	atomic_bool pr_on;
};

/*
 * Creates the check.  most is in bytes; 0 means never, and TCP_MEMORY_AUTO (conf.h) half of the memory
 * up to which the kernel sees no pressure.  Opens a file.  Returns 0, or -errno if the memory cannot
 * be read, so that there is never pressure (-ENOSYS on a system without the file).  Returns -ENOMEM,
 * with *out NULL, if memory is short.
 */
int tcp_memory_create(uint64_t most, struct tcp_memory **out);
void tcp_memory_destroy(struct tcp_memory **);

/*
 * Reads the memory at most once in 10 ms: that takes 3 us with two CPUs, since the kernel adds up what
 * each has.  Returns true, to one caller, when pressure begins.  Pressure ends below three quarters of
 * pr_most.
 */
bool tcp_memory_look(struct tcp_memory *, uint64_t now);

static inline bool
tcp_memory_is_short(const struct tcp_memory *pr)
{
	return atomic_load_explicit(&pr->pr_on, memory_order_relaxed);
}

/* Limits what the socket may hold. */
void tcp_memory_apply(const struct tcp_memory *, enum tcp_level, int sock);

#endif
