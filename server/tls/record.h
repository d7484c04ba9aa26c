/*
 * record: records of TLS 1.2 and 1.3 as a server sends them (RFC 8446, 5.2; RFC 5246, 6.2; RFC 5288;
 * RFC 7905), made of plaintext where it lies, into memory from which they are sent.
 *
 * OpenSSL would copy the plaintext once before it encrypts and the record once after that,
 * which for a large file is a seventh of all that its answer costs (docs/results.md, "Over TLS").  The
 * cipher is OpenSSL's (EVP), and so are the handshake, all that is received, and the keys,
 * which it gives away by public calls.  From the end of the handshake on all that is sent goes
 * through here: one key, one sequence of numbers.
 */
#ifndef SERVER_TLS_RECORD_H
#define SERVER_TLS_RECORD_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_PLAIN	((size_t)16384) /* bytes of plaintext, at most */
#define RECORD_OVERHEAD ((size_t)32) /* bytes of a record besides it, at most */
#define RECORD_SECRET	64	     /* bytes of a secret, at most */

struct record_writer {
	EVP_CIPHER_CTX *rw_cipher; /* NULL: it was not begun */
	const EVP_MD *rw_digest;   /* of the handshake: TLS 1.3 */
	uint64_t rw_number;	   /* of the next record */
	unsigned char rw_iv[12];
	bool rw_explicit; /* TLS 1.2 with GCM: the number is sent */
	bool rw_hides;	  /* TLS 1.3: the type is encrypted */
	size_t rw_secret_len;
	unsigned char
	    rw_secret[RECORD_SECRET]; /* of TLS 1.3: for the next key */
};

/* Before there are threads: finds the algorithms.  False: some are not there. */
bool record_prepare(void);

/*
 * For rw_secret, in the handshake: a line of SSL_CTX_set_keylog_callback(3), of which only TLS 1.3's
 * SERVER_TRAFFIC_SECRET_0 is taken.
 */
void record_take_secret(struct record_writer *, const char *line);

/*
 * After the handshake.  number: of the next record of TLS 1.3.  False: it has another cipher, or
 * there is no memory.
 */
bool record_begin(struct record_writer *, const SSL *, uint64_t number);

/* The keys are wiped. */
void record_end(struct record_writer *);

/*
 * One record of len <= RECORD_PLAIN bytes; to has room for RECORD_OVERHEAD more, and is not data.
 * Its length, or 0: it failed, and nothing more can be sent.
 */
size_t record_write(struct record_writer *, unsigned char type,
    const void *data, size_t len, unsigned char *to);

/*
 * RFC 8446, 5.5: after 2^24.5 full records a key of AES-GCM is to be replaced.  TLS 1.2 has no
 * way to do so.
 */
#define RECORD_MOST (UINT64_C(1) << 24)

static inline bool
record_needs_update(const struct record_writer *rw)
{
	return rw->rw_hides && rw->rw_number >= RECORD_MOST;
}

/* From the next record on with the key after this one (RFC 8446, 7.2).  False: it failed. */
bool record_update(struct record_writer *);

#endif
