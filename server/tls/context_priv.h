/*
 * context_priv: what the files of TLS share; for server/tls/ only.
 */
#ifndef SERVER_TLS_CONTEXT_PRIV_H
#define SERVER_TLS_CONTEXT_PRIV_H

#include <openssl/ssl.h>

#include "server/tls/context.h"

#define TLS_RECORD  16384 /* bytes of plaintext */
#define TLS_RECORDS 4	  /* gathered at most */
/* Header, explicit nonce or content type, tag, and room to spare for padding. */
#define TLS_GATHER  (TLS_RECORDS * (TLS_RECORD + 256))

struct tls_context {
	SSL_CTX **
	    tx_contexts; /* in the order of the sites; the same may stand twice */
	const struct tls_site **tx_sites;
	const struct identity **tx_identities; /* the same order */
	size_t tx_nsites;
	size_t (*tx_find)(const void *, const char *, size_t);
	const void *tx_arg;
	bool tx_ktls;
	BIO_METHOD *tx_method;
	/* Records that are sent with the next call: the loop's thread. */
	size_t tx_gathered;
	char tx_gather[TLS_GATHER];
};

/* session.c: reads from the socket, writes into tx_gather.  NULL: no memory. */
BIO_METHOD *tls_bio_method(void);

/* Place for the session in an SSL. */
int tls_session_index(void);

#endif
