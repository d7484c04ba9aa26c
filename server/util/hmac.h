/*
 * hmac: HMAC-SHA256 (RFC 2104, FIPS 180-4) by OpenSSL's libcrypto: hmac(3ossl).
 *
 * A context is of one thread, and takes one message after the other; it asks for no memory after it
 * was made, and for no system call.  A short message takes less than a microsecond.
 */
#ifndef SERVER_UTIL_HMAC_H
#define SERVER_UTIL_HMAC_H

#include <stdbool.h>
#include <stddef.h>

#define HMAC_LEN ((size_t)32)

struct hmac;

/* NULL: there is no memory, or no libcrypto that can do it. */
struct hmac *hmac_create(void);
void hmac_destroy(struct hmac **);

/* A message: begin, parts of it, end. */
void hmac_begin(struct hmac *, const void *key, size_t len);
void hmac_add(struct hmac *, const void *data, size_t len);

/* False: it cannot be told; out is zero. */
bool hmac_end(struct hmac *, unsigned char out[HMAC_LEN]);

/* Compares in a time that depends on the length alone. */
bool hmac_same(const void *, const void *, size_t len);

#endif
