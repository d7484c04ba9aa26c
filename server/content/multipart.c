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

uint64_t
multipart_length(const struct response *rs)
{
	char text[MULTIPART_HEAD];
	uint64_t length = 0;
	size_t i;

	for (i = 0; i < rs->rs_nranges; i++)
		length += (uint64_t)rs->rs_ranges[i].rng_len +
			  (uint64_t)multipart_head(rs, i, text);
	return length + (uint64_t)multipart_head(rs, i, text);
}
