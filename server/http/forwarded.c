/*
 * forwarded: see forwarded.h.
 */
#include "server/http/forwarded.h"

#include <string.h>

#include "server/http/chars.h"

/*
 * Returns true if a backslash escapes the quote at s_ptr[i]; an escaped quote does not end the
 * string.
 */
static bool
forwarded_is_escaped(struct str s, size_t i)
{
	size_t n = 0;

	while (n < i && s.s_ptr[i - n - 1] == '\\')
		n++;
	return n % 2 == 1;
}

/* Returns the offset of the last member.  A comma inside quotes does not separate members. */
static size_t
forwarded_last_begin(struct str list, bool quotes)
{
	const char *comma;
	bool in = false;
	size_t i;

	if (!quotes) {
		comma = memrchr(list.s_ptr, ',', list.s_len);
		return comma == NULL ? 0 : (size_t)(comma - list.s_ptr) + 1;
	}

	for (i = list.s_len; i > 0; i--) {
		if (list.s_ptr[i - 1] == ',' && !in)
			break;
		if (list.s_ptr[i - 1] == '"' &&
		    !(in && forwarded_is_escaped(list, i - 1)))
			in = !in;
	}
	return i;
}

/* Moves the last member from the list to *member.  Returns false if no member is left. */
static bool
forwarded_take_last(struct str *list, bool quotes, struct str *member)
{
	size_t begin;

	if (list->s_ptr == NULL)
		return false;
	begin = forwarded_last_begin(*list, quotes);
	*member =
	    str_trim((struct str){list->s_ptr + begin, list->s_len - begin});
	if (begin == 0)
		list->s_ptr = NULL;
	else
		list->s_len = begin - 1;
	return true;
}

static struct str
forwarded_take_token(struct str *s)
{
	struct str token = {s->s_ptr, 0};

	while (token.s_len < s->s_len &&
	       chars_is(s->s_ptr[token.s_len], CHAR_TOKEN))
		token.s_len++;
	str_advance(s, token.s_len);
	return token;
}

/*
 * Reads the quoted string at the front of *s.  Sets *text to the raw text between the quotes.
 * Returns false if the closing quote is missing.
 */
static bool
forwarded_take_quoted(struct str *s, struct str *text)
{
	size_t i;

	for (i = 1; i < s->s_len && s->s_ptr[i] != '"'; i++)
		if (s->s_ptr[i] == '\\')
			i++;
	if (i >= s->s_len)
		return false;
	*text = (struct str){s->s_ptr + 1, i - 1};
	str_advance(s, i + 1);
	return true;
}

/* Reads NAME=VALUE at the front of *s.  Returns false on a syntax error. */
static bool
forwarded_take_pair(struct str *s, struct str *name, struct str *value)
{
	*name = forwarded_take_token(s);
	if (name->s_len == 0 || !str_skip(s, STR("=")))
		return false;
	if (s->s_len > 0 && *s->s_ptr == '"')
		return forwarded_take_quoted(s, value);
	*value = forwarded_take_token(s);
	return value->s_len > 0;
}

/*
 * Finds the value of "for" in a member of Forwarded.  Returns false if "for" is missing or
 * repeated, or on a syntax error.
 */
static bool
forwarded_find_for(struct str s, struct str *node)
{
	struct str name, value;
	bool found = false;

	for (;;) {
		if (s.s_len > 0 && *s.s_ptr != ';') {
			if (!forwarded_take_pair(&s, &name, &value))
				return false;
			if (str_caseeq(name, STR("for"))) {
				if (found)
					return false;
				found = true;
				*node = value;
			}
		}
		str_skip_ows(&s);
		if (s.s_len == 0)
			return found;
		if (!str_skip(&s, STR(";")))
			return false;
		str_skip_ows(&s);
	}
}

/* Returns true for ":80", for ":_secret" (RFC 7239, 6.2), and for an empty text. */
static bool
forwarded_is_port(struct str s)
{
	bool hidden;

	if (s.s_len == 0)
		return true;
	if (!str_skip(&s, STR(":")))
		return false;
	hidden = str_skip(&s, STR("_"));
	if (s.s_len == 0 || (!hidden && s.s_len > 5))
		return false;
	for (; s.s_len > 0; str_advance(&s, 1))
		if (!chars_is(*s.s_ptr, hidden ? CHAR_TOKEN : CHAR_DIGIT))
			return false;
	return true;
}

/* Parses an address and its port.  One colon precedes a port; several belong to an IPv6 address. */
static bool
forwarded_parse_node(struct str s, union sockaddr_any *client)
{
	const char *end;
	struct str addr = s;
	bool brackets = str_skip(&addr, STR("["));

	if (brackets) {
		end = memchr(addr.s_ptr, ']', addr.s_len);
		if (end == NULL)
			return false;
	} else {
		end = memchr(s.s_ptr, ':', s.s_len);
		if (end == NULL || memrchr(s.s_ptr, ':', s.s_len) != end)
			end = s.s_ptr + s.s_len;
	}
	addr.s_len = (size_t)(end - addr.s_ptr);
	str_advance(&s, (size_t)(end - s.s_ptr) + brackets);
	return forwarded_is_port(s) && sockaddr_parse(addr, client) &&
	       (!brackets || client->sa.sa_family == AF_INET6);
}

bool
forwarded_client(enum forwarded kind, struct str list,
    const struct cidr *trusted, size_t n, union sockaddr_any *client)
{
	bool rfc = kind == FORWARDED_RFC7239, found = false;
	union sockaddr_any addr;
	struct str member;

	while (forwarded_take_last(&list, rfc, &member)) {
		if (member.s_len == 0)
			continue;
		if ((rfc && !forwarded_find_for(member, &member)) ||
		    !forwarded_parse_node(member, &addr))
			break;
		*client = addr;
		found = true;
		if (!cidr_has_any(trusted, n, &addr.sa))
			break;
	}
	return found;
}
