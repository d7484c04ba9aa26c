/*
 * identity: a certificate with its chain and its private key, from PEM files: who a site is to
 * its clients.  Read at the start by the user that starts the server; immutable and counted
 * after that, so any thread may use one.
 */
#ifndef SERVER_TLS_IDENTITY_H
#define SERVER_TLS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* OpenSSL's, by their tags: only server/tls/ includes its headers. */
struct evp_pkey_st;
struct stack_st_X509;
struct x509_st;

struct identity {
	struct identity *id_next; /* the owner's: of one site */
	char *id_file;		  /* of the certificate */
	struct x509_st *id_cert;
	struct stack_st_X509 *id_chain; /* the rest of the file; may be empty */
	struct evp_pkey_st *id_key;
	time_t id_begins;  /* the last one of it and its chain */
	time_t id_expires; /* the first one ... */
	time_t id_life;	   /* ... whose whole time this is, seconds */
	int id_begins_at;  /* its place, from 1 */
	int id_expires_at;
	char *id_issuer; /* that should be in the chain and is not, or NULL */
};

#define IDENTITY_SOON 1209600 /* seconds: 14 days */

/*
 * The first certificate of cert_file is the site's, the others are its chain; key_file NULL: the
 * key is in cert_file.  NULL, with the file, the cause and what to do: it cannot be read, others
 * may read or write the key, it has a passphrase, the key is of another certificate, OpenSSL
 * does not take it (the key is too small), it is for no server, or a certificate of the chain
 * has not issued the one before it.
 */
struct identity *identity_load(
    const char *cert_file, const char *key_file, char *why, size_t size);

/*
 * Whether clients would take it now, as far as it says itself.  False, with the file and the
 * cause: it has expired, is not valid yet, or its chain is incomplete: it is issued by another
 * one, alone in its file, and says where to fetch the issuer, which few clients do.
 */
bool identity_is_good(
    const struct identity *, time_t now, char *why, size_t size);

/*
 * The same for IDENTITY_SOON from now on, or a third of its time if that is less: what to say
 * before it is too late.
 */
bool identity_stays_good(
    const struct identity *, time_t now, char *why, size_t size);

/* For client_ca: whether there are certificates in it.  False, with the file and the cause. */
bool identity_check_authorities(const char *file, char *why, size_t size);

/* Returns id_next. */
struct identity *identity_free(struct identity *);

/* Whether the certificate is for this host: a name or an address, without a port. */
bool identity_covers(const struct identity *, const char *host, size_t len);

/* Returns true if both keys are of one kind, RSA or ECDSA: a context has a place for each. */
bool identity_same_kind(const struct identity *, const struct identity *);

/* The last cause that OpenSSL has given, as a text; the queue of errors is empty then. */
const char *tls_cause(char *text, size_t size);

#endif
