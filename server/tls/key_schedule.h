/*
 * key_schedule: derives the secrets of TLS 1.3 (RFC 8446, 7.1) from each other, for record_key.h and for OpenSSL.
 *
 * OpenSSL computes a handshake's secrets by an algorithm named TLS13-KDF, which a provider can replace
 * (provider-kdf(7)).  The provider "pagewise" does, for two reasons.  It stores the traffic secrets, which OpenSSL
 * 3.0 otherwise reveals only as text, printed byte by byte.  And it does not search for the digest by name in each of the
 * 22 derivations of a handshake.  Together these take a fifth of the instructions of a resumed handshake.
 */
#ifndef SERVER_TLS_KEY_SCHEDULE_H
#define SERVER_TLS_KEY_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

/* property query with which SSL_CTX_new_ex(3) makes a context that uses the provider */
#define KEY_SCHEDULE_QUERY "?provider=pagewise"

struct evp_md_st; /* OpenSSL's type */
struct record_key;

/*
 * Loads the provider.  Call before threads start.  Returns 0, -ENOMEM, or -ENOTSUP if OpenSSL's configuration prefers
 * the TLS13-KDF of another provider.
 */
int key_schedule_prepare(void);

/*
 * Has the handshake steps of this thread store the traffic secrets in rk_secret, until the next call.  Both keys
 * are NULL if nothing is to be stored.
 */
void key_schedule_store(struct record_key *writes, struct record_key *reads);

/* Computes HKDF-Expand-Label with an empty context, of at most one digest.  Returns false if memory is short. */
bool key_schedule_expand(const struct evp_md_st *, const void *secret,
    const char *label, void *to, size_t len);

#endif
