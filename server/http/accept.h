/*
 * accept: reads the weights that a client states in the lists of Accept and Accept-Encoding (RFC
 * 9110, 12.4.2, 12.5.1 and 12.5.3).  Pure.
 */
#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include "server/util/str.h"

#define ACCEPT_MOST    1000 /* q=1, the default of a member without a weight */
#define ACCEPT_NOT     0    /* q=0: not acceptable */
#define ACCEPT_NOTHING (-1) /* no member matches */

/*
 * Returns the weight of a name in a field value, in thousandths.  The name is a media type
 * ("text/html") or a token ("gzip", which "x-gzip" matches as well), without parameters.  The most
 * specific member decides: the name itself, then "text/" and an asterisk, then the asterisks alone.
 * So the weight of "identity" is ACCEPT_NOT if the list has "*;q=0" and no "identity".  Among
 * equally specific members the highest weight counts; parameters other than "q" are ignored.  A
 * member that breaks the grammar ("q=2") is ignored, and so is one with an unterminated quoted
 * string.  An absent list counts as an empty one.
 */
int accept_weight(struct str list, struct str name);

#endif
