/*
 * hmac: see hmac.h.
 */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "server/util/hmac.h"

struct hmac {
	EVP_MAC_CTX *hm_ctx;
	bool hm_failed;
};

static EVP_MAC_CTX *
hmac_create_ctx(void)
{
	char digest[] = "SHA256";
	unsigned char any[HMAC_LEN] = {0};
	const OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end()};
	EVP_MAC_CTX *ctx = NULL;
	EVP_MAC *mac;

	/* The system's openssl.cnf must not affect this server. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	if (mac != NULL)
		ctx = EVP_MAC_CTX_new(mac);
	EVP_MAC_free(mac);
	if (ctx != NULL && EVP_MAC_init(ctx, any, sizeof(any), params) == 1)
		return ctx;
	EVP_MAC_CTX_free(ctx);
	return NULL;
}

struct hmac *
hmac_create(void)
{
	struct hmac *hm = calloc(1, sizeof(*hm));

	if (hm == NULL)
		return NULL;
	hm->hm_ctx = hmac_create_ctx();
	if (hm->hm_ctx == NULL)
		hmac_destroy(&hm);
	return hm;
}

void
hmac_destroy(struct hmac **hmp)
{
	struct hmac *hm = *hmp;

	if (hm == NULL)
		return;
	*hmp = NULL;
	EVP_MAC_CTX_free(hm->hm_ctx);
	free(hm);
}

void
hmac_begin(struct hmac *hm, const void *key, size_t len)
{
	hm->hm_failed = EVP_MAC_init(hm->hm_ctx, key, len, NULL) != 1;
}

void
hmac_add(struct hmac *hm, const void *data, size_t len)
{
	if (!hm->hm_failed)
		hm->hm_failed = EVP_MAC_update(hm->hm_ctx, data, len) != 1;
}

bool
hmac_end(struct hmac *hm, unsigned char out[HMAC_LEN])
{
	size_t len = 0;

	memset(out, 0, HMAC_LEN);
	return !hm->hm_failed &&
	       EVP_MAC_final(hm->hm_ctx, out, &len, HMAC_LEN) == 1 &&
	       len == HMAC_LEN;
}

bool
hmac_same(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}
