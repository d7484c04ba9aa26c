/*
 * tcp_memory: whether the kernel has taken much memory for TCP, of the whole machine: tcp(7),
 * tcp_mem.  When that is exhausted, it resets connections, and not necessarily those
 * that use most of it.
 *
 * A client that stops reading fills its socket, with up to 4 MiB (tcp_wmem) as soon as
 * the client has been quick for 100 KB, or at once over loopback.  So under pressure a
 * socket gets less at a time (TCP_NOTSENT_LOWAT), and each holds 0.2 MiB:
 * docs/security/slow-clients.md has the figures.
 *
 * One of the process; all workers look.  Times are microseconds.
 */
#ifndef SERVER_WORKER_TCP_MEMORY_H
#define SERVER_WORKER_TCP_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much a socket may hold that its client has not acknowledged. */
enum tcp_level {
	TCP_ALL,    /* what the kernel takes */
	TCP_LESS,   /* 128 KiB */
	TCP_LITTLE, /* 4 KiB: see unacked.h */
};

struct tcp_memory {
	int pr_fd;	   /* -1: never asked */
	uint64_t pr_limit; /* of the control group, bytes; 0: there is none */
	uint64_t pr_share; /* of it, that sockets may hold: see unacked.h */
	uint64_t
	    pr_most; /* bytes of memory for TCP; above it there is pressure */
	size_t pr_unsent;	  /* bytes: see os_limit_unsent */
	_Atomic uint64_t pr_next; /* it is asked again then */
	atomic_bool pr_on;
};

/*
 * most: 0 for never; conf.h's TCP_MEMORY_AUTO: half of that up to which the kernel sees
 * none.  Opens a file.  -errno: it cannot be asked, and there is never any; -ENOSYS: on this system; or no
 * memory, and *out is NULL.
 */
int tcp_memory_create(uint64_t most, struct tcp_memory **out);
void tcp_memory_destroy(struct tcp_memory **);

/*
 * Asks again, but not more often than each 10 ms: it takes 3 us where there are two CPUs, since
 * the kernel adds up what each has.  True, to one caller: pressure has begun.  It ends
 * below three quarters of pr_most.
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
