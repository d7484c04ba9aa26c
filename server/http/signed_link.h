/*
 * signed_link: signs and checks links that are valid until a given time, optionally only for some
 * clients:
 *
 *	/PATH?expires=1790000000&signature=BASE64URL
 *	/PATH?expires=1790000000&client=192.0.2.7&signature=BASE64URL
 *
 * The signature is an HMAC-SHA256 with a key of link_key.h.  The signature covers four lines: the
 * text "pagewise link 1", the expiry time in seconds since the epoch, the client (an address block
 * in the syntax of cidr.h, or empty), and the decoded path.  No newline follows the path.  Only the
 * path may contain a newline, and the path is last, so two different links never sign the same
 * text.
 *
 * The query may have other members, which are not signed.  Pure.
 */
#ifndef SERVER_HTTP_SIGNED_LINK_H
#define SERVER_HTTP_SIGNED_LINK_H

#include <time.h>

#include "server/util/base64.h"
#include "server/util/hmac.h"
#include "server/util/link_key.h"
#include "server/util/str.h"

struct sockaddr;

#define SIGNED_LINK_CLIENT    64 /* maximum bytes of the client, with a NUL */
#define SIGNED_LINK_EXPIRES   11 /* maximum digits of the expiry time */
#define SIGNED_LINK_SIGNATURE BASE64URL_LEN(HMAC_LEN)

enum signed_link {
	SIGNED_LINK_GOOD,
	SIGNED_LINK_BAD,
	SIGNED_LINK_EXPIRED, /* signed correctly, but expired */
};

struct link_query {
	struct str lq_expires;		    /* digits; the first is not 0 */
	char lq_client[SIGNED_LINK_CLIENT]; /* decoded; empty for any client */
	struct str lq_signature;	    /* base64url digits */
};

/*
 * Reads the parameters from the query.  Returns false if expires or signature is missing, or a
 * parameter is repeated or malformed.
 */
bool link_query_parse(struct str query, struct link_query *);

/* Returns true if the query has expires, client or signature; such a query cannot be signed. */
bool link_query_has(struct str query);

/* Computes and writes the signature.  Returns false if the computation fails. */
bool link_sign(struct hmac *, const struct link_key *,
    const struct link_query *, struct str path,
    char signature[SIGNED_LINK_SIGNATURE]);

/* Checks the link.  `query` is raw and may be absent; `path` is decoded. */
enum signed_link signed_link_check(struct hmac *, const struct link_keys *,
    struct str query, struct str path, const struct sockaddr *, time_t now);

#endif
