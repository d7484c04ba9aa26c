/*
 * identity: a certificate with its chain and its private key, from PEM files: who a site is to
 * its clients.  Read at the start by the user that starts the server; immutable and counted
 * after that, so any thread may use one.
 */
#ifndef SERVER_TLS_IDENTITY_H
#define SERVER_TLS_IDENTITY_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct identity {
	struct identity *id_next; /* the owner's: of one site */
	char *id_file;		  /* of the certificate */
	X509 *id_cert;
	STACK_OF(X509) *
	    id_chain; /* those that follow in the file; may be empty */
	EVP_PKEY *id_key;
	time_t id_expires; /* the first of it and its chain */
};

/*
 * The first certificate of cert_file is the site's, the others are its chain; key_file NULL: the
 * key is in cert_file.  NULL, with the cause and the file: it cannot be read, anybody may
 * read or write the key, it has a passphrase, the key is of another certificate, it has
 * expired or is not valid yet, it is for no server, a certificate of the chain does not sign
 * the one before it, or the chain ends before a certificate that no root can have signed.
 */
struct identity *identity_load(
    const char *cert_file, const char *key_file, char *why, size_t size);

/* Returns id_next. */
struct identity *identity_free(struct identity *);

/* Whether the certificate is for this host: a name or an address, without a port. */
bool identity_covers(const struct identity *, const char *host, size_t len);

/* The last cause that OpenSSL has given, as a text; the queue of errors is empty then. */
const char *tls_cause(char *text, size_t size);

#endif
