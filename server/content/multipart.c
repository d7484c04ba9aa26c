/*
 * multipart: see multipart.h.
 */
#include <stdio.h>

#include "lib/pagewise.h"
#include "server/content/multipart.h"
#include "server/content/response.h"

int
multipart_head(const struct response *rs, size_t i, char text[MULTIPART_HEAD])
{
	const struct range *r = &rs->rs_ranges[i];

	if (i == rs->rs_nranges)
		return snprintf(text, MULTIPART_HEAD, "\r\n--%016llx--\r\n",
		    (unsigned long long)rs->rs_boundary);
	return snprintf(text, MULTIPART_HEAD,
	    "\r\n--%016llx\r\nContent-Type: %s\r\n"
	    "Content-Range: bytes %lld-%lld/%lld\r\n\r\n",
	    (unsigned long long)rs->rs_boundary, rs->rs_type,
	    (long long)r->rng_off, (long long)(r->rng_off + r->rng_len - 1),
	    (long long)rs->rs_file->fil_size);
}

static unsigned
multipart_digits(off_t number)
{
	unsigned n = 1;

	while (number >= 10) {
		number /= 10;
		n++;
	}
	return n;
}

/*
 * Returns the number of digits of the positions in a part's head.  The heads of a response differ
 * in length only by these digits.
 */
static unsigned
multipart_positions(const struct range *r)
{
	return multipart_digits(r->rng_off) +
	       multipart_digits(r->rng_off + r->rng_len - 1);
}

/* Writes only one head to compute the total length, because there may be thousands of parts. */
uint64_t
multipart_length(const struct response *rs)
{
	char text[MULTIPART_HEAD];
	size_t n = rs->rs_nranges, i;
	unsigned fixed = (unsigned)multipart_head(rs, 0, text) -
			 multipart_positions(rs->rs_ranges);
	uint64_t length = n * fixed + (uint64_t)multipart_head(rs, n, text);

	for (i = 0; i < n; i++)
		length += (uint64_t)rs->rs_ranges[i].rng_len +
			  multipart_positions(&rs->rs_ranges[i]);
	return length;
}
