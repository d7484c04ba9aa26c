/*
 * context_priv: what the files of TLS share; for server/tls/ only.
 */
#ifndef SERVER_TLS_CONTEXT_PRIV_H
#define SERVER_TLS_CONTEXT_PRIV_H

#include <openssl/ssl.h>

#include "server/tls/context.h"
#include "server/tls/record.h"

#define TLS_RECORDS 5 /* gathered at most: a head, and 64 KiB */
#define TLS_GATHER  (TLS_RECORDS * (RECORD_PLAIN + RECORD_OVERHEAD))

struct tls;

struct tls_place {
	SSL_CTX *pl_context;
	const struct tls_site *pl_site;
	const struct identity
	    *pl_identity; /* its first one, or the default's */
};

struct tls_context {
	struct tls_place *tx_sites; /* in the order of the configuration */
	size_t tx_nsites;
	size_t (*tx_find)(const void *, const char *, size_t);
	const void *tx_arg;
	bool tx_ktls;
	BIO_METHOD *tx_method;
	/* Records that are sent with the next call: the loop's thread. */
	char tx_gather[TLS_GATHER];
	/* What comes is decrypted here: the same. */
	unsigned char tx_scatter[RECORD_LONGEST];
};

/* bio.c: the socket in the handshake.  NULL: no memory. */
BIO_METHOD *tls_bio_method(void);

/* stream.c */
void tls_stream_init(struct tls *);

/* What the client is owed for what it has sent: 0 or -errno. */
int tls_say_what_is_due(struct tls *);

/* Place for the session in an SSL. */
int tls_session_index(void);

#endif
