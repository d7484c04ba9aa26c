/*
 * lib/send/mp4_index.h against a second reading that keeps all boxes and adds with 128 bits.
 * Input: "SIZE\n", and the first bytes of a file of this size.
 */
#include "fuzz.h"
#include "lib/send/mp4_index.h"

#define MOST 17 /* boxes that are read, and one */

typedef __int128 wide;

struct naive {
	wide nv_at;
	wide nv_end; /* -1: it has none that may be */
	char nv_type[5];
};

static bool
read_header(void *arg, off_t at, unsigned char header[MP4_HEADER])
{
	const struct str *in = arg;

	CHECK(at >= 0 && (size_t)at + MP4_HEADER <= in->s_len);
	memcpy(header, in->s_ptr + at, MP4_HEADER);
	return true;
}

static wide
number(const char *p, size_t bytes)
{
	wide n = 0;

	for (size_t i = 0; i < bytes; i++)
		n = n * 256 + (unsigned char)p[i];
	return n;
}

/* All boxes whose headers are there. */
static size_t
boxes(struct str in, wide size, struct naive *list)
{
	struct naive *nv = list;
	wide at = 0, len, least;
	size_t n;

	for (n = 0; n < MOST && at >= 0 && at + MP4_HEADER <= (wide)in.s_len;
	     n++, nv++) {
		len = number(in.s_ptr + at, 4);
		least = len == 1 ? 16 : 8;
		if (len == 1)
			len = number(in.s_ptr + at + 8, 8);
		memcpy(nv->nv_type, in.s_ptr + at + 4, 4);
		nv->nv_type[4] = '\0';
		nv->nv_at = at;
		at = len < least || at + len >= size ? -1 : at + len;
		nv->nv_end = at;
	}
	return n;
}

static bool
is_one_of(const char *type, const char *types)
{
	return strlen(type) == 4 && strchr(type, ' ') == NULL &&
	       strstr(types, type) != NULL;
}

static wide
naive(struct str in, wide size)
{
	struct naive list[MOST];
	size_t i, n = boxes(in, size, list);

	if (n == MOST)
		n--;
	if (n == 0 ||
	    !is_one_of(list[0].nv_type, "ftyp mdat wide free skip pnot"))
		return -1;
	for (i = 0; i < n; i++) {
		if (is_one_of(list[i].nv_type, "moov moof") ||
		    list[i].nv_end < 0)
			return -1;
		if (strcmp(list[i].nv_type, "mdat") == 0 &&
		    list[i].nv_end + MP4_HEADER > (wide)in.s_len)
			return list[i].nv_end;
	}
	return -1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct str in = fuzz_input(data, length), line = fuzz_line(&in);
	int64_t size = fuzz_number(&line, 100000) & INT64_MAX;
	char *copy;
	off_t found;

	if (in.s_len > (uint64_t)size)
		in.s_len = (size_t)size;
	copy = fuzz_copy(in);
	in.s_ptr = copy;
	found = mp4_index_find(read_header, &in, (off_t)in.s_len, size);
	CHECK(found == naive(in, size));
	CHECK(found == -1 || (found > 0 && found < size));
	free(copy);
	return 0;
}
