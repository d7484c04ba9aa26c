/* chars: classes of characters, in a table, because each byte of a request is looked up.  Pure. */
#ifndef SERVER_HTTP_CHARS_H
#define SERVER_HTTP_CHARS_H

#include <stdbool.h>

enum char_class {
	CHAR_DIGIT = 1 << 0,
	CHAR_HEX = 1 << 1,
	CHAR_TOKEN = 1 << 2,   /* RFC 9110, 5.6.2 */
	CHAR_VISIBLE = 1 << 3, /* ASCII, not space */
	CHAR_TEXT = 1 << 4,    /* in field values (RFC 9110, 5.5) */
	CHAR_HOST = 1 << 5,    /* in a reg-name outside escapes (3986, 3.2.2) */
	CHAR_SEGMENT = 1 << 6, /* literal in a path; not '/', '%' or NUL */
	CHAR_LINK = 1 << 7,    /* left unescaped in paths by target_encode */
};

extern const unsigned char char_classes[256];

static inline bool
chars_is(char c, enum char_class class)
{
	return (char_classes[(unsigned char)c] & class) != 0;
}

#endif
