/*
 * client_tls: what client.c does where the URL says https: TLS 1.3 with
 * TLS_AES_256_GCM_SHA384 and X25519, so that all servers do the same work, and no
 * verification.  A connection is known by its descriptor.  For one thread.
 */
#ifndef CLIENT_TLS_H
#define CLIENT_TLS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

/* Before the first connection; ends the process if it cannot be. */
void client_tls_start(void);

/* All connections offer h2 by ALPN, and what does not take it cannot be connected to. */
void client_tls_http2(void);

/*
 * Goes on with the handshake of a connected descriptor: 0 at its end, EAGAIN
 * until there is more to read, or another errno: EPROTONOSUPPORT without h2.
 */
int client_tls_handshake(int fd);

/*
 * As send(2), of a request that fits into an empty socket buffer.  After EAGAIN the
 * same bytes must come again.
 */
ssize_t client_tls_send(int fd, const void *, size_t);

/*
 * As recv(2), with EPROTO for what is no TLS and ECONNABORTED for an end without
 * close_notify.  Of room for a record or more it takes whole ones only: nothing
 * is left behind of which epoll would not tell.
 */
ssize_t client_tls_recv(int fd, void *, size_t);

/* Whether the handshake was one with a ticket. */
bool client_tls_resumed(int fd);

/* Keeps the next ticket; once there is one, all handshakes begin with it. */
void client_tls_resume(void);
bool client_tls_has_ticket(void);

/* Frees what is kept for the descriptor, and says nothing to the server. */
void client_tls_forget(int fd);

#endif
