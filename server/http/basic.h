/*
 * basic: the credentials of Basic authentication (RFC 7617) in a field Authorization.  Pure.
 */
#ifndef SERVER_HTTP_BASIC_H
#define SERVER_HTTP_BASIC_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

#define BASIC_MOST ((size_t)512) /* bytes of user, colon and password */

/* User and password end with a NUL and have no control characters; the user is not empty. */
struct basic {
	char bs_text[BASIC_MOST + 1];
	size_t bs_len;
	const char *bs_user; /* in bs_text, as bs_password is */
	const char *bs_password;
};

/*
 * Reads the credentials from the field value.  Returns false if the value has no valid ones;
 * nothing is then left to wipe.
 */
bool basic_parse(struct str authorization, struct basic *);

/* Wipes the credentials. */
void basic_forget(struct basic *);

#endif
