/*
 * accept: reads the weights in a client's Accept or Accept-Encoding (RFC 9110, 12.4.2, 12.5.1 and
 * 12.5.3).  Pure.
 */
#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include "server/util/str.h"

#define ACCEPT_MOST    1000 /* q=1, the default of a member without a weight */
#define ACCEPT_NOT     0    /* q=0: the client does not accept the name */
#define ACCEPT_NOTHING (-1) /* no member matches */

/*
 * Returns the weight of a name in a field value, in thousandths, or ACCEPT_NOTHING.  The name is a
 * media type ("text/html") or a content coding ("gzip"), without parameters.  The member "x-gzip"
 * also matches "gzip".  The most specific member decides: the name itself, else "text/" and an
 * asterisk, else asterisks alone.  So the weight of "identity" is ACCEPT_NOT if the list has
 * "*;q=0" and no "identity".  Of equally specific members the highest weight counts.  Parameters
 * other than "q" are ignored, and so are malformed members ("q=2", an unterminated quoted string).
 * An absent list counts as an empty list.
 */
int accept_weight(struct str list, struct str name);

#endif
