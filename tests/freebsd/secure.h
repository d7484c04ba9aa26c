/*
 * secure: TLS, and HTTP/2 over TLS, for the client of http.h.
 */
#ifndef TESTS_FREEBSD_SECURE_H
#define TESTS_FREEBSD_SECURE_H

#include "tests/freebsd/http.h"

/* Begins TLS on a blocking socket.  Returns NULL if the handshake failed, or chose another protocol. */
struct secure *secure_open(int sock, enum http_kind);

/* Frees the TLS connection, which may be NULL.  The caller closes the socket. */
void secure_close(struct secure *);

/* As send(2) and recv(2) on a non-blocking socket. */
ssize_t secure_send(struct secure *, const void *, size_t);
ssize_t secure_recv(struct secure *, void *, size_t);

/* Sends an HTTP/2 request.  Returns false if that failed. */
bool secure_h2_ask(struct http *, const char *path, const char *range);

/* Takes bytes that arrived: sets ht_status and ht_length, calls http_take_body, and sets ht_done. */
void secure_h2_take(struct http *, const void *, size_t);

#endif
