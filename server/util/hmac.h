/*
 * hmac: HMAC-SHA256 (RFC 2104, FIPS 180-4) by OpenSSL's libcrypto: hmac(3ossl).
 *
 * A context belongs to one thread and computes one message after the other.  Only hmac_create
 * allocates memory and makes system calls.  A short message takes less than a microsecond.
 */
#ifndef SERVER_UTIL_HMAC_H
#define SERVER_UTIL_HMAC_H

#include <stdbool.h>
#include <stddef.h>

#define HMAC_LEN ((size_t)32)

struct hmac;

/* Creates a context.  Returns NULL if memory is short or libcrypto does not support HMAC-SHA256. */
struct hmac *hmac_create(void);
void hmac_destroy(struct hmac **);

/*
 * hmac_begin begins a message, hmac_add adds the next part of the message, and hmac_end computes
 * the HMAC.
 */
void hmac_begin(struct hmac *, const void *key, size_t len);
void hmac_add(struct hmac *, const void *data, size_t len);

/* Writes the HMAC of the message.  Returns false, and writes zeros, if the computation failed. */
bool hmac_end(struct hmac *, unsigned char out[HMAC_LEN]);

/* Returns true if the bytes are equal.  The time depends only on the length. */
bool hmac_same(const void *, const void *, size_t len);

#endif
