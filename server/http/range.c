/*
 * range: parses the Range field.  Numbers that do not fit into an off_t become its maximum, which
 * lies behind the end of every file.
 */
#include "server/http/range.h"

#include <stdint.h>
#include <stdlib.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t), "files over 2 GiB");

static bool
range_skip_unit(struct str *value)
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

/* Reads the number at the front of *s.  Returns false if *s does not start with a digit. */
static bool
range_scan_number(struct str *s, int64_t *n)
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
range_resolve_suffix(int64_t len, off_t size, struct range *r)
{
	if (len == 0)
		return RANGE_UNSATISFIABLE;
	r->rng_len = len < size ? len : size;
	r->rng_off = size - r->rng_len;
	return RANGE_OK;
}

static enum range_verdict
range_resolve(struct str spec, off_t size, struct range *r)
{
	int64_t first, last = INT64_MAX;
	bool suffix = !range_scan_number(&spec, &first);

	if (spec.s_len == 0 || *spec.s_ptr != '-')
		return RANGE_IGNORE;
	spec.s_ptr++;
	spec.s_len--;
	if (!range_scan_number(&spec, &last)) {
		if (suffix)
			return RANGE_IGNORE;
		last = INT64_MAX;
	}
	if (spec.s_len > 0)
		return RANGE_IGNORE;
	if (suffix)
		return range_resolve_suffix(last, size, r);
	if (last < first)
		return RANGE_IGNORE;
	if (first >= size)
		return RANGE_UNSATISFIABLE;
	r->rng_off = first;
	r->rng_len = (last < size ? last + 1 : size) - first;
	return RANGE_OK;
}

/* Ranges read so far. */
struct set {
	struct range *set_ranges; /* caller's array */
	size_t set_n;
	size_t set_members;  /* members read, with the unsatisfiable ones */
	bool set_overlaps;   /* true if two members overlap */
	bool set_descending; /* true if a range starts before its predecessor */
};

/* Range of an unordered set, with its index in the client's order. */
struct placed {
	struct range pd_range;
	size_t pd_place;
};

static off_t
range_end_of(const struct range *r)
{
	return r->rng_off + r->rng_len;
}

/*
 * Merges `r` into `first`.  Requires that `first` does not start after `r`.  Returns false if there
 * is a gap between the two.
 */
static bool
range_absorb(struct set *set, struct range *first, const struct range *r)
{
	if (r->rng_off > range_end_of(first))
		return false;
	set->set_overlaps |= r->rng_off < range_end_of(first);
	if (range_end_of(r) > range_end_of(first))
		first->rng_len = range_end_of(r) - first->rng_off;
	return true;
}

static void
range_append(struct set *set, const struct range *r)
{
	struct range *end = &set->set_ranges[set->set_n];

	if (set->set_n > 0 && r->rng_off < end[-1].rng_off)
		set->set_descending = true;
	else if (set->set_n > 0 && range_absorb(set, &end[-1], r))
		return;
	*end = *r;
	set->set_n++;
}

static int
range_by_offset(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return (x->pd_range.rng_off > y->pd_range.rng_off) -
	       (x->pd_range.rng_off < y->pd_range.rng_off);
}

static int
range_by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return (x->pd_place > y->pd_place) - (x->pd_place < y->pd_place);
}

/*
 * Merges overlapping and adjacent ranges in a list sorted by offset.  Returns the number of ranges
 * left.
 */
static size_t
range_unite(struct set *set, struct placed *list)
{
	size_t i, kept = 0;

	for (i = 1; i < set->set_n; i++) {
		if (!range_absorb(set, &list[kept].pd_range, &list[i].pd_range))
			list[++kept] = list[i];
		else if (list[i].pd_place < list[kept].pd_place)
			list[kept].pd_place = list[i].pd_place;
	}
	return kept + 1;
}

/* Merges a set that is not sorted by offset.  Returns false if memory is short. */
static bool
range_merge(struct set *set)
{
	struct placed *list = calloc(set->set_n, sizeof(*list));
	size_t i;

	if (list == NULL)
		return false;
	for (i = 0; i < set->set_n; i++)
		list[i] = (struct placed){set->set_ranges[i], i};
	qsort(list, set->set_n, sizeof(*list), range_by_offset);
	set->set_n = range_unite(set, list);
	qsort(list, set->set_n, sizeof(*list), range_by_place);
	for (i = 0; i < set->set_n; i++)
		set->set_ranges[i] = list[i].pd_range;
	free(list);
	return true;
}

/* Returns true if the ranges do not overlap and together are smaller than the whole file. */
static bool
range_is_cheap(const struct set *set, off_t size)
{
	off_t bytes = 0;

	for (size_t i = 0; i < set->set_n; i++)
		bytes += set->set_ranges[i].rng_len;
	return !set->set_overlaps && bytes < size;
}

/* Reads the members of the set.  Returns false if Range must be ignored. */
static bool
range_read_set(struct set *set, struct str value, off_t size)
{
	struct str member;
	struct range r;

	while (str_member(&value, &member)) {
		/* Empty members must be skipped (RFC 9110, 5.6.1.2). */
		if (member.s_len == 0)
			continue;
		if (++set->set_members > RANGE_MOST)
			return false;
		switch (range_resolve(member, size, &r)) {
		case RANGE_IGNORE:
			return false;
		case RANGE_OK:
			range_append(set, &r);
			break;
		case RANGE_UNSATISFIABLE:
			break;
		}
	}
	return set->set_members > 0;
}

enum range_verdict
range_parse(struct str value, off_t size, struct range out[static RANGE_MOST],
    size_t max, size_t *n)
{
	struct set set = {.set_ranges = out};

	*n = 0;
	if (value.s_ptr == NULL || size == 0 || !range_skip_unit(&value) ||
	    !range_read_set(&set, value, size))
		return RANGE_IGNORE;
	if (set.set_descending && !range_merge(&set))
		return RANGE_IGNORE;
	if (set.set_members > max && !range_is_cheap(&set, size))
		return RANGE_IGNORE;
	*n = set.set_n;
	return set.set_n > 0 ? RANGE_OK : RANGE_UNSATISFIABLE;
}
