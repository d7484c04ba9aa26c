/*
 * base64: RFC 4648.  Pure; any thread.
 */
#ifndef SERVER_UTIL_BASE64_H
#define SERVER_UTIL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

/* Bytes of the text of n bytes, without '='. */
#define BASE64URL_LEN(n) (((n)*4 + 2) / 3)

/*
 * The usual alphabet (section 4), strictly: whole groups of four with their '=', no other
 * byte, no bit set that is not used.  False: it is none, or takes more than size.
 */
bool base64_decode(struct str, unsigned char *out, size_t size, size_t *len);

/* The alphabet for URLs (section 5), without '=': BASE64URL_LEN bytes, no NUL. */
void base64_encode_url(const unsigned char *, size_t len, char *out);

#endif
