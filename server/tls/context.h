/*
 * context: the state that all TLS connections of a worker share: one OpenSSL context for each site,
 * and buffers for records.  Each worker has its own contexts, since threads that share a context
 * contend for its locks (OpenSSL 3.0).
 *
 * The two profiles follow Mozilla's server side TLS guidelines, version 5.8 (2025).
 */
#ifndef SERVER_TLS_CONTEXT_H
#define SERVER_TLS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "server/tls/identity.h"

struct ticket_keys;

enum tls_profile { TLS_INTERMEDIATE, TLS_MODERN };
enum tls_ktls { TLS_KTLS_AUTO, TLS_KTLS_ON, TLS_KTLS_OFF };
enum tls_verify { TLS_VERIFY_OFF, TLS_VERIFY_OPTIONAL, TLS_VERIFY_REQUIRE };

/*
 * TLS settings of a site, owned by the configuration.  A site that verifies clients does not resume
 * sessions.
 */
struct tls_site {
	/* name of the site; a session resumes only at a site of this name */
	const char *ts_name;
	/* certificates, or NULL to use the default site's */
	struct identity *ts_identities;
	enum tls_verify ts_verify;
	const char *ts_client_ca; /* PEM file, or NULL */
};

struct tls_settings {
	enum tls_profile tc_profile;
	enum tls_ktls tc_ktls;
	bool tc_http2;			/* true if HTTP/2 is offered */
	struct ticket_keys *tc_tickets; /* NULL without resumption */
	/*
	 * List of sites.  The first one is the default and has a certificate.  tls_context_create
	 * copies the list.
	 */
	const struct tls_site *const *tc_sites;
	size_t tc_nsites;
	/*
	 * Returns the index in tc_sites of the site for an SNI name, which ends with a NUL.  `arg`
	 * is tc_arg.
	 */
	size_t (*tc_find)(const void *arg, const char *name, size_t len);
	const void *tc_arg;
};

struct tls_context;

/* Returns OpenSSL's name and version. */
const char *tls_library(void);

/*
 * Prepares OpenSSL, which reads files.  Call before threads start and before the sandbox.  Returns
 * 0 or -errno.
 */
int tls_prepare(void);

/* Creates the contexts of a worker.  Returns 0, or -errno with the reason in `why`. */
int tls_context_create(
    const struct tls_settings *, struct tls_context **, char *why, size_t size);
void tls_context_destroy(struct tls_context **);

#endif
