/*
 * str: a slice of bytes that somebody else owns.  Not NUL-terminated.
 */
#ifndef SERVER_STR_H
#define SERVER_STR_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct str {
	const char *s_ptr; /* NULL: absent, which is not the same as empty */
	size_t s_len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

static inline bool
str_eq(struct str a, struct str b)
{
	return a.s_len == b.s_len && memcmp(a.s_ptr, b.s_ptr, a.s_len) == 0;
}

static inline bool
str_caseeq(struct str a, struct str b)
{
	return a.s_len == b.s_len &&
	       strncasecmp(a.s_ptr, b.s_ptr, a.s_len) == 0;
}

/* Optional white space (RFC 9110, 5.6.3). */
static inline bool
str_is_ows(char c)
{
	return c == ' ' || c == '\t';
}

static inline struct str
str_trim(struct str s)
{
	while (s.s_len > 0 && str_is_ows(s.s_ptr[0])) {
		s.s_ptr++;
		s.s_len--;
	}
	while (s.s_len > 0 && str_is_ows(s.s_ptr[s.s_len - 1]))
		s.s_len--;
	return s;
}

#endif
