/*
 * transport: receives from, sends to and queries the socket of a connection.  lib/send writes to
 * tr_fd or tr_sink directly; transport_send and transport_sendv send everything else.  A connection
 * with TLS has tr_tls.  All functions run on the worker's thread and return errors as -errno.
 */
#ifndef SERVER_CONN_TRANSPORT_H
#define SERVER_CONN_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/pagewise.h"
#include "server/tls/session.h"
#ifdef PW_INSIDE
#include "tests/inside/sink.h"
#endif

struct transport {
	int tr_fd;		 /* owned; -1 once closed */
	struct pw_sink *tr_sink; /* sink of responses; NULL to use tr_fd */
	struct tls *tr_tls;	 /* owned; NULL without TLS */
#ifdef PW_INSIDE
	struct inside_sink tr_inside;
#endif
};

/* Takes ownership of an accepted socket. */
void transport_open(struct transport *, int fd);
void transport_close(struct transport *);

/*
 * Closes the socket and frees the TLS session with its sink.  Call only when no response uses the
 * sink.
 */
void transport_destroy(struct transport *);

/* Starts TLS: creates tr_tls.  Returns false if memory is short. */
bool transport_start_tls(struct transport *, struct tls_context *);

/* Sets tr_sink to the TLS session.  Call when the handshake is complete. */
void transport_tls_opened(struct transport *);

/* Frees the TLS session.  Call if the client sends plain HTTP. */
void transport_stop_tls(struct transport *);

/*
 * Receives at most `room` bytes.  Returns their number, 0 if the client has closed, or -EAGAIN if
 * nothing is pending.
 */
long transport_recv(struct transport *, void *, size_t room);

/*
 * Returns true if nothing more can be received now.  `less` is true if the last transport_recv
 * filled less than its buffer.
 */
static inline bool
transport_is_drained(const struct transport *tr, bool less)
{
	return tr->tr_tls == NULL ? less : tls_is_drained(tr->tr_tls);
}

/*
 * These functions receive raw bytes, before TLS.  transport_peek leaves them in the socket;
 * transport_skip removes them.
 */
long transport_peek(const struct transport *, void *, size_t room);
long transport_skip(const struct transport *, void *, size_t len);

/* Returns true if the connection was reset, so that nothing can be sent. */
bool transport_is_broken(const struct transport *);

/*
 * Returns true if no unread bytes are pending, even if the client has closed.  A part of a TLS
 * record does not count as pending once the session has read it.
 */
bool transport_nothing_came(const struct transport *);

/*
 * Returns true if the socket has more than `known` bytes.  `known` is the result of transport_peek.
 */
bool transport_has_more(const struct transport *, size_t known);

/* transport_send and transport_sendv return the number of bytes sent, or -errno. */
long transport_send(struct transport *, const char *, size_t len);
long transport_sendv(struct transport *, struct iovec *, int n);

/* Returns the number of bytes that the caller has sent and the client has not acknowledged. */
static inline uint64_t
transport_unacked(const struct transport *tr)
{
	uint64_t n = pw_unacked(tr->tr_fd);

	return tr->tr_tls == NULL ? n : n + tls_unsent(tr->tr_tls);
}

/* Returns true if the TLS session holds records of bytes that it has not accepted: tls_holds. */
static inline bool
transport_holds(const struct transport *tr)
{
	return tls_holds(tr->tr_tls);
}

/* Returns true if a part of a TLS record is all that the session has received. */
static inline bool
transport_has_part(const struct transport *tr)
{
	return tr->tr_tls != NULL && tls_has_part(tr->tr_tls);
}

/* Returns true if data for the client waits in the kernel for a disk: see pw_awaits_disk. */
static inline bool
transport_awaits_disk(const struct transport *tr)
{
	return pw_awaits_disk(tr->tr_fd);
}

/* Returns true if the socket has space now, even if no event has reported that yet. */
bool transport_has_room(const struct transport *);

/*
 * Shuts our side down; TLS sends a close_notify first.  Returns 0, -EAGAIN if the socket has no
 * space (call again), or another -errno.
 */
int transport_end(struct transport *);

/* Sends close_notify if the connection uses TLS and the socket has space.  Call before closing. */
void transport_say_end(struct transport *);

/* Shuts both directions down.  The kernel still sends the data in the socket. */
void transport_cut(struct transport *);

/* Makes the close a reset: the kernel discards unsent data. */
void transport_forget(struct transport *);

#endif
