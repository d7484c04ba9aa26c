/*
 * signed_link: a link that is valid until a given time, optionally for some clients only:
 *
 *	/PATH?expires=1790000000&signature=BASE64URL
 *	/PATH?expires=1790000000&client=192.0.2.7&signature=BASE64URL
 *
 * The signature is the HMAC-SHA256, with a key of link_key.h, of four lines without a newline after
 * the last: "pagewise link 1", the seconds since the epoch, the client (an address block in the
 * syntax of cidr.h, or empty), the path as decoded by the server.  Only the path may contain a
 * newline, and it is last, so no two links sign the same text.
 *
 * Other members of the query are allowed, and are not signed.  Pure.
 */
#ifndef SERVER_HTTP_SIGNED_LINK_H
#define SERVER_HTTP_SIGNED_LINK_H

#include <time.h>

#include "server/util/base64.h"
#include "server/util/hmac.h"
#include "server/util/link_key.h"
#include "server/util/str.h"

struct sockaddr;

#define SIGNED_LINK_CLIENT    64 /* maximum bytes of a client, with a NUL */
#define SIGNED_LINK_EXPIRES   11 /* maximum digits of the time */
#define SIGNED_LINK_SIGNATURE BASE64URL_LEN(HMAC_LEN)

enum signed_link {
	SIGNED_LINK_GOOD,
	SIGNED_LINK_BAD,
	SIGNED_LINK_EXPIRED, /* signed correctly, but its time has passed */
};

/* Parameters in the query of a signed link. */
struct link_query {
	struct str lq_expires;		    /* digits, not starting with 0 */
	char lq_client[SIGNED_LINK_CLIENT]; /* decoded; empty if unrestricted */
	struct str lq_signature;	    /* SIGNED_LINK_SIGNATURE bytes */
};

/*
 * Reads the parameters.  Returns false if one is missing (client is optional), repeated or
 * malformed.
 */
bool link_query_parse(struct str query, struct link_query *);

/* Returns true if the query already has one of the parameters, so that it cannot be signed. */
bool link_query_has(struct str query);

/* Writes the signature.  Returns false if it cannot be computed. */
bool link_sign(struct hmac *, const struct link_key *,
    const struct link_query *, struct str path,
    char signature[SIGNED_LINK_SIGNATURE]);

/* Checks the link.  `query` is raw, and may be absent; `path` is decoded. */
enum signed_link signed_link_check(struct hmac *, const struct link_keys *,
    struct str query, struct str path, const struct sockaddr *, time_t now);

#endif
