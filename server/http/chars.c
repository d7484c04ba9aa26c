/*
 * chars: see chars.h.
 */
#include "server/http/chars.h"

#define AMONG(c, a, b) ((c) >= (a) && (c) <= (b))
#define DIGIT(c)       AMONG(c, '0', '9')
#define ALNUM(c)       (DIGIT(c) || AMONG(c, 'a', 'z') || AMONG(c, 'A', 'Z'))
#define HEX(c)	       (DIGIT(c) || AMONG(c, 'a', 'f') || AMONG(c, 'A', 'F'))
#define VISIBLE(c)     AMONG(c, '!', '~')
#define TEXT(c)	       (VISIBLE(c) || (c) == ' ' || (c) == '\t' || (c) >= 0x80)

/* Letters, digits and -._~ */
#define UNRESERVED(c) \
	(ALNUM(c) || (c) == '-' || (c) == '.' || (c) == '_' || (c) == '~')
/* Letters, digits and -._~!#$%&'*+^`| */
#define TOKEN(c)                                                             \
	(UNRESERVED(c) || (c) == '!' || AMONG(c, '#', '\'') || (c) == '*' || \
	    (c) == '+' || (c) == '^' || (c) == '`' || (c) == '|')
/* Letters, digits and -._~!$&'()*+,;= */
#define HOST(c)                                                             \
	(UNRESERVED(c) || (c) == '!' || (c) == '$' || AMONG(c, '&', ',') || \
	    (c) == ';' || (c) == '=')
/* Letters, digits and -._~/!$()*+,;=@ */
#define LINK(c)                                                     \
	(UNRESERVED(c) || (c) == '/' || (c) == '!' || (c) == '$' || \
	    AMONG(c, '(', ',') || (c) == ';' || (c) == '=' || (c) == '@')
#define SEGMENT(c) ((c) != '/' && (c) != '%' && (c) != 0)

#define CLASSES(c)                                                          \
	((DIGIT(c) ? CHAR_DIGIT : 0) | (HEX(c) ? CHAR_HEX : 0) |            \
	    (TOKEN(c) ? CHAR_TOKEN : 0) | (VISIBLE(c) ? CHAR_VISIBLE : 0) | \
	    (TEXT(c) ? CHAR_TEXT : 0) | (HOST(c) ? CHAR_HOST : 0) |         \
	    (SEGMENT(c) ? CHAR_SEGMENT : 0) | (LINK(c) ? CHAR_LINK : 0))

#define FOUR(c)	   CLASSES(c), CLASSES((c) + 1), CLASSES((c) + 2), CLASSES((c) + 3)
#define SIXTEEN(c) FOUR(c), FOUR((c) + 4), FOUR((c) + 8), FOUR((c) + 12)
#define ROW(c) \
	SIXTEEN(c), SIXTEEN((c) + 16), SIXTEEN((c) + 32), SIXTEEN((c) + 48)

const unsigned char char_classes[256] = {ROW(0), ROW(64), ROW(128), ROW(192)};
