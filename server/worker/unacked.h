/*
 * unacked: bytes that the sockets of a worker hold, and how much that is of what they may hold
 * together.  Only where a control group limits memory.
 *
 * What a client has not acknowledged counts for the group: pages of files that sendfile(2) gave to
 * a socket stay in memory until then (v1 and v2), and so does the socket's own memory (v2).  Neither
 * can be evicted.  Seven hundred clients that ask for a file and read nothing would otherwise fill
 * the group: then nothing else stays in memory, and the kernel kills the process.
 *
 * What is given is counted at once; what was acknowledged is asked (SIOCOUTQ) only when the sum
 * matters: of a few sockets each time, the one first that was asked longest ago.  Loop's thread.
 */
#ifndef SERVER_WORKER_UNACKED_H
#define SERVER_WORKER_UNACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/worker/tcp_memory.h"

/* Of a connection. */
struct unacked_item {
	uint64_t ui_bytes; /* 0: not in the list */
	int ui_sock;
	TAILQ_ENTRY(unacked_item) ui_link;
};

struct unacked {
	uint64_t
	    un_share; /* bytes that sockets may hold; 0: there is no limit */
	uint64_t un_bytes; /* that they hold, or less */
	enum tcp_level un_level;
	TAILQ_HEAD(, unacked_item) un_items;
};

void unacked_init(struct unacked *, uint64_t share);

/* The socket was given so many bytes.  True: TCP_LITTLE begins. */
bool unacked_gave(
    struct unacked *, struct unacked_item *, int sock, uint64_t bytes);

/* The socket is to be closed. */
void unacked_forget(struct unacked *, struct unacked_item *);

/* A few times a second. */
void unacked_tick(struct unacked *);

#endif
