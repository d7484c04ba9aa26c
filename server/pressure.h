/*
 * pressure: whether the kernel has taken much memory for TCP, of the whole machine: tcp(7),
 * tcp_mem.  When it has no more, it resets connections, and not those of who took it.
 *
 * A client that stops reading leaves in its socket what that takes, which is up to 4 MiB
 * (tcp_wmem) as soon as the client has been quick for 100 KB.  A thousand of them take all
 * that a machine of 24 GiB has, before send_timeout ends the first.  So while there is
 * pressure a socket is given only so much at a time (TCP_NOTSENT_LOWAT) that each leaves
 * 0.2 MiB: docs/security.md has the figures.
 *
 * One of each worker, whose thread alone uses it.  Times are microseconds.
 */
#ifndef SERVER_PRESSURE_H
#define SERVER_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_AUTO UINT64_MAX

struct pressure {
	int pr_fd;	  /* -1: never asked */
	uint64_t pr_most; /* bytes */
	uint64_t pr_next; /* it is asked again then */
	bool pr_on;
};

/*
 * most: bytes of memory for TCP above which there is pressure, 0 for never; PRESSURE_AUTO:
 * half of what the kernel itself calls none.  -errno: it cannot be asked, and there is none;
 * -ENOSYS: on this system.  Opens a file.
 */
int pressure_start(struct pressure *, uint64_t most);
void pressure_end(struct pressure *);

/*
 * Asks again, but not more often than each 10 ms: it takes 3 us.  True: it has begun.  It
 * ends below three quarters of most.
 */
bool pressure_look(struct pressure *, uint64_t now);

/* A socket is to take no more than is good, or, if there is no pressure, all that it can. */
void pressure_apply(const struct pressure *, int sock);

#endif
