/*
 * signed_link: a link that is good until a time, and perhaps for some clients only:
 *
 *	/PATH?expires=1790000000&signature=BASE64URL
 *	/PATH?expires=1790000000&client=192.0.2.7&signature=BASE64URL
 *
 * The signature is the HMAC-SHA256, by a key of link_key.h, of four lines without a newline
 * after the last: "pagewise link 1", the seconds since the epoch, the client (a block of
 * addresses as cidr.h reads it, or empty), the path as the server has decoded it.  Only the
 * path may have a newline in it, and is last: so no two links have one text.
 *
 * Other members of the query may be there, and are not signed.  Pure.
 */
#ifndef SERVER_HTTP_SIGNED_LINK_H
#define SERVER_HTTP_SIGNED_LINK_H

#include <time.h>

#include "server/util/base64.h"
#include "server/util/hmac.h"
#include "server/util/link_key.h"
#include "server/util/str.h"

struct sockaddr;

#define SIGNED_LINK_CLIENT    64 /* bytes of a client at most, with a NUL */
#define SIGNED_LINK_EXPIRES   11 /* digits at most */
#define SIGNED_LINK_SIGNATURE BASE64URL_LEN(HMAC_LEN)

enum signed_link {
	SIGNED_LINK_GOOD,
	SIGNED_LINK_BAD,
	SIGNED_LINK_EXPIRED, /* it was good */
};

/* What a query says. */
struct link_query {
	struct str lq_expires;		    /* digits, the first one is not 0 */
	char lq_client[SIGNED_LINK_CLIENT]; /* decoded; empty: of anybody */
	struct str lq_signature;	    /* SIGNED_LINK_SIGNATURE bytes */
};

/* False: one of the members is missing, is there twice, or is none. */
bool link_query_parse(struct str query, struct link_query *);

/* Has one of them already: it cannot be signed. */
bool link_query_has(struct str query);

/* False: it cannot be told. */
bool link_sign(struct hmac *, const struct link_key *,
    const struct link_query *, struct str path,
    char signature[SIGNED_LINK_SIGNATURE]);

/* query: raw, or absent; path: decoded. */
enum signed_link signed_link_check(struct hmac *, const struct link_keys *,
    struct str query, struct str path, const struct sockaddr *, time_t now);

#endif
