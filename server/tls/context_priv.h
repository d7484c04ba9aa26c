/*
 * context_priv: declarations that the files of server/tls/ share.  No other file includes this
 * header.
 */
#ifndef SERVER_TLS_CONTEXT_PRIV_H
#define SERVER_TLS_CONTEXT_PRIV_H

#include <openssl/ssl.h>

#include "server/tls/context.h"
#include "server/tls/record.h"

/* maximum number of gathered records: a time slice of HTTP/2, 512 KiB and the heads of its frames */
#define TLS_RECORDS 33
#define TLS_GATHER  (TLS_RECORDS * (RECORD_PLAIN + RECORD_OVERHEAD))

struct tls;

/* OpenSSL's context of a site. */
struct tls_place {
	SSL_CTX *pl_context;
	const struct tls_site *pl_site;
	/* first certificate of the site, or the default site's */
	const struct identity *pl_identity;
	bool pl_signs_fast; /* identity_signs_fast of the site's certificates */
};

struct tls_context {
	struct tls_place *tx_sites; /* in the order of the configuration */
	size_t tx_nsites;
	size_t (*tx_find)(const void *, const char *, size_t);
	const void *tx_arg;
	bool tx_ktls;
	BIO_METHOD *tx_method;
	/* Buffer for the records of the next system call; used only by the loop's thread. */
	char tx_gather[TLS_GATHER];
	/* Buffer in which received records are decrypted; used only by the loop's thread. */
	unsigned char tx_scatter[RECORD_LONGEST];
};

/*
 * Returns the BIO method for the socket during the handshake (bio.c), or NULL if memory is short.
 */
BIO_METHOD *tls_bio_method(void);

/* Initialises the fields that stream.c uses. */
void tls_stream_init(struct tls *);

/*
 * Sends a pending KeyUpdate and a pending alert.  Returns 0, or -EPIPE if nothing more can be sent.
 */
int tls_say_what_is_due(struct tls *);

/* Returns the index of struct tls in the ex_data of an SSL, or -1 if memory is short. */
int tls_session_index(void);

#endif
