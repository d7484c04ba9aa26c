/*
 * accept: see accept.h.
 */
#include "server/http/accept.h"

#include "server/http/chars.h"

/*
 * Returns the length of the quoted string at the front (RFC 9110, 5.6.4), or 0 if it is
 * unterminated.
 */
static size_t
accept_quoted(struct str s)
{
	size_t i;

	for (i = 1; i < s.s_len && s.s_ptr[i] != '"'; i++)
		if (s.s_ptr[i] == '\\')
			i++;
	return i < s.s_len ? i + 1 : 0;
}

static size_t
accept_token(struct str s)
{
	size_t n = 0;

	while (n < s.s_len && chars_is(s.s_ptr[n], CHAR_TOKEN))
		n++;
	return n;
}

/*
 * Moves the next member from the list to *member.  A comma inside quotes does not separate members.
 * Returns false at the end of the list, or if a quoted string is unterminated.
 */
static bool
accept_next_member(struct str *list, struct str *member)
{
	size_t n, i = 0;

	if (list->s_ptr == NULL || list->s_len == 0)
		return false;
	while (i < list->s_len && list->s_ptr[i] != ',') {
		n = 1;
		if (list->s_ptr[i] == '"')
			n = accept_quoted(
			    (struct str){list->s_ptr + i, list->s_len - i});
		if (n == 0)
			return false;
		i += n;
	}
	*member = str_trim((struct str){list->s_ptr, i});
	str_advance(list, i < list->s_len ? i + 1 : i);
	return true;
}

/* Returns the weight in a text such as "1", "0.5" or "1.000", or -1 if the text is malformed. */
static int
accept_weight_of(struct str text)
{
	static const int places[] = {1000, 0, 100, 10, 1};
	int weight = 0;
	size_t i;

	if (text.s_len == 0 || text.s_len > 5)
		return -1;
	for (i = 0; i < text.s_len; i++) {
		if (i == 1 ? text.s_ptr[i] != '.'
			   : !chars_is(text.s_ptr[i], CHAR_DIGIT))
			return -1;
		if (i != 1)
			weight += (text.s_ptr[i] - '0') * places[i];
	}
	return weight <= ACCEPT_MOST ? weight : -1;
}

/*
 * Skips NAME=VALUE at the front of *s.  If NAME is "q", sets *weight to VALUE.  Returns false on a
 * syntax error or a bad weight.
 */
static bool
accept_take_parameter(struct str *s, int *weight)
{
	struct str name = {s->s_ptr, accept_token(*s)}, value;

	str_advance(s, name.s_len);
	if (name.s_len == 0 || !str_skip(s, STR("=")) || s->s_len == 0)
		return false;
	value.s_ptr = s->s_ptr;
	value.s_len = *s->s_ptr == '"' ? accept_quoted(*s) : accept_token(*s);
	str_advance(s, value.s_len);
	if (value.s_len == 0)
		return false;
	if (!str_caseeq(name, STR("q")))
		return true;
	*weight = accept_weight_of(value);
	return *weight >= 0;
}

/* Reads the parameters of a member.  Returns its weight, or -1 on a syntax error. */
static int
accept_parameters(struct str s)
{
	int weight = ACCEPT_MOST;

	for (;;) {
		str_skip_ows(&s);
		if (s.s_len == 0)
			return weight;
		if (!str_skip(&s, STR(";")))
			return -1;
		str_skip_ows(&s);
		if (s.s_len > 0 && *s.s_ptr != ';' &&
		    !accept_take_parameter(&s, &weight))
			return -1;
	}
}

/*
 * Returns true if the member is "x-gzip" and the name is "gzip": the two are equivalent (RFC 9110,
 * 8.4.1.3).
 */
static bool
accept_is_alias(struct str range, struct str name)
{
	return str_caseeq(range, STR("x-gzip")) &&
	       str_caseeq(name, STR("gzip"));
}

/* Returns how closely a member matches the name: 3 for the name itself, 0 for no match. */
static int
accept_closeness(struct str range, struct str name)
{
	const char *slash = memchr(name.s_ptr, '/', name.s_len);
	size_t type = slash == NULL ? 0 : (size_t)(slash - name.s_ptr) + 1;

	if (str_caseeq(range, name) || accept_is_alias(range, name))
		return 3;
	if (slash == NULL)
		return str_eq(range, STR("*")) ? 1 : 0;
	if (str_eq(range, STR("*/*")))
		return 1;
	return range.s_len == type + 1 && range.s_ptr[type] == '*' &&
		       strncasecmp(range.s_ptr, name.s_ptr, type) == 0
		   ? 2
		   : 0;
}

int
accept_weight(struct str list, struct str name)
{
	int weight, close, closest = 1, found = ACCEPT_NOTHING;
	struct str member, range;
	const char *end;

	while (accept_next_member(&list, &member)) {
		range = member;
		end = memchr(range.s_ptr, ';', range.s_len);
		if (end != NULL)
			range.s_len = (size_t)(end - range.s_ptr);
		str_advance(&member, range.s_len);
		close = accept_closeness(str_trim(range), name);
		weight = close < closest ? -1 : accept_parameters(member);
		if (weight < 0 || (close == closest && weight < found))
			continue;
		closest = close;
		found = weight;
	}
	return found;
}
