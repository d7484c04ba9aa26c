/*
 * utf8: text that others sent, character by character (RFC 3629).  Pure.
 */
#ifndef SERVER_UTIL_UTF8_H
#define SERVER_UTIL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The character that the len bytes at text begin with.  Returns its length in bytes,
 * or 0 if they are not UTF-8: cut off, overlong, a surrogate, above U+10FFFF.
 */
size_t utf8_decode(const char *text, size_t len, uint32_t *character);

#endif
