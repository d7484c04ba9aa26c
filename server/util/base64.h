/*
 * base64: encodes and decodes base64 (RFC 4648).  Pure; any thread.
 */
#ifndef SERVER_UTIL_BASE64_H
#define SERVER_UTIL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

/* Length of the encoded text of n bytes, without '='. */
#define BASE64URL_LEN(n) (((n)*4 + 2) / 3)

/*
 * Decodes text in the standard alphabet (section 4).  Accepts only whole groups of four characters,
 * padded with '=', without other bytes and without unused bits set.  Returns false for any other
 * text, or if the decoded bytes exceed `size`.
 */
bool base64_decode(struct str, unsigned char *out, size_t size, size_t *len);

/* Encodes with the URL alphabet (section 5), without '=': writes BASE64URL_LEN bytes and no NUL. */
void base64_encode_url(const unsigned char *, size_t len, char *out);

#endif
