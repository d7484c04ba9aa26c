/*
 * key_schedule: see key_schedule.h.
 */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>

#include <errno.h>
#include <string.h>

#include "server/tls/key_schedule.h"
#include "server/tls/record_key.h"

#define NAME  "pagewise"
#define BLOCK 128 /* maximum length of a digest's block, bytes: SHA-384 */
#define INFO \
	512 /* maximum length of a HkdfLabel, bytes: 2 + 1 + 255 + 1 + 253 */
#define DIGESTS 2
#define PREFIX	STR_OF("tls13 ")

/* Bytes of a parameter, or of a constant. */
struct octets {
	const void *oc_data;
	size_t oc_len;
};

#define STR_OF(text) ((struct octets){text, sizeof(text) - 1})

static const unsigned char zeros[RECORD_SECRET];

/* digests of the cipher suites, found once, since a search takes locks and time */
static EVP_MD *digests[DIGESTS];

static _Thread_local struct {
	struct record_key *to_writes, *to_reads;
} stored;

void
key_schedule_store(struct record_key *writes, struct record_key *reads)
{
	stored.to_writes = writes;
	stored.to_reads = reads;
}

/* ------------------------------------------------------------- derivations */

/* Digests a block, which is the key with each byte changed by `pad`, and the text. */
static bool
key_schedule_digest(EVP_MD_CTX *ctx, const EVP_MD *md, struct octets key,
    unsigned char pad, struct octets text, unsigned char *to)
{
	unsigned char block[BLOCK];
	size_t len = (size_t)EVP_MD_get_block_size(md);
	bool done;

	for (size_t i = 0; i < len; i++)
		block[i] =
		    pad ^
		    (i < key.oc_len ? ((const unsigned char *)key.oc_data)[i]
				    : 0);
	done = EVP_DigestInit_ex(ctx, md, NULL) == 1 &&
	       EVP_DigestUpdate(ctx, block, len) == 1 &&
	       EVP_DigestUpdate(ctx, text.oc_data, text.oc_len) == 1 &&
	       EVP_DigestFinal_ex(ctx, to, NULL) == 1;
	OPENSSL_cleanse(block, sizeof(block));
	return done;
}

/* Computes HMAC (RFC 2104) of the text.  The key has at most one block. */
static bool
key_schedule_hmac(const EVP_MD *md, struct octets key, struct octets text,
    unsigned char to[RECORD_SECRET])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char inner[RECORD_SECRET];
	struct octets of_inner = {inner, (size_t)EVP_MD_get_size(md)};
	bool done = ctx != NULL &&
		    key_schedule_digest(ctx, md, key, 0x36, text, inner) &&
		    key_schedule_digest(ctx, md, key, 0x5c, of_inner, to);

	EVP_MD_CTX_free(ctx);
	OPENSSL_cleanse(inner, sizeof(inner));
	return done;
}

static size_t
key_schedule_put(unsigned char *info, size_t at, struct octets oc)
{
	if (oc.oc_len > 0)
		memcpy(info + at, oc.oc_data, oc.oc_len);
	return at + oc.oc_len;
}

/* Computes HKDF-Expand-Label of at most one digest, whose only block is HMAC of the label and 1. */
static bool
key_schedule_expand_label(const EVP_MD *md, struct octets secret,
    struct octets prefix, struct octets label, struct octets context,
    unsigned char *to, size_t len)
{
	unsigned char info[INFO], block[RECORD_SECRET];
	size_t name = prefix.oc_len + label.oc_len, n = 0;
	bool done;

	if (len > (size_t)EVP_MD_get_size(md) ||
	    5 + name + context.oc_len > sizeof(info) || name > UINT8_MAX ||
	    secret.oc_len > (size_t)EVP_MD_get_block_size(md))
		return false;
	info[n++] = 0;
	info[n++] = (unsigned char)len;
	info[n++] = (unsigned char)name;
	n = key_schedule_put(info, n, prefix);
	n = key_schedule_put(info, n, label);
	info[n++] = (unsigned char)context.oc_len;
	n = key_schedule_put(info, n, context);
	info[n++] = 1;
	done = key_schedule_hmac(md, secret, (struct octets){info, n}, block);
	memcpy(to, block, done ? len : 0);
	OPENSSL_cleanse(block, sizeof(block));
	return done;
}

bool
key_schedule_expand(const EVP_MD *md, const void *secret, const char *label,
    void *to, size_t len)
{
	return key_schedule_expand_label(md,
	    (struct octets){secret, (size_t)EVP_MD_get_size(md)}, PREFIX,
	    (struct octets){label, strlen(label)}, (struct octets){0}, to, len);
}

/* ------------------------------------------------------------ the provider */

/* The parameters that libssl passes to TLS13-KDF: EVP_KDF-TLS13_KDF(7). */
struct derivation {
	const EVP_MD *dv_digest;
	bool dv_extracts; /* extracts a secret of the next stage */
	struct octets dv_key, dv_salt, dv_prefix, dv_label, dv_data;
};

/* Compares the names as OpenSSL has them first, since EVP_MD_is_a takes locks and time. */
static const EVP_MD *
key_schedule_digest_of(const char *name)
{
	for (size_t i = 0; i < DIGESTS; i++)
		if (strcmp(EVP_MD_get0_name(digests[i]), name) == 0)
			return digests[i];
	for (size_t i = 0; i < DIGESTS; i++)
		if (EVP_MD_is_a(digests[i], name))
			return digests[i];
	return NULL;
}

static struct octets
key_schedule_octets(const OSSL_PARAM params[], const char *name)
{
	const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, name);

	struct octets oc = {0};

	if (p != NULL)
		oc = (struct octets){p->data, p->data_size};
	return oc;
}

static bool
key_schedule_read(const OSSL_PARAM params[], struct derivation *dv)
{
	const OSSL_PARAM *mode =
	    OSSL_PARAM_locate_const(params, OSSL_KDF_PARAM_MODE);
	struct octets digest =
	    key_schedule_octets(params, OSSL_KDF_PARAM_DIGEST);
	int number;

	if (mode == NULL || digest.oc_data == NULL ||
	    OSSL_PARAM_get_int(mode, &number) != 1)
		return false;
	*dv = (struct derivation){
	    .dv_digest = key_schedule_digest_of(digest.oc_data),
	    .dv_extracts = number == EVP_KDF_HKDF_MODE_EXTRACT_ONLY,
	    .dv_key = key_schedule_octets(params, OSSL_KDF_PARAM_KEY),
	    .dv_salt = key_schedule_octets(params, OSSL_KDF_PARAM_SALT),
	    .dv_prefix = key_schedule_octets(params, OSSL_KDF_PARAM_PREFIX),
	    .dv_label = key_schedule_octets(params, OSSL_KDF_PARAM_LABEL),
	    .dv_data = key_schedule_octets(params, OSSL_KDF_PARAM_DATA),
	};
	return dv->dv_digest != NULL;
}

/*
 * Extracts the secret of the next stage from the key, or zeros, and the secret of the stage before, if
 * there is one.
 */
static bool
key_schedule_extract(const struct derivation *dv, unsigned char *to, size_t len)
{
	const EVP_MD *md = dv->dv_digest;
	size_t size = (size_t)EVP_MD_get_size(md);
	unsigned char none[RECORD_SECRET], before[RECORD_SECRET];
	struct octets key = dv->dv_key, salt = {zeros, size};
	bool done = len == size;

	if (key.oc_len == 0)
		key = salt;
	if (done && dv->dv_salt.oc_len > 0) {
		salt.oc_data = before;
		done = EVP_Digest("", 0, none, NULL, md, NULL) == 1 &&
		       key_schedule_expand_label(md, dv->dv_salt, dv->dv_prefix,
			   dv->dv_label, (struct octets){none, size}, before,
			   size);
	}
	done = done && key_schedule_hmac(md, salt, key, to);
	OPENSSL_cleanse(before, sizeof(before));
	return done;
}

static void
key_schedule_store_one(struct record_key *rk, const char *name,
    const struct derivation *dv, const unsigned char *secret, size_t len)
{
	if (rk == NULL || len > RECORD_SECRET ||
	    strlen(name) != dv->dv_label.oc_len ||
	    memcmp(name, dv->dv_label.oc_data, dv->dv_label.oc_len) != 0)
		return;
	memcpy(rk->rk_secret, secret, len);
	rk->rk_secret_len = (unsigned char)len;
}

static int
key_schedule_derive(
    void *ctx, unsigned char *to, size_t len, const OSSL_PARAM params[])
{
	struct derivation dv;

	(void)ctx;
	if (!key_schedule_read(params, &dv))
		return 0;
	if (dv.dv_extracts)
		return key_schedule_extract(&dv, to, len);
	if (!key_schedule_expand_label(dv.dv_digest, dv.dv_key, dv.dv_prefix,
		dv.dv_label, dv.dv_data, to, len))
		return 0;
	key_schedule_store_one(stored.to_writes, "s ap traffic", &dv, to, len);
	key_schedule_store_one(stored.to_reads, "c ap traffic", &dv, to, len);
	return 1;
}

/* Returns any pointer but NULL: libssl passes all parameters with the derivation, so no state is kept. */
static void *
key_schedule_new(void *provider)
{
	(void)provider;
	return &digests;
}

static void
key_schedule_free(void *ctx)
{
	(void)ctx;
}

static const OSSL_ALGORITHM *
key_schedule_query(void *provider, int operation, int *no_cache)
{
	static const OSSL_DISPATCH functions[] = {
	    {OSSL_FUNC_KDF_NEWCTX, (void (*)(void))key_schedule_new},
	    {OSSL_FUNC_KDF_FREECTX, (void (*)(void))key_schedule_free},
	    {OSSL_FUNC_KDF_DERIVE, (void (*)(void))key_schedule_derive},
	    {0, NULL}};
	static const OSSL_ALGORITHM kdfs[] = {
	    {OSSL_KDF_NAME_TLS1_3_KDF, "provider=" NAME, functions, NULL},
	    {NULL, NULL, NULL, NULL}};

	(void)provider;
	*no_cache = 0;
	return operation == OSSL_OP_KDF ? kdfs : NULL;
}

static int
key_schedule_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
    const OSSL_DISPATCH **out, void **ctx)
{
	static const OSSL_DISPATCH functions[] = {
	    {OSSL_FUNC_PROVIDER_QUERY_OPERATION,
		(void (*)(void))key_schedule_query},
	    {0, NULL}};

	(void)handle, (void)in;
	*out = functions;
	*ctx = &digests;
	return 1;
}

/* Returns true if a context with KEY_SCHEDULE_QUERY uses the provider, whatever openssl.cnf(5) prefers. */
static bool
key_schedule_is_used(void)
{
	EVP_KDF *kdf =
	    EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, KEY_SCHEDULE_QUERY);
	bool used = kdf != NULL &&
		    strcmp(OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)),
			NAME) == 0;

	EVP_KDF_free(kdf);
	return used;
}

int
key_schedule_prepare(void)
{
	static OSSL_PROVIDER *loaded;

	if (loaded != NULL)
		return 0;
	digests[0] = EVP_MD_fetch(NULL, "SHA2-256", NULL);
	digests[1] = EVP_MD_fetch(NULL, "SHA2-384", NULL);
	/* The providers that OpenSSL loads by itself stay. */
	if (digests[0] != NULL && digests[1] != NULL &&
	    OSSL_PROVIDER_add_builtin(NULL, NAME, key_schedule_init) == 1)
		loaded = OSSL_PROVIDER_try_load(NULL, NAME, 1);
	if (loaded == NULL)
		return -ENOMEM;
	return key_schedule_is_used() ? 0 : -ENOTSUP;
}
