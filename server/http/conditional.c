/*
 * conditional: evaluates conditional requests.  A malformed list of entity tags matches nothing.
 * Both results are safe: a malformed If-Match gets a 412, and a malformed If-None-Match the whole
 * representation.
 */
#include "server/http/conditional.h"

#include "server/http/date.h"

enum comparison { COMPARE_STRONG, COMPARE_WEAK };

/*
 * Returns true for a byte that an opaque tag may contain: no control character, space or quote.  A
 * backslash has no special meaning.
 */
static bool
conditional_is_etagc(unsigned char c)
{
	return c > ' ' && c != '"' && c != 0x7f;
}

/*
 * Removes the first tag from the list.  Sets *opaque to the tag with its quotes and without "W/".
 * Returns false if the tag is malformed.
 */
static bool
conditional_next_tag(struct str *list, struct str *opaque, bool *weak)
{
	size_t i = 1;

	*weak = list->s_len >= 2 && memcmp(list->s_ptr, "W/", 2) == 0;
	if (*weak)
		str_advance(list, 2);
	if (list->s_len == 0 || *list->s_ptr != '"')
		return false;
	while (i < list->s_len &&
	       conditional_is_etagc((unsigned char)list->s_ptr[i]))
		i++;
	if (i == list->s_len || list->s_ptr[i] != '"')
		return false;
	*opaque = (struct str){list->s_ptr, i + 1};
	str_advance(list, i + 1);
	str_skip_ows(list);
	return list->s_len == 0 || *list->s_ptr == ',';
}

/*
 * Returns true if the list matches `etag`.  `etag` may be weak or empty; an empty `etag` matches
 * only "*".
 */
static bool
conditional_matches(struct str list, struct str etag, enum comparison how)
{
	bool weak, found = false, own_weak = str_skip(&etag, STR("W/"));
	struct str opaque;

	list = str_trim(list);
	if (str_eq(list, STR("*")))
		return true;
	while (list.s_len > 0) {
		if (*list.s_ptr == ',' || str_is_ows(*list.s_ptr)) {
			str_advance(&list, 1);
			continue;
		}
		if (!conditional_next_tag(&list, &opaque, &weak))
			return false;
		if (str_eq(opaque, etag) &&
		    (how == COMPARE_WEAK || (!weak && !own_weak)))
			found = true;
	}
	return found;
}

bool
conditional_is_etag(struct str text)
{
	const char *last = text.s_ptr + text.s_len - 1;
	struct str opaque;
	bool weak;

	return conditional_next_tag(&text, &opaque, &weak) && text.s_len == 0 &&
	       opaque.s_ptr + opaque.s_len - 1 == last;
}

/* Parses the date in a field.  Returns false if the field or the representation has no date. */
static bool
conditional_get_date(
    struct str value, const struct validators *va, time_t now, time_t *t)
{
	return va->va_dated && value.s_ptr != NULL &&
	       date_parse(str_trim(value), now, t);
}

/*
 * Returns true if no further change can get the time `t`.  RFC 9110, 8.8.2.2, requires one second; the other
 * allows for the clock of file times, which is up to a tick late.
 */
static bool
conditional_is_strong_date(time_t t, time_t now)
{
	return t <= now - 2;
}

time_t
conditional_date_sent(time_t modified, time_t now)
{
	if (conditional_is_strong_date(modified, now))
		return modified;
	return (modified < now ? modified : now) - 1;
}

/* Returns true if `t`, a date of a client, is that of the representation, and strong. */
static bool
conditional_same_date(time_t t, const struct validators *va, time_t now)
{
	return t == va->va_modified && conditional_is_strong_date(t, now);
}

int
conditional_eval(
    const struct conditional *pre, const struct validators *va, time_t now)
{
	struct str etag = va->va_etag;
	time_t t;

	if (pre->pre_if_match.s_ptr != NULL) {
		if (!conditional_matches(
			pre->pre_if_match, etag, COMPARE_STRONG))
			return 412;
	} else if (conditional_get_date(
		       pre->pre_if_unmodified_since, va, now, &t)) {
		if (va->va_modified >= t && !conditional_same_date(t, va, now))
			return 412;
	}

	if (pre->pre_if_none_match.s_ptr != NULL) {
		if (conditional_matches(
			pre->pre_if_none_match, etag, COMPARE_WEAK))
			return 304;
	} else if (conditional_get_date(
		       pre->pre_if_modified_since, va, now, &t)) {
		if (conditional_same_date(t, va, now))
			return 304;
	}
	return 0;
}

bool
conditional_if_range(
    const struct conditional *pre, const struct validators *va, time_t now)
{
	struct str value = pre->pre_if_range;
	time_t t;

	if (value.s_ptr == NULL)
		return true;
	value = str_trim(value);
	if (value.s_len > 0 && *value.s_ptr == '"')
		return str_eq(value, va->va_etag);
	return conditional_get_date(value, va, now, &t) &&
	       conditional_same_date(t, va, now);
}

bool
conditional_names(
    const struct conditional *pre, const struct validators *va, time_t now)
{
	struct str match = pre->pre_if_match;

	if (pre->pre_if_range.s_ptr != NULL)
		return conditional_if_range(pre, va, now);
	return match.s_ptr != NULL && !str_eq(str_trim(match), STR("*")) &&
	       conditional_matches(match, va->va_etag, COMPARE_STRONG);
}
