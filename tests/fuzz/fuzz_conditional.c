/*
 * server/http/status.h and server/http/conditional.h against RFC 9110, 13.2.2 step by step.
 * Input: "MTIME NOW METHOD\n", then lines "Name: value" of Range and the five
 * conditional fields.
 */
#include "fuzz.h"
#include "server/http/date.h"
#include "server/http/status.h"

#define ETAG   "\"e-1\""
#define SIZE   1000
#define RANGES 4
#define LATEST 253402300799 /* time of a clock at the end of 9999 */

enum field { MATCH, NONE_MATCH, MODIFIED, UNMODIFIED, IF_RANGE, RANGE, FIELDS };

static const char *const names[FIELDS] = {"If-Match: ", "If-None-Match: ",
    "If-Modified-Since: ", "If-Unmodified-Since: ", "If-Range: ", "Range: "};

struct state {
	struct str st_values[FIELDS];
	time_t st_mtime;
	time_t st_now;
	bool st_dated; /* it has a modification date */
};

/* A list as its elements: 'T' a tag, ',' a comma, '?' anything else. */
struct elements {
	char el_kinds[512];
	struct str el_tags[512];
	size_t el_count;
};

static bool
is_tag_byte(char c)
{
	unsigned char u = (unsigned char)c;

	return u == 0x21 || (u >= 0x23 && u <= 0x7e) || u >= 0x80;
}

/* Bytes of the tag at the front, 0: it is none. */
static size_t
tag_length(struct str s)
{
	size_t i =
	    s.s_len > 1 && s.s_ptr[0] == 'W' && s.s_ptr[1] == '/' ? 2 : 0;

	if (i == s.s_len || s.s_ptr[i++] != '"')
		return 0;
	while (i < s.s_len && is_tag_byte(s.s_ptr[i]))
		i++;
	return i < s.s_len && s.s_ptr[i] == '"' ? i + 1 : 0;
}

static void
take_apart(struct str s, struct elements *el)
{
	size_t n;

	for (el->el_count = 0; s.s_len > 0 && el->el_count < 511;) {
		n = tag_length(s);
		if (n > 0) {
			el->el_tags[el->el_count] = (struct str){s.s_ptr, n};
			el->el_kinds[el->el_count++] = 'T';
		} else {
			n = 1;
			if (*s.s_ptr == ',')
				el->el_kinds[el->el_count++] = ',';
			else if (!str_is_ows(*s.s_ptr))
				el->el_kinds[el->el_count++] = '?';
		}
		s.s_ptr += n;
		s.s_len -= n;
	}
	el->el_kinds[el->el_count] = '\0';
}

static bool
matches(struct str list, bool weak)
{
	static struct elements el;
	bool found = false;

	if (str_eq(str_trim(list), STR("*")))
		return true;
	take_apart(list, &el);
	if (strchr(el.el_kinds, '?') != NULL ||
	    strstr(el.el_kinds, "TT") != NULL)
		return false;
	for (size_t i = 0; i < el.el_count; i++)
		if (el.el_kinds[i] == 'T')
			found |=
			    str_eq(el.el_tags[i], STR(ETAG)) ||
			    (weak && str_eq(el.el_tags[i], STR("W/" ETAG)));
	return found;
}

static bool
date_of(const struct state *st, enum field field, time_t *t)
{
	struct str value = st->st_values[field];

	return st->st_dated && value.s_ptr != NULL &&
	       date_parse(str_trim(value), st->st_now, t);
}

/*
 * A date of the client that stands for this version alone: the file's own, and too old for a second
 * version within it.
 */
static bool
is_own_date(const struct state *st, enum field field)
{
	time_t t;

	return date_of(st, field, &t) && t == st->st_mtime &&
	       st->st_now - st->st_mtime >= 2;
}

static bool
if_range(const struct state *st)
{
	struct str value = st->st_values[IF_RANGE];

	return value.s_ptr == NULL || str_eq(str_trim(value), STR(ETAG)) ||
	       is_own_date(st, IF_RANGE);
}

static int
range_status(const struct state *st)
{
	struct range ranges[RANGE_MOST];
	size_t n;

	switch (range_parse(st->st_values[RANGE], SIZE, ranges, RANGES, &n)) {
	case RANGE_OK:
		return 206;
	case RANGE_UNSATISFIABLE:
		return 416;
	default:
		return 200;
	}
}

/* The five steps of the section, in their order, for HEAD as for GET. */
static int
naive(const struct state *st)
{
	const struct str *values = st->st_values;
	time_t t;

	if (values[MATCH].s_ptr != NULL && !matches(values[MATCH], false))
		return 412;
	if (values[MATCH].s_ptr == NULL && date_of(st, UNMODIFIED, &t) &&
	    t <= st->st_mtime && !is_own_date(st, UNMODIFIED))
		return 412;
	if (values[NONE_MATCH].s_ptr != NULL &&
	    matches(values[NONE_MATCH], true))
		return 304;
	if (values[NONE_MATCH].s_ptr == NULL && is_own_date(st, MODIFIED))
		return 304;
	if (values[RANGE].s_ptr != NULL && if_range(st))
		return range_status(st);
	return 200;
}

static void
read_fields(struct str in, struct state *st)
{
	struct str line;
	size_t i, n;

	while (in.s_len > 0) {
		line = fuzz_line(&in);
		for (i = 0; i < FIELDS; i++) {
			n = strlen(names[i]);
			if (line.s_len >= n &&
			    memcmp(line.s_ptr, names[i], n) == 0)
				st->st_values[i] = (struct str){
				    line.s_ptr + n, line.s_len - n};
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	struct state st = {.st_mtime = fuzz_number(&line, 784111777)};
	struct range ranges[RANGE_MOST];
	struct plan pl = {.pl_ranges = ranges, .pl_max = RANGES};
	struct request rq = {0};

	if (size > 500)
		return 0;
	st.st_now = (time_t)fuzz_size(&line, 1000000000, 0, LATEST);
	st.st_dated = st.st_mtime > 1;
	rq.rq_method = METHOD_HEAD;
	if (str_eq(fuzz_until(&line, ' '), STR("GET")))
		rq.rq_method = METHOD_GET;
	read_fields(in, &st);
	rq.rq_range = st.st_values[RANGE];
	rq.rq_pre = (struct conditional){.pre_if_match = st.st_values[MATCH],
	    .pre_if_none_match = st.st_values[NONE_MATCH],
	    .pre_if_modified_since = st.st_values[MODIFIED],
	    .pre_if_unmodified_since = st.st_values[UNMODIFIED],
	    .pre_if_range = st.st_values[IF_RANGE]};
	status_decide(&pl, &rq, SIZE,
	    &(struct validators){STR(ETAG), st.st_mtime, st.st_dated},
	    st.st_now);
	CHECK(pl.pl_status == naive(&st));
	CHECK((pl.pl_status == 206) == (pl.pl_nranges > 0));
	return 0;
}
