/*
 * utf8: decodes text from clients, character by character (RFC 3629).  Pure.
 */
#ifndef SERVER_UTIL_UTF8_H
#define SERVER_UTIL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at the start of the len bytes at text.  Returns the number of its bytes, or
 * 0 if the bytes are not UTF-8: truncated, overlong, a surrogate, or above U+10FFFF.
 */
size_t utf8_decode(const char *text, size_t len, uint32_t *character);

#endif
