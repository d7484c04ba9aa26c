/*
 * identity: a certificate that a site sends to its clients, with its chain and its private key,
 * from PEM files.  The user that starts the server reads the files at the start.  After that an
 * identity is immutable, and OpenSSL counts references to its parts, so any thread may use it.
 */
#ifndef SERVER_TLS_IDENTITY_H
#define SERVER_TLS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* OpenSSL's types by their tags: only server/tls/ includes OpenSSL's headers. */
struct evp_pkey_st;
struct stack_st_X509;
struct x509_st;

struct identity {
	struct identity *id_next; /* next identity of the site, for the owner */
	char *id_file;		  /* file of the certificate */
	struct x509_st *id_cert;
	/* other certificates of the file; may be empty */
	struct stack_st_X509 *id_chain;
	struct evp_pkey_st *id_key;
	/* latest begin of validity in the certificate and its chain */
	time_t id_begins;
	/* earliest end of validity in the certificate and its chain */
	time_t id_expires;
	/* lifetime of the certificate that ends first, seconds */
	time_t id_life;
	int id_begins_at;  /* number of the certificate of id_begins, from 1 */
	int id_expires_at; /* number of the certificate of id_expires, from 1 */
	/* name of the issuer that is missing in the chain, or NULL */
	char *id_issuer;
};

#define IDENTITY_SOON 1209600 /* 14 days, in seconds: see identity_stays_good */

/*
 * Loads an identity.  The first certificate of cert_file is the site's, the others are its chain;
 * the key is in key_file, or in cert_file if key_file is NULL.  Returns NULL, and writes the file,
 * the cause and the remedy to `why`, in these cases: a file cannot be read; users other than the
 * owner and group may read or write the key, or the group may write it; the key has a passphrase or
 * belongs to another certificate; OpenSSL refuses the certificate, for example because the key is
 * too small; the certificate is not for servers; or a certificate of the chain has not issued the
 * one before it.
 */
struct identity *identity_load(
    const char *cert_file, const char *key_file, char *why, size_t size);

/*
 * Returns true if clients would accept the certificate now, judged by the certificate alone.
 * Returns false, and writes the file and the cause to `why`, if it has expired or is not valid yet,
 * or if its chain is incomplete.  A chain is incomplete if the certificate is alone in its file,
 * has another issuer, and names the URL of that issuer's certificate.  Few clients fetch such a
 * certificate.
 */
bool identity_is_good(
    const struct identity *, time_t now, char *why, size_t size);

/*
 * Returns true if clients would also accept the certificate for IDENTITY_SOON from now on, or for a
 * third of its lifetime if that is less.  Otherwise returns false, and writes a warning to `why`.
 */
bool identity_stays_good(
    const struct identity *, time_t now, char *why, size_t size);

/*
 * Checks a file of authorities, for client_ca.  Returns true if it contains valid certificates.
 * Otherwise returns false, and writes the file and the cause to `why`.
 */
bool identity_check_authorities(const char *file, char *why, size_t size);

/* Frees an identity.  Returns id_next. */
struct identity *identity_free(struct identity *);

/* Returns true if the certificate is for this host: a name or an address, without a port. */
bool identity_covers(const struct identity *, const char *host, size_t len);

/* Returns true if both keys are of one kind, RSA or ECDSA: a context has a slot for each kind. */
bool identity_same_kind(const struct identity *, const struct identity *);

/*
 * Returns true if a signature of this identity and of each next one takes well below 0.1 ms, as
 * P-256 and Ed25519 do.  RSA-2048 takes ten times as long.
 */
bool identity_signs_fast(const struct identity *);

/*
 * Writes the reason of OpenSSL's last error to `text`, empties the queue of errors, and returns
 * `text`.
 */
const char *tls_cause(char *text, size_t size);

#endif
