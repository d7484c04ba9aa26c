/*
 * representation: what all responses for a file share (the representation of RFC 9110): media type,
 * validators, ready header lines.  Made once for each struct pw_file and kept with it.
 */
#ifndef SERVER_CONTENT_REPRESENTATION_H
#define SERVER_CONTENT_REPRESENTATION_H

#include <time.h>

#include "lib/pagewise.h"

#include "server/conf/conf.h"
#include "server/content/response_cache.h"
#include "server/http/conditional.h"
#include "server/util/str.h"

#define REPRESENTATION_LINES 512 /* bytes of rp_lines */

struct representation {
	const struct settings *rp_set;	/* settings that it was made for */
	struct validators rp_announced; /* validators for conditions */
	time_t rp_made;
	size_t rp_len;
	enum coding rp_coding; /* coding of the file, not in its name */
	size_t rp_coded;       /* offset in rp_lines after Content-Type */
	size_t rp_digest;      /* offset after Content-Encoding */
	size_t rp_validators;  /* offset after Repr-Digest */
	bool
	    rp_young; /* the file's time is recent or in the future: made anew each time */
	struct response_cache_count rp_asked; /* recent requests for the file */
	struct response_cache_list rp_ready;
	char rp_type[CONF_MEDIA_TYPE];
	char rp_tag[80];
	char rp_lines[REPRESENTATION_LINES]; /* fields, ready to be sent */
};

/*
 * Returns the file's representation, made anew if need be, also for another location.  Returns NULL
 * if memory is short.  name determines the media type; a file that has a coding is a sibling of that
 * name.
 *
 * The entity tag is made of size and modification time in nanoseconds, so that two mirrors that
 * keep times agree on it; with etag = inode of the inode as well; with etag = digest of the
 * content's hash alone, if the file carries one (server/http/digest.h).  It is weak while the
 * modification is less than two seconds old, because a second one may still get the same time.
 * After that it is strong as long as a file is not rewritten in place with its size and its
 * modification time kept.
 *
 * Package managers and image builders set all modification times to 0 or 1 (the Nix store, OSTree).
 * Such a time identifies no version: there is no Last-Modified, and the entity tag also has the
 * inode and the time of its last change.
 *
 * A rule of the configuration may set either field (set_last_modified, set_entity_tag).
 * Last-Modified is never later than now (RFC 9110, 8.8.2.1); conditions are compared with the time
 * itself, so that a client that has an earlier version never gets 304.
 */
struct representation *representation_of(struct pw_file *, const struct conf *,
    const struct settings *, const char *name, enum coding, time_t now);

#endif
