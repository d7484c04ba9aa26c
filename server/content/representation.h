/*
 * representation: what is the same in every answer for a file (RFC 9110 calls it the
 * representation): media type, validators, ready header lines.  Made once for each
 * struct pw_file and kept with it.
 */
#ifndef SERVER_CONTENT_REPRESENTATION_H
#define SERVER_CONTENT_REPRESENTATION_H

#include <time.h>

#include "lib/pagewise.h"

#include "server/content/response_cache.h"
#include "server/util/str.h"

#define REPRESENTATION_LINES 512 /* bytes of rp_lines */

struct representation {
	struct str rp_etag; /* with its quotes; in rp_tag */
	const char *rp_type;
	size_t rp_len;
	size_t rp_validators; /* the lines behind Content-Type begin here */
	bool rp_future;	      /* modified later than now: not kept */
	struct response_cache_count rp_asked; /* requests for it */
	char rp_tag[80];
	char rp_lines
	    [REPRESENTATION_LINES]; /* Content-Type, Last-Modified, ... */
};

/*
 * The file's, made if need be; type must outlive the file.  NULL: no memory, or a
 * media type that does not fit.
 *
 * The entity tag is made of modification time in nanoseconds, size and inode: it
 * is strong as long as a file is not rewritten in place with its size and its
 * modification time kept.  Last-Modified is never later than now (RFC 9110,
 * 8.8.2.1).
 */
struct representation *representation_of(
    struct pw_file *, const char *type, time_t now);

#endif
