/*
 * transport: the socket of a connection, from accept to close: what is received from it, sent
 * to it and asked of it.  What lib/send sends it gives to tr_fd or tr_sink itself; all else that
 * goes out goes by transport_send.  With TLS or without: tr_tls.  The worker's thread; errors are
 * -errno.
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
	int tr_fd;		 /* owned; -1: closed */
	struct pw_sink *tr_sink; /* sink of answers, or NULL: tr_fd */
	struct tls *tr_tls;	 /* owned; NULL: none */
#ifdef PW_INSIDE
	struct inside_sink tr_inside;
#endif
};

/* Takes over a socket that was accepted. */
void transport_open(struct transport *, int fd);
void transport_close(struct transport *);

/* And frees what it has: a sink, too, which an answer may use until it has ended. */
void transport_destroy(struct transport *);

/* TLS is spoken on it from now on: tr_tls.  False: no memory. */
bool transport_start_tls(struct transport *, struct tls_context *);

/* Its handshake is done; or it was not TLS. */
void transport_tls_opened(struct transport *);
void transport_stop_tls(struct transport *);

/* Bytes; 0: the client's end; -EAGAIN: there is nothing now. */
long transport_recv(struct transport *, void *, size_t room);

/* Nothing is left to be received now.  less: the last call found less than it had room for. */
static inline bool
transport_is_drained(const struct transport *tr, bool less)
{
	return tr->tr_tls == NULL ? less : tls_is_drained(tr->tr_tls);
}

/* The same bytes come again with the next call; the socket's own, before TLS begins. */
long transport_peek(const struct transport *, void *, size_t room);
long transport_skip(const struct transport *, void *, size_t len);

/* It was reset: nothing can be sent any more. */
bool transport_is_broken(const struct transport *);

/* No bytes lie in it that were not read yet; its end may. */
bool transport_nothing_came(const struct transport *);

/* Returns true if the socket has more bytes than `known`, which transport_peek returned. */
bool transport_has_more(const struct transport *, size_t known);

/* Bytes, or -errno. */
long transport_send(struct transport *, const char *, size_t len);
long transport_sendv(struct transport *, struct iovec *, int n);

/* Bytes that were given to it, and the client has not acknowledged. */
static inline uint64_t
transport_unacked(const struct transport *tr)
{
	uint64_t n = pw_unacked(tr->tr_fd);

	return tr->tr_tls == NULL ? n : n + tls_unsent(tr->tr_tls);
}

/* The kernel's data for it waits for a disk: see pw_awaits_disk. */
static inline bool
transport_awaits_disk(const struct transport *tr)
{
	return pw_awaits_disk(tr->tr_fd);
}

/* It takes something now; the event that says so may be late. */
bool transport_has_room(const struct transport *);

/* Shuts our end down: no more data follows.  0 or -errno; -EAGAIN: it is full, call again. */
int transport_end(struct transport *);

/* Says that no more follows, if TLS is spoken and there is room: before the close. */
void transport_say_end(struct transport *);

/* Both ends: what lies in it is sent, nothing more is read. */
void transport_cut(struct transport *);

/* The close will be a reset: the kernel forgets what it has for the client. */
void transport_forget(struct transport *);

#endif
