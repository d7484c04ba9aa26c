/*
 * record: see record.h.
 */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <string.h>

#include "server/tls/record.h"
#include "server/util/hex.h"

#define HEADER	 5
#define TAG	 16
#define EXPLICIT 8
#define NONCE	 12
#define RANDOM	 ((size_t)SSL3_RANDOM_SIZE)
#define KEY	 32 /* bytes of a key, at most */

/* To look for one by its name takes locks and time: once. */
static struct {
	EVP_KDF *al_hkdf, *al_prf;
	EVP_CIPHER *al_gcm128, *al_gcm256, *al_chacha;
} algorithms;

bool
record_prepare(void)
{
	algorithms.al_hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	algorithms.al_prf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
	algorithms.al_gcm128 = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	algorithms.al_gcm256 = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	algorithms.al_chacha =
	    EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
	return algorithms.al_hkdf != NULL && algorithms.al_prf != NULL &&
	       algorithms.al_gcm128 != NULL && algorithms.al_gcm256 != NULL &&
	       algorithms.al_chacha != NULL;
}

/* ------------------------------------------------------------------ the keys */

static bool
derive(EVP_KDF *kdf, OSSL_PARAM *params, unsigned char *to, size_t len)
{
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	bool done = ctx != NULL && EVP_KDF_derive(ctx, to, len, params) == 1;

	EVP_KDF_CTX_free(ctx);
	return done;
}

static OSSL_PARAM
octets(const char *name, const void *data, size_t len)
{
	return OSSL_PARAM_construct_octet_string(
	    name, (void *)(uintptr_t)data, len);
}

static OSSL_PARAM
digest_param(const EVP_MD *md)
{
	return OSSL_PARAM_construct_utf8_string(
	    OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)EVP_MD_get0_name(md), 0);
}

/* HKDF-Expand-Label with an empty context: RFC 8446, 7.1. */
static bool
expand(const struct record_writer *rw, const char *label, unsigned char *to,
    size_t len)
{
	static const char prefix[] = "tls13 ";
	unsigned char info[64];
	size_t n = 0, label_len = strlen(label),
	       all = sizeof(prefix) - 1 + label_len;
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM params[5];

	info[n++] = (unsigned char)(len >> 8);
	info[n++] = (unsigned char)len;
	info[n++] = (unsigned char)all;
	memcpy(info + n, prefix, sizeof(prefix) - 1);
	n += sizeof(prefix) - 1;
	memcpy(info + n, label, label_len);
	n += label_len;
	info[n++] = 0;
	params[0] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	params[1] = digest_param(rw->rw_digest);
	params[2] =
	    octets(OSSL_KDF_PARAM_KEY, rw->rw_secret, rw->rw_secret_len);
	params[3] = octets(OSSL_KDF_PARAM_INFO, info, n);
	params[4] = OSSL_PARAM_construct_end();
	return derive(algorithms.al_hkdf, params, to, len);
}

static bool
set_key(struct record_writer *rw, const EVP_CIPHER *cipher,
    const unsigned char *key)
{
	return EVP_EncryptInit_ex(rw->rw_cipher, cipher, NULL, NULL, NULL) ==
		   1 &&
	       EVP_CIPHER_CTX_ctrl(
		   rw->rw_cipher, EVP_CTRL_AEAD_SET_IVLEN, NONCE, NULL) == 1 &&
	       EVP_EncryptInit_ex(rw->rw_cipher, NULL, NULL, key, NULL) == 1;
}

static bool
set_key_13(struct record_writer *rw, const EVP_CIPHER *cipher)
{
	unsigned char key[KEY];
	size_t len = (size_t)EVP_CIPHER_get_key_length(cipher);
	bool done = expand(rw, "key", key, len) &&
		    expand(rw, "iv", rw->rw_iv, sizeof(rw->rw_iv)) &&
		    set_key(rw, cipher, key);

	OPENSSL_cleanse(key, sizeof(key));
	return done;
}

/* Keys and what begins the nonces, the client's before the server's: RFC 5246, 6.3. */
static bool
set_key_12(struct record_writer *rw, const EVP_CIPHER *cipher, const SSL *ssl,
    const EVP_MD *md)
{
	static const char label[] = "key expansion";
	unsigned char master[SSL_MAX_MASTER_KEY_LENGTH],
	    block[2 * (KEY + NONCE)], seed[sizeof(label) - 1 + 2 * RANDOM];
	size_t key = (size_t)EVP_CIPHER_get_key_length(cipher),
	       iv = rw->rw_explicit ? NONCE - EXPLICIT : NONCE;
	size_t n = SSL_SESSION_get_master_key(
	    SSL_get_session(ssl), master, sizeof(master));
	OSSL_PARAM params[4];
	bool done;

	memcpy(seed, label, sizeof(label) - 1);
	SSL_get_server_random(ssl, seed + sizeof(label) - 1, RANDOM);
	SSL_get_client_random(ssl, seed + sizeof(label) - 1 + RANDOM, RANDOM);
	params[0] = digest_param(md);
	params[1] = octets(OSSL_KDF_PARAM_SECRET, master, n);
	params[2] = octets(OSSL_KDF_PARAM_SEED, seed, sizeof(seed));
	params[3] = OSSL_PARAM_construct_end();
	done = n > 0 &&
	       derive(algorithms.al_prf, params, block, 2 * (key + iv)) &&
	       set_key(rw, cipher, block + key);
	memcpy(rw->rw_iv, block + 2 * key + iv, iv);
	OPENSSL_cleanse(master, sizeof(master));
	OPENSSL_cleanse(block, sizeof(block));
	return done;
}

static const EVP_CIPHER *
cipher_of(const SSL_CIPHER *cipher)
{
	switch (SSL_CIPHER_get_cipher_nid(cipher)) {
	case NID_aes_128_gcm:
		return algorithms.al_gcm128;
	case NID_aes_256_gcm:
		return algorithms.al_gcm256;
	case NID_chacha20_poly1305:
		return algorithms.al_chacha;
	default:
		return NULL;
	}
}

void
record_take_secret(struct record_writer *rw, const char *line)
{
	static const char label[] = "SERVER_TRAFFIC_SECRET_0 ";

	if (strncmp(line, label, sizeof(label) - 1) == 0)
		rw->rw_secret_len = hex_read(strrchr(line, ' ') + 1,
		    rw->rw_secret, sizeof(rw->rw_secret));
}

bool
record_begin(struct record_writer *rw, const SSL *ssl, uint64_t number)
{
	const SSL_CIPHER *suite = SSL_get_current_cipher(ssl);
	const EVP_CIPHER *cipher = cipher_of(suite);
	bool done = false;

	rw->rw_digest = SSL_CIPHER_get_handshake_digest(suite);
	rw->rw_hides = SSL_version(ssl) == TLS1_3_VERSION;
	rw->rw_explicit = !rw->rw_hides && cipher != algorithms.al_chacha;
	/* RFC 5246, 7.4.9: that of 0 was Finished. */
	rw->rw_number = rw->rw_hides ? number : 1;
	if (cipher != NULL && rw->rw_digest != NULL)
		rw->rw_cipher = EVP_CIPHER_CTX_new();
	if (rw->rw_cipher != NULL && rw->rw_hides)
		done = rw->rw_secret_len > 0 && set_key_13(rw, cipher);
	else if (rw->rw_cipher != NULL && SSL_version(ssl) == TLS1_2_VERSION)
		done = set_key_12(rw, cipher, ssl, rw->rw_digest);
	if (!done)
		record_end(rw);
	return done;
}

void
record_end(struct record_writer *rw)
{
	EVP_CIPHER_CTX_free(rw->rw_cipher);
	OPENSSL_cleanse(rw, sizeof(*rw));
}

bool
record_update(struct record_writer *rw)
{
	unsigned char next[RECORD_SECRET];
	bool done =
	    rw->rw_hides && expand(rw, "traffic upd", next, rw->rw_secret_len);

	if (done) {
		memcpy(rw->rw_secret, next, rw->rw_secret_len);
		done =
		    set_key_13(rw, EVP_CIPHER_CTX_get0_cipher(rw->rw_cipher));
		rw->rw_number = 0;
	}
	OPENSSL_cleanse(next, sizeof(next));
	return done;
}

/* --------------------------------------------------------------- the records */

static void
put_number(unsigned char *to, uint64_t number)
{
	for (int i = EXPLICIT - 1; i >= 0; i--, number >>= 8)
		to[i] = (unsigned char)number;
}

static void
put_header(unsigned char *to, unsigned char type, size_t len)
{
	to[0] = type;
	to[1] = 3;
	to[2] = 3;
	to[3] = (unsigned char)(len >> 8);
	to[4] = (unsigned char)len;
}

static void
make_nonce(const struct record_writer *rw, unsigned char nonce[NONCE])
{
	unsigned char number[EXPLICIT];

	put_number(number, rw->rw_number);
	memcpy(nonce, rw->rw_iv, NONCE);
	if (rw->rw_explicit) {
		memcpy(nonce + NONCE - EXPLICIT, number, EXPLICIT);
		return;
	}
	for (int i = 0; i < EXPLICIT; i++)
		nonce[NONCE - EXPLICIT + i] ^= number[i];
}

static bool
encrypt(EVP_CIPHER_CTX *ctx, const void *data, size_t len, unsigned char *to)
{
	int n;

	return len == 0 || EVP_EncryptUpdate(ctx, to, &n, data, (int)len) == 1;
}

/* Tag and all, behind what is authenticated only. */
static bool
seal(struct record_writer *rw, const unsigned char *aad, size_t aad_len,
    const void *data, size_t len, const unsigned char *type, unsigned char *to)
{
	EVP_CIPHER_CTX *ctx = rw->rw_cipher;
	unsigned char nonce[NONCE], *end = to + len;
	int n;

	make_nonce(rw, nonce);
	if (EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, nonce) != 1 ||
	    EVP_EncryptUpdate(ctx, NULL, &n, aad, (int)aad_len) != 1 ||
	    !encrypt(ctx, data, len, to))
		return false;
	if (type != NULL && !encrypt(ctx, type, 1, end++))
		return false;
	return EVP_EncryptFinal_ex(ctx, end, &n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, end) == 1;
}

static size_t
write_13(struct record_writer *rw, unsigned char type, const void *data,
    size_t len, unsigned char *to)
{
	put_header(to, SSL3_RT_APPLICATION_DATA, len + 1 + TAG);
	if (!seal(rw, to, HEADER, data, len, &type, to + HEADER))
		return 0;
	return HEADER + len + 1 + TAG;
}

static size_t
write_12(struct record_writer *rw, unsigned char type, const void *data,
    size_t len, unsigned char *to)
{
	size_t skip = rw->rw_explicit ? EXPLICIT : 0;
	unsigned char aad[EXPLICIT + HEADER];

	put_number(aad, rw->rw_number);
	put_header(aad + EXPLICIT, type, len);
	put_header(to, type, skip + len + TAG);
	if (skip > 0)
		put_number(to + HEADER, rw->rw_number);
	if (!seal(rw, aad, sizeof(aad), data, len, NULL, to + HEADER + skip))
		return 0;
	return HEADER + skip + len + TAG;
}

/* A number is never used twice, also not after a failure. */
size_t
record_write(struct record_writer *rw, unsigned char type, const void *data,
    size_t len, unsigned char *to)
{
	size_t n = rw->rw_hides ? write_13(rw, type, data, len, to)
				: write_12(rw, type, data, len, to);

	rw->rw_number++;
	return n;
}
