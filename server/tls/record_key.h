/*
 * record_key: the keys of records of TLS 1.2 and 1.3 (RFC 8446, 7; RFC 5246, 6.3), one for each
 * direction.  OpenSSL runs the handshake, during which key_schedule.h stores the secrets of TLS 1.3,
 * and provides the ciphers (EVP).  After the handshake each direction has one key and one sequence of record
 * numbers, and OpenSSL's session is not needed any more.
 */
#ifndef SERVER_TLS_RECORD_KEY_H
#define SERVER_TLS_RECORD_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_SECRET	48 /* maximum length of a secret, bytes: SHA-384 */
#define RECORD_KEY	32 /* maximum length of a key, bytes */
#define RECORD_NONCE	12 /* length of a nonce, bytes */
#define RECORD_TAG	16 /* length of a tag, bytes */
#define RECORD_EXPLICIT 8  /* bytes of the nonce that a record may carry */

/* OpenSSL's types by their tags. */
struct evp_cipher_ctx_st;
struct evp_cipher_st;
struct evp_md_st;
struct ssl_st;

struct record_key {
	struct evp_cipher_ctx_st *rk_cipher; /* NULL before record_key_begin */
	/* digest of the handshake's cipher suite */
	const struct evp_md_st *rk_digest;
	uint64_t rk_number; /* number of the next record */
	unsigned char rk_iv[RECORD_NONCE];
	/* true for the client's records, which the server reads */
	bool rk_reads;
	/* true for TLS 1.2 with GCM, where records carry part of the nonce */
	bool rk_explicit;
	/* true for TLS 1.3, which encrypts the type of a record */
	bool rk_hides;
	unsigned char rk_secret_len;
	unsigned char rk_secret[RECORD_SECRET]; /* traffic secret (TLS 1.3) */
};

/* The cipher and key for record_key_begin. */
struct record_material {
	const struct evp_cipher_st *rm_cipher;
	unsigned char rm_key[RECORD_KEY];
};

/*
 * Writes a record number in RECORD_EXPLICIT bytes, big-endian: the form that records carry and
 * that their tags cover.
 */
static inline void
record_put_number(unsigned char *to, uint64_t number)
{
	for (int i = RECORD_EXPLICIT - 1; i >= 0; i--, number >>= 8)
		to[i] = (unsigned char)number;
}

/*
 * Finds OpenSSL's algorithms.  Call before threads start.  Returns 0, -ENOMEM, also if an algorithm is missing, or
 * an error of key_schedule_prepare.
 */
int record_key_prepare(void);

/*
 * Derives the material, and all fields except rk_cipher, after the handshake.  `number` is the
 * number of the next record in TLS 1.3.  Returns false if the cipher is not supported or memory is
 * short.  The caller must wipe the material.
 */
bool record_key_derive(struct record_key *, const struct ssl_st *,
    uint64_t number, struct record_material *);

/* Sets rk_cipher.  Returns false if memory is short. */
bool record_key_begin(struct record_key *, const struct record_material *);

/* Frees the cipher and wipes the key, so that rk_cipher is NULL. */
void record_key_end(struct record_key *);

/*
 * Number of records after which the server replaces its key.  RFC 8446, 5.5, allows 2^24.5
 * full records with a key of AES-GCM.  TLS 1.2 has no way to replace a key.
 */
#define RECORD_MOST (UINT64_C(1) << 24)

static inline bool
record_key_is_worn(const struct record_key *rk)
{
	return rk->rk_hides && rk->rk_number >= RECORD_MOST;
}

/*
 * Replaces the key by the next one, which is used from the next record on (RFC 8446, 7.2).  Returns
 * false on failure.
 */
bool record_key_update(struct record_key *);

#endif
