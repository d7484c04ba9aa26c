/*
 * record_key: the keys of records of TLS 1.2 and 1.3 (RFC 8446, 7; RFC 5246, 6.3), one for each
 * direction.  The handshake is OpenSSL's, which gives the secrets away by public calls; the ciphers
 * are OpenSSL's too (EVP).  From the end of the handshake on each direction has one key and one
 * sequence of numbers here, and OpenSSL's session is not needed any more.
 */
#ifndef SERVER_TLS_RECORD_KEY_H
#define SERVER_TLS_RECORD_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_SECRET	48 /* bytes of a secret, at most: SHA-384 */
#define RECORD_KEY	32 /* bytes of a key, at most */
#define RECORD_NONCE	12
#define RECORD_TAG	16
#define RECORD_EXPLICIT 8 /* bytes of the nonce that may be sent */

/* OpenSSL's, by their tags. */
struct evp_cipher_ctx_st;
struct evp_cipher_st;
struct evp_md_st;
struct ssl_st;

struct record_key {
	struct evp_cipher_ctx_st *rk_cipher; /* NULL: it was not begun */
	const struct evp_md_st *rk_digest;   /* of the handshake: TLS 1.3 */
	uint64_t rk_number;		     /* of the next record */
	unsigned char rk_iv[RECORD_NONCE];
	bool rk_reads;	  /* what the client sends */
	bool rk_explicit; /* TLS 1.2 with GCM: a part of the nonce is sent */
	bool rk_hides;	  /* TLS 1.3: the type is encrypted */
	unsigned char rk_secret_len;
	unsigned char rk_secret[RECORD_SECRET]; /* TLS 1.3: for the next key */
};

/* What a cipher begins with. */
struct record_material {
	const struct evp_cipher_st *rm_cipher;
	unsigned char rm_key[RECORD_KEY];
};

/* Numbers of records, as they are sent and hashed: RECORD_EXPLICIT bytes. */
static inline void
record_put_number(unsigned char *to, uint64_t number)
{
	for (int i = RECORD_EXPLICIT - 1; i >= 0; i--, number >>= 8)
		to[i] = (unsigned char)number;
}

/* Before there are threads: finds the algorithms.  False: some are not there. */
bool record_key_prepare(void);

/*
 * For rk_secret, in the handshake: a line of SSL_CTX_set_keylog_callback(3), of which only TLS
 * 1.3's SERVER_TRAFFIC_SECRET_0, or CLIENT_TRAFFIC_SECRET_0 for one that reads, is taken.
 */
void record_key_take(struct record_key *, const char *line);

/*
 * After the handshake: all but the cipher.  number: of the next record of TLS 1.3.  False: it has
 * another cipher, or there is no memory.  The material is to be wiped.
 */
bool record_key_derive(struct record_key *, const struct ssl_st *,
    uint64_t number, struct record_material *);

/* False: no memory. */
bool record_key_begin(struct record_key *, const struct record_material *);

/* It is wiped, and rk_cipher is NULL. */
void record_key_end(struct record_key *);

/*
 * RFC 8446, 5.5: after 2^24.5 full records a key of AES-GCM is to be replaced.  TLS 1.2 has no
 * way to do so.
 */
#define RECORD_MOST (UINT64_C(1) << 24)

static inline bool
record_key_is_worn(const struct record_key *rk)
{
	return rk->rk_hides && rk->rk_number >= RECORD_MOST;
}

/* From the next record on with the key after this one (RFC 8446, 7.2).  False: it failed. */
bool record_key_update(struct record_key *);

#endif
