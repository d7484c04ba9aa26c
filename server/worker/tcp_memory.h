/*
 * tcp_memory: detects that the kernel uses much memory for TCP on the whole machine (tcp_mem in
 * tcp(7)).  When that memory is exhausted, the kernel resets connections, and not necessarily the
 * connections that use most of this memory.
 *
 * The socket of a client that stops reading fills with up to 4 MiB (tcp_wmem), if the client has
 * read 100 KB quickly or is on the same machine.  So under pressure the server limits the unsent
 * bytes of a socket (TCP_NOTSENT_LOWAT); docs/security/slow-clients.md has measurements.
 *
 * All workers of the process check one object.  Times are microseconds.
 */
#ifndef SERVER_WORKER_TCP_MEMORY_H
#define SERVER_WORKER_TCP_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of the unsent bytes in a socket (TCP_NOTSENT_LOWAT). */
enum tcp_level {
	TCP_ALL,    /* the default of the system */
	TCP_LESS,   /* 128 KiB */
	TCP_LITTLE, /* 4 KiB: see unacked.h */
};

struct tcp_memory {
	int pr_fd;	   /* kernel's statistics; negative if not read */
	uint64_t pr_limit; /* limit of the control group, bytes, or 0 */
	/* bytes of pr_limit that sockets may hold (unacked.h), or 0 */
	uint64_t pr_share;
	uint64_t pr_most;	  /* threshold of pressure, bytes */
	size_t pr_unsent;	  /* unsent bytes per socket under pressure */
	_Atomic uint64_t pr_next; /* time of the next check */
	atomic_bool pr_on;	  /* true under pressure */
};

/*
 * Creates the check.  Pressure begins above `most` bytes; 0 means never, and TCP_MEMORY_AUTO
 * (conf.h) means half of the memory up to which the kernel sees no pressure.  Returns 0.  Returns
 * -errno if the kernel's statistics cannot be opened (-ENOSYS on a system without them); *out is
 * then a check that never detects pressure.  Returns -ENOMEM, with *out NULL, if memory is short.
 */
int tcp_memory_create(uint64_t most, struct tcp_memory **out);
void tcp_memory_destroy(struct tcp_memory **);

/*
 * Checks for pressure, at most once in 10 ms.  A read takes 3 us with two CPUs, since the kernel
 * adds up the memory of all CPUs.  Returns true, to one caller, when pressure begins.  Pressure
 * ends below three quarters of pr_most.
 */
bool tcp_memory_look(struct tcp_memory *, uint64_t now);

static inline bool
tcp_memory_is_short(const struct tcp_memory *pr)
{
	return atomic_load_explicit(&pr->pr_on, memory_order_relaxed);
}

/* Limits the unsent bytes of the socket. */
void tcp_memory_apply(const struct tcp_memory *, enum tcp_level, int sock);

#endif
