/*
 * str: a borrowed slice of bytes.  Not NUL-terminated.
 */
#ifndef SERVER_UTIL_STR_H
#define SERVER_UTIL_STR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct str {
	const char *s_ptr; /* NULL if absent, which differs from empty */
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

/* Returns true if c is optional white space (RFC 9110, 5.6.3). */
static inline bool
str_is_ows(char c)
{
	return c == ' ' || c == '\t';
}

/* Removes the first n bytes.  n is at most s_len. */
static inline void
str_advance(struct str *s, size_t n)
{
	s->s_ptr += n;
	s->s_len -= n;
}

static inline void
str_skip_ows(struct str *s)
{
	while (s->s_len > 0 && str_is_ows(*s->s_ptr))
		str_advance(s, 1);
}

static inline struct str
str_trim(struct str s)
{
	str_skip_ows(&s);
	while (s.s_len > 0 && str_is_ows(s.s_ptr[s.s_len - 1]))
		s.s_len--;
	return s;
}

/* Removes the prefix `what`.  Returns false if s does not begin with it. */
static inline bool
str_skip(struct str *s, struct str what)
{
	if (s->s_len < what.s_len ||
	    memcmp(s->s_ptr, what.s_ptr, what.s_len) != 0)
		return false;
	str_advance(s, what.s_len);
	return true;
}

/*
 * Removes the next member, which may be empty, from a list (RFC 9110, 5.6.1), and stores it.
 * Returns false if the list has no more members.
 */
static inline bool
str_member(struct str *list, struct str *member)
{
	const char *comma;

	if (list->s_ptr == NULL)
		return false;
	*member = *list;
	comma = memchr(list->s_ptr, ',', list->s_len);
	if (comma == NULL) {
		list->s_ptr = NULL;
	} else {
		member->s_len = (size_t)(comma - list->s_ptr);
		list->s_ptr += member->s_len + 1;
		list->s_len -= member->s_len + 1;
	}
	*member = str_trim(*member);
	return true;
}

#endif
