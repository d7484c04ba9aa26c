/*
 * range: the Range field.  Numbers too big for an off_t saturate: such a first
 * position lies behind every file, such a last one at its end.
 */
#include "server/http/range.h"

#include <stdint.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t), "files over 2 GiB");

static bool
skip_unit(struct str *value)
{
	static const char unit[] = "bytes=";
	size_t n = sizeof(unit) - 1;

	*value = str_trim(*value);
	if (value->s_len < n || strncasecmp(value->s_ptr, unit, n) != 0)
		return false;
	value->s_ptr += n;
	value->s_len -= n;
	return true;
}

/* Takes the digits at the front; false if there are none. */
static bool
scan_number(struct str *s, int64_t *n)
{
	const char *start = s->s_ptr;

	*n = 0;
	while (s->s_len > 0 && *s->s_ptr >= '0' && *s->s_ptr <= '9') {
		int digit = *s->s_ptr - '0';

		if (*n > (INT64_MAX - digit) / 10)
			*n = INT64_MAX;
		else
			*n = *n * 10 + digit;
		s->s_ptr++;
		s->s_len--;
	}
	return s->s_ptr != start;
}

static enum range_verdict
resolve_suffix(int64_t len, off_t size, struct range *r)
{
	if (len == 0)
		return RANGE_UNSATISFIABLE;
	if (size == 0)
		return RANGE_IGNORE;
	r->rng_len = len < size ? len : size;
	r->rng_off = size - r->rng_len;
	return RANGE_OK;
}

static enum range_verdict
resolve(struct str spec, off_t size, struct range *r)
{
	int64_t first, last = INT64_MAX;
	bool suffix = !scan_number(&spec, &first);

	if (spec.s_len == 0 || *spec.s_ptr != '-')
		return RANGE_IGNORE;
	spec.s_ptr++;
	spec.s_len--;
	if (!scan_number(&spec, &last)) {
		if (suffix)
			return RANGE_IGNORE;
		last = INT64_MAX;
	}
	if (spec.s_len > 0)
		return RANGE_IGNORE;
	if (suffix)
		return resolve_suffix(last, size, r);
	if (last < first)
		return RANGE_IGNORE;
	if (first >= size)
		return RANGE_UNSATISFIABLE;
	r->rng_off = first;
	r->rng_len = (last < size ? last + 1 : size) - first;
	return RANGE_OK;
}

static bool
touches(const struct range *a, const struct range *b)
{
	return a->rng_off <= b->rng_off + b->rng_len &&
	       b->rng_off <= a->rng_off + a->rng_len;
}

static struct range
unite(const struct range *a, const struct range *b)
{
	off_t off = a->rng_off < b->rng_off ? a->rng_off : b->rng_off;
	off_t a_end = a->rng_off + a->rng_len;
	off_t b_end = b->rng_off + b->rng_len;

	return (struct range){off, (a_end > b_end ? a_end : b_end) - off};
}

/*
 * No two of the set touch each other, so whatever the new one absorbs can not
 * bring it into contact with a third: one pass is enough.
 */
static size_t
merge(struct range *set, size_t n, struct range r)
{
	size_t place = n, kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!touches(&set[i], &r)) {
			set[kept++] = set[i];
			continue;
		}
		r = unite(&set[i], &r);
		if (place == n)
			place = kept++;
	}
	set[place] = r;
	return place == n ? n + 1 : kept;
}

enum range_verdict
range_parse(
    struct str value, off_t size, struct range *out, size_t max, size_t *n)
{
	struct str member;
	struct range r;
	size_t members = 0, found = 0;

	*n = 0;
	if (value.s_ptr == NULL || !skip_unit(&value))
		return RANGE_IGNORE;
	while (str_member(&value, &member)) {
		/* Empty members are to be skipped (RFC 9110, 5.6.1.2). */
		if (member.s_len == 0)
			continue;
		if (++members > max)
			return RANGE_IGNORE;
		switch (resolve(member, size, &r)) {
		case RANGE_IGNORE:
			return RANGE_IGNORE;
		case RANGE_OK:
			found = merge(out, found, r);
			break;
		case RANGE_UNSATISFIABLE:
			break;
		}
	}
	if (members == 0)
		return RANGE_IGNORE;
	*n = found;
	return found > 0 ? RANGE_OK : RANGE_UNSATISFIABLE;
}
