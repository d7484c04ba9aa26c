/*
 * unacked: counts the bytes that a worker's sockets hold, and bounds them where a control group
 * limits memory.
 *
 * Pages of files that sendfile(2) gave to a socket count for the group until the client
 * acknowledges them (v1 and v2), and so does the socket's own memory (v2).  The kernel can evict
 * neither.  Without a bound, seven hundred clients that request a file and read nothing fill the
 * group, and the kernel kills the process.
 *
 * Bytes are added when the worker writes them.  When the sum nears its bound, the worker queries the sockets
 * with SIOCOUTQ, in turn, some of them every 10 ms, and subtracts the bytes that were acknowledged.  It also
 * queries a few before the level rises, since the sum may be too high by then.  Runs on the loop's thread.
 */
#ifndef SERVER_WORKER_UNACKED_H
#define SERVER_WORKER_UNACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/worker/tcp_memory.h"

/* A connection's entry in un_items. */
struct unacked_item {
	uint64_t ui_bytes; /* bytes counted; 0 if not in the list */
	int ui_sock;
	TAILQ_ENTRY(unacked_item) ui_link;
};

struct unacked {
	uint64_t un_share; /* bytes that sockets may hold; 0 for no limit */
	uint64_t un_bytes; /* upper bound of the bytes that sockets hold */
	uint64_t un_round; /* time of the last round of queries, microseconds */
	unsigned un_writes; /* writes since then */
	enum tcp_level un_level;
	TAILQ_HEAD(, unacked_item) un_items;
};

void unacked_init(struct unacked *, uint64_t share);

/* Adds the bytes that the worker wrote to the socket.  Returns true if TCP_LITTLE begins. */
bool unacked_gave(
    struct unacked *, struct unacked_item *, int sock, uint64_t bytes);

/* Subtracts the socket's bytes.  Call before the socket is closed. */
void unacked_forget(struct unacked *, struct unacked_item *);

/* Subtracts acknowledged bytes when the sum nears its bound.  Call four times a second. */
void unacked_tick(struct unacked *);

#endif
