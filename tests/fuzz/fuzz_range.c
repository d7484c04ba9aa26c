/*
 * server/http/range.h against a naive reading with 128-bit numbers.
 * Input: "SIZE MAX\n" and the value.
 */
#include "fuzz.h"
#include "server/http/range.h"

#define MEMBERS_MAX 512 /* more than an input has bytes for */

typedef __int128 wide;

/* Bytes first to last; none: first is behind last. */
struct naive {
	wide nv_first[MEMBERS_MAX];
	wide nv_last[MEMBERS_MAX];
	size_t nv_count;
};

/* Digits only; -1: it is none.  Saturates far above everything. */
static wide
number(struct str s)
{
	wide n = 0;

	for (size_t i = 0; i < s.s_len; i++) {
		if (strchr("0123456789", s.s_ptr[i]) == NULL ||
		    s.s_ptr[i] == '\0')
			return -1;
		if (n < (wide)1 << 100)
			n = n * 10 + (s.s_ptr[i] - '0');
	}
	return s.s_len == 0 ? -1 : n;
}

/* RANGE_OK: it is one, satisfiable or not. */
static enum range_verdict
member(struct str spec, wide size, wide *first, wide *last)
{
	const char *dash = memchr(spec.s_ptr, '-', spec.s_len);
	struct str left, right;

	if (dash == NULL)
		return RANGE_IGNORE;
	left = (struct str){spec.s_ptr, (size_t)(dash - spec.s_ptr)};
	right = (struct str){dash + 1, spec.s_len - left.s_len - 1};
	*first = number(left);
	*last = number(right);
	if ((left.s_len > 0 && *first < 0) || (right.s_len > 0 && *last < 0) ||
	    (left.s_len == 0 && right.s_len == 0))
		return RANGE_IGNORE;
	if (left.s_len == 0) {
		*first = *last > size ? 0 : size - *last;
		*last = size - 1;
	} else if (right.s_len > 0 && *last < *first) {
		/* Past the largest off_t both may be the same to the code. */
		return *last >= INT64_MAX ? RANGE_OK : RANGE_IGNORE;
	} else if (right.s_len == 0 || *last >= size) {
		*last = size - 1;
	}
	return RANGE_OK;
}

static void
drop(struct naive *nv, size_t i)
{
	nv->nv_count--;
	for (; i < nv->nv_count; i++) {
		nv->nv_first[i] = nv->nv_first[i + 1];
		nv->nv_last[i] = nv->nv_last[i + 1];
	}
}

/* Unites a pair that touches; false: there is none. */
static bool
unite(struct naive *nv)
{
	size_t i, j;

	for (i = 0; i < nv->nv_count; i++)
		for (j = i + 1; j < nv->nv_count; j++) {
			if (nv->nv_first[i] > nv->nv_last[j] + 1 ||
			    nv->nv_first[j] > nv->nv_last[i] + 1)
				continue;
			if (nv->nv_first[j] < nv->nv_first[i])
				nv->nv_first[i] = nv->nv_first[j];
			if (nv->nv_last[j] > nv->nv_last[i])
				nv->nv_last[i] = nv->nv_last[j];
			drop(nv, j);
			return true;
		}
	return false;
}

/* True if a byte is in two of them, or all together are the representation. */
static bool
is_dear(const struct naive *nv, wide size)
{
	wide bytes = 0;
	size_t i, j;

	for (i = 0; i < nv->nv_count; i++) {
		bytes += nv->nv_last[i] - nv->nv_first[i] + 1;
		for (j = i + 1; j < nv->nv_count; j++)
			if (nv->nv_first[i] <= nv->nv_last[j] &&
			    nv->nv_first[j] <= nv->nv_last[i])
				return true;
	}
	return bytes >= size;
}

static enum range_verdict
naive(struct str value, wide size, size_t max, struct naive *nv)
{
	size_t members = 0, i;
	struct str part;

	nv->nv_count = 0;
	value = str_trim(value);
	if (size == 0 || value.s_len < 6 ||
	    strncasecmp(value.s_ptr, "bytes=", 6) != 0)
		return RANGE_IGNORE;
	value = (struct str){value.s_ptr + 6, value.s_len - 6};
	while (value.s_len > 0) {
		part = str_trim(fuzz_until(&value, ','));
		if (part.s_len == 0)
			continue;
		members++;
		if (member(part, size, &nv->nv_first[nv->nv_count],
			&nv->nv_last[nv->nv_count]) == RANGE_IGNORE)
			return RANGE_IGNORE;
		i = nv->nv_count;
		if (nv->nv_first[i] < size && nv->nv_first[i] <= nv->nv_last[i])
			nv->nv_count++;
	}
	if (members == 0 || (members > max && is_dear(nv, size)))
		return RANGE_IGNORE;
	while (unite(nv))
		continue;
	return nv->nv_count > 0 ? RANGE_OK : RANGE_UNSATISFIABLE;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct str in = fuzz_input(data, length), line = fuzz_line(&in);
	int64_t size = fuzz_number(&line, 100) & INT64_MAX;
	size_t i, n, max = fuzz_size(&line, 32, 1, MEMBERS_MAX - 1);
	struct range *out = calloc(RANGE_MOST, sizeof(*out));
	static struct naive nv;
	enum range_verdict verdict;

	CHECK(out != NULL);
	if (in.s_len > MEMBERS_MAX)
		in.s_len = MEMBERS_MAX;
	verdict = range_parse(in, size, out, max, &n);
	CHECK(verdict == naive(in, size, max, &nv));
	CHECK(n == (verdict == RANGE_OK ? nv.nv_count : 0));
	for (i = 0; i < n; i++) {
		CHECK(out[i].rng_off == nv.nv_first[i]);
		CHECK(
		    (wide)out[i].rng_off + out[i].rng_len - 1 == nv.nv_last[i]);
		CHECK(out[i].rng_off >= 0 && out[i].rng_len > 0);
		CHECK(out[i].rng_len <= size - out[i].rng_off);
	}
	free(out);
	return 0;
}
