/*
 * identity: see identity.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/tls/identity.h"
#include "server/util/secret_file.h"

#define HOST_MAX 256 /* maximum bytes of a host, with the NUL */

static bool identity_fail(char *why, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static bool
identity_fail(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return false;
}

bool
identity_same_kind(const struct identity *a, const struct identity *b)
{
	return EVP_PKEY_get_base_id(a->id_key) ==
	       EVP_PKEY_get_base_id(b->id_key);
}

bool
identity_signs_fast(const struct identity *id)
{
	char group[16];
	bool fast = true;

	for (; fast && id != NULL; id = id->id_next)
		fast = EVP_PKEY_get_base_id(id->id_key) == EVP_PKEY_ED25519 ||
		       (EVP_PKEY_get_group_name(
			    id->id_key, group, sizeof(group), NULL) == 1 &&
			   strcmp(group, SN_X9_62_prime256v1) == 0);
	ERR_clear_error();
	return fast;
}

const char *
tls_cause(char *text, size_t size)
{
	unsigned long error = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(error);

	if (ERR_SYSTEM_ERROR(error))
		reason = strerror(ERR_GET_REASON(error));
	snprintf(text, size, "%s", reason != NULL ? reason : "unknown cause");
	ERR_clear_error();
	return text;
}

/*
 * Password callback of OpenSSL.  Sets *asked, and refuses, since a server that starts has no
 * terminal to read the passphrase from.
 */
static int
identity_no_passphrase(char *to, int size, int writes, void *asked)
{
	(void)to, (void)size, (void)writes;
	*(bool *)asked = true;
	return -1;
}

/* -------------------------------------------------------------- the files */

static bool
identity_read_certificates(
    struct identity *id, BIO *bio, char *why, size_t size)
{
	char cause[128];
	X509 *cert;

	id->id_cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
	if (id->id_cert == NULL)
		return identity_fail(why, size,
		    "%s: contains no valid certificate: %s", id->id_file,
		    tls_cause(cause, sizeof(cause)));
	while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		if (sk_X509_push(id->id_chain, cert) == 0) {
			X509_free(cert);
			return identity_fail(why, size, "out of memory");
		}
	}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return identity_fail(why, size,
		    "%s: certificate %d is damaged: %s; download it again",
		    id->id_file, sk_X509_num(id->id_chain) + 2,
		    tls_cause(cause, sizeof(cause)));
	ERR_clear_error();
	return true;
}

static bool
identity_read_key(
    struct identity *id, const char *file, BIO *bio, char *why, size_t size)
{
	bool asked = false;
	char cause[128];

	id->id_key =
	    PEM_read_bio_PrivateKey(bio, NULL, identity_no_passphrase, &asked);
	if (id->id_key != NULL)
		return true;
	if (asked)
		return identity_fail(why, size,
		    "%s: the key has a passphrase: remove it with openssl "
		    "pkey -in %s -out KEYFILE",
		    file, file);
	return identity_fail(why, size, "%s: contains no valid private key: %s",
	    file, tls_cause(cause, sizeof(cause)));
}

static bool
identity_is_certificate(const unsigned char *data, long len)
{
	X509 *cert = d2i_X509(NULL, &data, len);

	X509_free(cert);
	return cert != NULL;
}

static bool
identity_is_pkcs12(const unsigned char *data, long len)
{
	PKCS12 *both = d2i_PKCS12(NULL, &data, len);

	PKCS12_free(both);
	return both != NULL;
}

static bool
identity_is_key(const unsigned char *data, long len)
{
	EVP_PKEY *key = d2i_AutoPrivateKey(NULL, &data, len);

	EVP_PKEY_free(key);
	return key != NULL;
}

/*
 * Other formats in which authorities and servers keep certificates and keys, and the command of
 * openssl(1) that converts them.
 */
static const struct {
	const char *name, *cure;
	bool (*is)(const unsigned char *data, long len);
} not_pem[] = {
    {"DER", "x509 -inform der", identity_is_certificate},
    {"PKCS#12", "pkcs12 -noenc", identity_is_pkcs12},
    {"DER", "pkey -inform der", identity_is_key},
};

static bool
identity_refuse_binary(
    const struct secret_file *sf, const char *file, char *why, size_t size)
{
	const unsigned char *data = (const unsigned char *)sf->sf_text;

	for (size_t i = 0; i < sizeof(not_pem) / sizeof(not_pem[0]); i++)
		if (not_pem[i].is(data, (long)sf->sf_len))
			return identity_fail(why, size,
			    "%s: is %s, not PEM: convert it with openssl %s "
			    "-in %s -out PEMFILE",
			    file, not_pem[i].name, not_pem[i].cure, file);
	return identity_fail(why, size,
	    "%s: contains a NUL byte, so it is not "
	    "PEM: convert it to PEM",
	    file);
}

/*
 * Opens a file.  If `secret` is true, refuses a file that its group can write, or that users other
 * than its owner and group can read or write.
 */
static BIO *
identity_open_file(struct secret_file *sf, const char *file, bool secret,
    char *why, size_t size)
{
	BIO *bio;

	if (!secret_file_read_bytes(sf, file, secret, why, size))
		return NULL;
	if (strlen(sf->sf_text) != sf->sf_len) {
		identity_refuse_binary(sf, file, why, size);
		return NULL;
	}
	bio = BIO_new_mem_buf(sf->sf_text, (int)sf->sf_len);
	if (bio == NULL)
		identity_fail(why, size, "out of memory");
	return bio;
}

static bool
identity_read_files(struct identity *id, const char *cert_file,
    const char *key_file, char *why, size_t size)
{
	struct secret_file sf = {0};
	bool both = key_file == NULL, done;
	BIO *bio = identity_open_file(&sf, cert_file, false, why, size);

	done = bio != NULL && identity_read_certificates(id, bio, why, size);
	BIO_free(bio);
	if (done && both && strstr(sf.sf_text, "PRIVATE KEY-----") == NULL)
		done = identity_fail(why, size,
		    "%s: contains no private key: set certificate_key to the "
		    "file of the key",
		    cert_file);
	secret_file_forget(&sf);
	if (!done)
		return false;
	if (both)
		key_file = cert_file;
	memset(&sf, 0, sizeof(sf));
	bio = identity_open_file(&sf, key_file, true, why, size);
	done = bio != NULL && identity_read_key(id, key_file, bio, why, size);
	BIO_free(bio);
	secret_file_forget(&sf);
	return done;
}

bool
identity_check_authorities(const char *file, char *why, size_t size)
{
	struct identity id = {
	    .id_file = (char *)(uintptr_t)file, .id_chain = sk_X509_new_null()};
	struct secret_file sf = {0};
	BIO *bio = identity_open_file(&sf, file, false, why, size);
	bool done = bio != NULL;

	if (done && id.id_chain == NULL)
		done = identity_fail(why, size, "out of memory");
	done = done && identity_read_certificates(&id, bio, why, size);
	BIO_free(bio);
	secret_file_forget(&sf);
	X509_free(id.id_cert);
	sk_X509_pop_free(id.id_chain, X509_free);
	return done;
}

/* ------------------------------------------------------------- the checks */

static bool
identity_to_time(const ASN1_TIME *from, time_t *to)
{
	struct tm tm = {0};

	if (ASN1_TIME_to_tm(from, &tm) != 1)
		return false;
	*to = timegm(&tm);
	return true;
}

static bool
identity_read_times(
    struct identity *id, const X509 *cert, int number, char *why, size_t size)
{
	time_t begin, end;

	if (!identity_to_time(X509_get0_notBefore(cert), &begin) ||
	    !identity_to_time(X509_get0_notAfter(cert), &end))
		return identity_fail(why, size,
		    "%s: certificate %d has damaged validity dates: download "
		    "it again",
		    id->id_file, number);
	if (number == 1 || begin > id->id_begins) {
		id->id_begins = begin;
		id->id_begins_at = number;
	}
	if (number == 1 || end < id->id_expires) {
		id->id_expires = end;
		id->id_expires_at = number;
		id->id_life = end - begin;
	}
	return true;
}

static bool
identity_check_key(
    const struct identity *id, const char *key_file, char *why, size_t size)
{
	if (X509_check_private_key(id->id_cert, id->id_key) == 1)
		return true;
	ERR_clear_error();
	return identity_fail(why, size,
	    "%s: this key does not belong to the certificate in %s: "
	    "certificate_key must list the keys in the order of certificate",
	    key_file != NULL ? key_file : id->id_file, id->id_file);
}

/*
 * Checks that OpenSSL accepts the certificate, which depends on OpenSSL's version and configuration
 * (openssl.cnf).
 */
static bool
identity_check_use(const struct identity *id, char *why, size_t size)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	bool used = ctx != NULL && SSL_CTX_use_cert_and_key(ctx, id->id_cert,
				       id->id_key, id->id_chain, 0) == 1;
	char cause[128];

	SSL_CTX_free(ctx);
	return used ||
	       identity_fail(why, size,
		   "%s: OpenSSL rejects this certificate or its key: %s",
		   id->id_file, tls_cause(cause, sizeof(cause)));
}

/*
 * Checks that each certificate was issued by the one after it.  The issuer of the last certificate
 * may be a root that clients have.
 */
static bool
identity_check_chain(struct identity *id, char *why, size_t size)
{
	int i, n = sk_X509_num(id->id_chain);
	X509 *below = id->id_cert, *cert;

	for (i = 0; i < n; i++, below = cert) {
		cert = sk_X509_value(id->id_chain, i);
		if (!identity_read_times(id, cert, i + 2, why, size))
			return false;
		if (X509_check_issued(cert, below) != X509_V_OK)
			return identity_fail(why, size,
			    "%s: certificate %d did not issue certificate %d: "
			    "put the site's certificate first, then each "
			    "issuer's",
			    id->id_file, i + 2, i + 1);
	}
	return true;
}

/*
 * Returns true if the certificate names the URL of its issuer's certificate (Authority
 * Information Access, RFC 5280, 4.2.2.1).
 */
static bool
identity_says_where_issuer_is(const X509 *cert)
{
	AUTHORITY_INFO_ACCESS *list =
	    X509_get_ext_d2i(cert, NID_info_access, NULL, NULL);
	const ACCESS_DESCRIPTION *ad;
	bool found = false;
	int i;

	for (i = 0; i < sk_ACCESS_DESCRIPTION_num(list); i++) {
		ad = sk_ACCESS_DESCRIPTION_value(list, i);
		found |= OBJ_obj2nid(ad->method) == NID_ad_ca_issuers;
	}
	AUTHORITY_INFO_ACCESS_free(list);
	return found;
}

static bool
identity_find_issuer(struct identity *id, char *why, size_t size)
{
	X509_NAME *issuer = X509_get_issuer_name(id->id_cert);
	char name[256] = "";

	if (sk_X509_num(id->id_chain) > 0 ||
	    X509_NAME_cmp(X509_get_subject_name(id->id_cert), issuer) == 0 ||
	    !identity_says_where_issuer_is(id->id_cert))
		return true;
	if (X509_NAME_get_text_by_NID(
		issuer, NID_commonName, name, sizeof(name)) == -1)
		X509_NAME_oneline(issuer, name, sizeof(name));
	id->id_issuer = strdup(name);
	return id->id_issuer != NULL ||
	       identity_fail(why, size, "out of memory");
}

static bool
identity_check_purpose(const struct identity *id, char *why, size_t size)
{
	bool extended =
	    (X509_get_extended_key_usage(id->id_cert) & XKU_SSL_SERVER) == 0;

	if (X509_check_purpose(id->id_cert, X509_PURPOSE_SSL_SERVER, 0) == 1)
		return true;
	ERR_clear_error();
	return identity_fail(why, size,
	    "%s: the certificate is not for servers: its %s; request another "
	    "one from its authority",
	    id->id_file,
	    extended ? "extended key usage lacks serverAuth"
		     : "key usage lacks digitalSignature");
}

/*
 * Checks the chain before the purpose: if certificates are in the wrong order, the first one may be
 * an authority's.
 */
static bool
identity_check(
    struct identity *id, const char *key_file, char *why, size_t size)
{
	return identity_read_times(id, id->id_cert, 1, why, size) &&
	       identity_check_chain(id, why, size) &&
	       identity_check_purpose(id, why, size) &&
	       identity_check_key(id, key_file, why, size) &&
	       identity_check_use(id, why, size) &&
	       identity_find_issuer(id, why, size);
}

struct identity *
identity_load(
    const char *cert_file, const char *key_file, char *why, size_t size)
{
	struct identity *id = calloc(1, sizeof(*id));

	if (id == NULL) {
		identity_fail(why, size, "out of memory");
		return NULL;
	}
	ERR_clear_error();
	id->id_file = strdup(cert_file);
	id->id_chain = sk_X509_new_null();
	if (id->id_file == NULL || id->id_chain == NULL)
		identity_fail(why, size, "out of memory");
	else if (identity_read_files(id, cert_file, key_file, why, size) &&
		 identity_check(id, key_file, why, size))
		return id;
	ERR_clear_error();
	identity_free(id);
	return NULL;
}

struct identity *
identity_free(struct identity *id)
{
	struct identity *next = id->id_next;

	X509_free(id->id_cert);
	sk_X509_pop_free(id->id_chain, X509_free);
	EVP_PKEY_free(id->id_key);
	free(id->id_issuer);
	free(id->id_file);
	free(id);
	return next;
}

static bool
identity_begins_late(const struct identity *id, char *why, size_t size)
{
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC",
	    gmtime_r(&id->id_begins, &tm));
	return identity_fail(why, size,
	    "%s: certificate %d is not valid before %s: check the clock",
	    id->id_file, id->id_begins_at, text);
}

static bool
identity_expires(
    const struct identity *id, const char *verb, char *why, size_t size)
{
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC",
	    gmtime_r(&id->id_expires, &tm));
	return identity_fail(why, size, "%s: certificate %d %s on %s: renew it",
	    id->id_file, id->id_expires_at, verb, text);
}

bool
identity_is_good(const struct identity *id, time_t now, char *why, size_t size)
{
	if (id->id_expires <= now)
		return identity_expires(id, "expired", why, size);
	if (id->id_begins > now)
		return identity_begins_late(id, why, size);
	if (id->id_issuer == NULL)
		return true;
	return identity_fail(why, size,
	    "%s: the chain is incomplete: append the certificate of the "
	    "issuer, %s",
	    id->id_file, id->id_issuer);
}

bool
identity_stays_good(
    const struct identity *id, time_t now, char *why, size_t size)
{
	time_t third = id->id_life / 3,
	       soon = third < IDENTITY_SOON ? third : IDENTITY_SOON;

	if (!identity_is_good(id, now, why, size))
		return false;
	return id->id_expires > now + soon ||
	       identity_expires(id, "expires", why, size);
}

/* -------------------------------------------------------------- the names */

bool
identity_covers(const struct identity *id, const char *host, size_t len)
{
	char text[HOST_MAX];

	if (len == 0 || len >= sizeof(text))
		return false;
	if (host[0] == '[' && host[len - 1] == ']')
		host++, len -= 2;
	memcpy(text, host, len);
	text[len] = '\0';
	if (X509_check_ip_asc(id->id_cert, text, 0) == 1)
		return true;
	return X509_check_host(id->id_cert, text, len,
		   X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}
