/*
 * basic: reads the credentials of Basic authentication (RFC 7617) from the field Authorization.
 * Pure.
 */
#ifndef SERVER_HTTP_BASIC_H
#define SERVER_HTTP_BASIC_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

#define BASIC_MOST ((size_t)512) /* maximum bytes of user, colon and password */

/*
 * Credentials without control characters.  bs_user is not empty.  bs_user and bs_password point
 * into bs_text, and end with a NUL.
 */
struct basic {
	char bs_text[BASIC_MOST + 1];
	size_t bs_len;
	const char *bs_user;
	const char *bs_password;
};

/*
 * Reads the credentials from the field value.  Returns false if they are missing or malformed; the
 * structure then holds no secret to wipe.
 */
bool basic_parse(struct str authorization, struct basic *);

/* Wipes the credentials. */
void basic_forget(struct basic *);

#endif
