/*
 * accept: what a client would rather have: the lists with weights of Accept and
 * Accept-Encoding (RFC 9110, 12.4.2, 12.5.1 and 12.5.3).  Pure.
 */
#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include "server/util/str.h"

#define ACCEPT_MOST    1000 /* q=1, which is also what no weight means */
#define ACCEPT_NOT     0    /* q=0: the client does not want it */
#define ACCEPT_NOTHING (-1) /* the list does not speak of it */

/*
 * The weight of a name in a field's value, in thousandths.  The name is a media type
 * ("text/html") or a token ("gzip", which "x-gzip" names as well), without parameters.  The member that names it most closely
 * decides: the name itself, then "text/" and an asterisk, then the asterisks alone.  So
 * "identity" has ACCEPT_NOT where "*;q=0" stands without it.  Of several members that are as
 * close the highest weight counts; their parameters are ignored.  A member that breaks the
 * grammar ("q=2") is left out; so is one whose quoted string does not end.  Absent is as empty.
 */
int accept_weight(struct str list, struct str name);

#endif
