/*
 * record_key: see record_key.h.
 */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>

#include <errno.h>
#include <string.h>

#include "server/tls/key_schedule.h"
#include "server/tls/record_key.h"

#define RANDOM ((size_t)SSL3_RANDOM_SIZE)

/* Algorithms of OpenSSL, fetched once, since a search by name takes locks and time. */
static struct {
	EVP_KDF *al_prf;
	EVP_CIPHER *al_gcm128, *al_gcm256, *al_chacha;
} algorithms;

int
record_key_prepare(void)
{
	algorithms.al_prf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
	algorithms.al_gcm128 = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	algorithms.al_gcm256 = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	algorithms.al_chacha =
	    EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
	if (algorithms.al_prf == NULL || algorithms.al_gcm128 == NULL ||
	    algorithms.al_gcm256 == NULL || algorithms.al_chacha == NULL)
		return -ENOMEM;
	return key_schedule_prepare();
}

/* ------------------------------------------------------------------ the keys */

static OSSL_PARAM
record_key_octets(const char *name, const void *data, size_t len)
{
	return OSSL_PARAM_construct_octet_string(
	    name, (void *)(uintptr_t)data, len);
}

static OSSL_PARAM
record_key_digest_param(const EVP_MD *md)
{
	return OSSL_PARAM_construct_utf8_string(
	    OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)EVP_MD_get0_name(md), 0);
}

/* Derives the key and the IV from rk_secret. */
static bool
record_key_material_13(
    const struct record_key *rk, struct record_material *rm, unsigned char *iv)
{
	size_t len = (size_t)EVP_CIPHER_get_key_length(rm->rm_cipher);

	return key_schedule_expand(
		   rk->rk_digest, rk->rk_secret, "key", rm->rm_key, len) &&
	       key_schedule_expand(
		   rk->rk_digest, rk->rk_secret, "iv", iv, RECORD_NONCE);
}

/* Computes the PRF of TLS 1.2 (RFC 5246, 5). */
static bool
record_key_prf(OSSL_PARAM *params, unsigned char *to, size_t len)
{
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(algorithms.al_prf);
	bool done = ctx != NULL && EVP_KDF_derive(ctx, to, len, params) == 1;

	EVP_KDF_CTX_free(ctx);
	return done;
}

/*
 * Derives the key and the first bytes of the nonces.  In the derived block, the client's part
 * precedes the server's (RFC 5246, 6.3).
 */
static bool
record_key_material_12(
    struct record_key *rk, const SSL *ssl, struct record_material *rm)
{
	static const char label[] = "key expansion";
	unsigned char master[SSL_MAX_MASTER_KEY_LENGTH],
	    block[2 * (RECORD_KEY + RECORD_NONCE)],
	    seed[sizeof(label) - 1 + 2 * RANDOM];
	size_t side = rk->rk_reads ? 0 : 1,
	       key = (size_t)EVP_CIPHER_get_key_length(rm->rm_cipher),
	       iv = RECORD_NONCE - (rk->rk_explicit ? RECORD_EXPLICIT : 0);
	size_t n = SSL_SESSION_get_master_key(
	    SSL_get_session(ssl), master, sizeof(master));
	OSSL_PARAM params[4];
	bool done;

	memcpy(seed, label, sizeof(label) - 1);
	SSL_get_server_random(ssl, seed + sizeof(label) - 1, RANDOM);
	SSL_get_client_random(ssl, seed + sizeof(label) - 1 + RANDOM, RANDOM);
	params[0] = record_key_digest_param(rk->rk_digest);
	params[1] = record_key_octets(OSSL_KDF_PARAM_SECRET, master, n);
	params[2] = record_key_octets(OSSL_KDF_PARAM_SEED, seed, sizeof(seed));
	params[3] = OSSL_PARAM_construct_end();
	done = n > 0 && record_key_prf(params, block, 2 * (key + iv));
	memcpy(rm->rm_key, block + side * key, key);
	memcpy(rk->rk_iv, block + 2 * key + side * iv, iv);
	OPENSSL_cleanse(master, sizeof(master));
	OPENSSL_cleanse(block, sizeof(block));
	return done;
}

static const EVP_CIPHER *
record_key_cipher_of(const SSL_CIPHER *cipher)
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

bool
record_key_derive(struct record_key *rk, const SSL *ssl, uint64_t number,
    struct record_material *rm)
{
	const SSL_CIPHER *suite = SSL_get_current_cipher(ssl);

	rm->rm_cipher = record_key_cipher_of(suite);
	rk->rk_digest = SSL_CIPHER_get_handshake_digest(suite);
	rk->rk_hides = SSL_version(ssl) == TLS1_3_VERSION;
	rk->rk_explicit =
	    !rk->rk_hides && rm->rm_cipher != algorithms.al_chacha;
	/* In TLS 1.2 record 0 was Finished (RFC 5246, 7.4.9). */
	rk->rk_number = rk->rk_hides ? number : 1;
	if (rm->rm_cipher == NULL || rk->rk_digest == NULL)
		return false;
	if (rk->rk_hides)
		return rk->rk_secret_len > 0 &&
		       record_key_material_13(rk, rm, rk->rk_iv);
	return SSL_version(ssl) == TLS1_2_VERSION &&
	       record_key_material_12(rk, ssl, rm);
}

static bool
record_key_set(struct record_key *rk, const struct record_material *rm)
{
	EVP_CIPHER_CTX *ctx = rk->rk_cipher;
	int encrypts = !rk->rk_reads;

	return EVP_CipherInit_ex(
		   ctx, rm->rm_cipher, NULL, NULL, NULL, encrypts) == 1 &&
	       EVP_CIPHER_CTX_ctrl(
		   ctx, EVP_CTRL_AEAD_SET_IVLEN, RECORD_NONCE, NULL) == 1 &&
	       EVP_CipherInit_ex(ctx, NULL, NULL, rm->rm_key, NULL, encrypts) ==
		   1;
}

bool
record_key_begin(struct record_key *rk, const struct record_material *rm)
{
	rk->rk_cipher = EVP_CIPHER_CTX_new();
	return rk->rk_cipher != NULL && record_key_set(rk, rm);
}

void
record_key_end(struct record_key *rk)
{
	EVP_CIPHER_CTX_free(rk->rk_cipher);
	OPENSSL_cleanse(rk, sizeof(*rk));
}

bool
record_key_update(struct record_key *rk)
{
	unsigned char next[RECORD_SECRET];
	struct record_material rm;
	bool done =
	    rk->rk_hides && key_schedule_expand(rk->rk_digest, rk->rk_secret,
				"traffic upd", next, rk->rk_secret_len);

	if (done) {
		memcpy(rk->rk_secret, next, rk->rk_secret_len);
		rm.rm_cipher = EVP_CIPHER_CTX_get0_cipher(rk->rk_cipher);
		done = record_key_material_13(rk, &rm, rk->rk_iv) &&
		       record_key_set(rk, &rm);
		rk->rk_number = 0;
		OPENSSL_cleanse(&rm, sizeof(rm));
	}
	OPENSSL_cleanse(next, sizeof(next));
	return done;
}
