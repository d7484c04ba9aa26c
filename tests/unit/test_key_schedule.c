/* Tests of server/tls/key_schedule.h: its provider derives what OpenSSL's own does. */
#include "test.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>

#include "server/tls/key_schedule.h"
#include "server/tls/record_key.h"

/* A derivation as libssl asks for it; lengths are SIZE_MAX for what is not passed. */
struct asked {
	int as_mode;
	const char *as_digest, *as_label;
	size_t as_key, as_salt, as_data;
};

static const char *const digests[] = {
    "SHA2-256", "SHA2-384", "SHA256", "SHA-384"};
static unsigned char bytes[256];

static OSSL_PARAM *
put(OSSL_PARAM *p, const char *name, size_t len)
{
	if (len != SIZE_MAX)
		*p++ = OSSL_PARAM_construct_octet_string(name, bytes, len);
	return p;
}

static int
derive(const char *query, const struct asked *as, unsigned char *to, size_t len)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, query);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	OSSL_PARAM params[8], *p = params;
	int mode = as->as_mode, result;

	assert_non_null(ctx);
	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(
	    OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)as->as_digest, 0);
	*p++ = OSSL_PARAM_construct_octet_string(
	    OSSL_KDF_PARAM_PREFIX, (char *)(uintptr_t) "tls13 ", 6);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL,
	    (char *)(uintptr_t)as->as_label, strlen(as->as_label));
	p = put(p, OSSL_KDF_PARAM_KEY, as->as_key);
	p = put(p, OSSL_KDF_PARAM_SALT, as->as_salt);
	p = put(p, OSSL_KDF_PARAM_DATA, as->as_data);
	*p = OSSL_PARAM_construct_end();
	result = EVP_KDF_derive(ctx, to, len, params);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return result;
}

static void
same(const struct asked *as, size_t len)
{
	unsigned char ours[RECORD_SECRET] = {1}, theirs[RECORD_SECRET] = {2};

	assert_int_equal(derive("provider=default", as, theirs, len), 1);
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, as, ours, len), 1);
	assert_memory_equal(ours, theirs, len);
}

static size_t
size_of(const char *digest)
{
	return strstr(digest, "256") != NULL ? 32 : 48;
}

TEST(contexts_of_the_query_use_the_provider)
{
	EVP_KDF *kdf =
	    EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, KEY_SCHEDULE_QUERY);

	assert_string_equal(
	    OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)), "pagewise");
	EVP_KDF_free(kdf);
}

TEST(secrets_are_expanded_as_openssl_does)
{
	static const char *const labels[] = {
	    "key", "iv", "finished", "s ap traffic", "res master"};
	static const size_t data[] = {SIZE_MAX, 0, 32, 48};

	for (size_t d = 0; d < 4; d++)
		for (size_t i = 0; i < 5; i++)
			for (size_t j = 0; j < 4; j++) {
				size_t n = size_of(digests[d]);
				struct asked as = {
				    EVP_KDF_HKDF_MODE_EXPAND_ONLY, digests[d],
				    labels[i], n, SIZE_MAX, data[j]};

				same(&as, n);
				same(&as, 12);
			}
}

TEST(secrets_are_extracted_as_openssl_does)
{
	static const size_t keys[] = {SIZE_MAX, 32, 48, 66};

	for (size_t d = 0; d < 4; d++)
		for (size_t i = 0; i < 4; i++) {
			size_t n = size_of(digests[d]);
			struct asked as = {EVP_KDF_HKDF_MODE_EXTRACT_ONLY,
			    digests[d], "derived", keys[i], SIZE_MAX, SIZE_MAX};

			same(&as, n);
			as.as_salt = n;
			same(&as, n);
		}
}

TEST(only_traffic_secrets_of_the_thread_are_stored)
{
	struct record_key writes = {.rk_secret_len = 0}, reads = writes;
	struct asked as = {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA2-384",
	    "s hs traffic", 48, SIZE_MAX, 48};
	unsigned char secret[48];

	key_schedule_store(&writes, &reads);
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, secret, 48), 1);
	assert_int_equal(writes.rk_secret_len, 0);
	as.as_label = "s ap traffic";
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, secret, 48), 1);
	assert_int_equal(writes.rk_secret_len, 48);
	assert_memory_equal(writes.rk_secret, secret, 48);
	assert_int_equal(reads.rk_secret_len, 0);
	as.as_label = "c ap traffic";
	as.as_digest = "SHA2-256";
	as.as_key = 32;
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, secret, 32), 1);
	assert_int_equal(reads.rk_secret_len, 32);
	assert_memory_equal(reads.rk_secret, secret, 32);
	reads.rk_secret_len = 0;
	key_schedule_store(NULL, NULL);
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, secret, 32), 1);
	assert_int_equal(reads.rk_secret_len, 0);
}

TEST(what_no_suite_of_tls_1_3_has_is_refused)
{
	struct asked as = {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA2-512", "key", 64,
	    SIZE_MAX, SIZE_MAX};
	unsigned char to[64];

	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, to, 32), 0);
	as.as_digest = "SHA2-256";
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, to, 32), 1);
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, to, 33), 0);
	as.as_key = 129;
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, to, 32), 0);
	as.as_mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY;
	as.as_key = 32;
	assert_int_equal(derive(KEY_SCHEDULE_QUERY, &as, to, 31), 0);
}

int
setup_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37 + 11);
	return key_schedule_prepare();
}
