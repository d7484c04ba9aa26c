/*
 * representation: data that all responses for a file share (the representation of RFC 9110): media
 * type, validators, complete header lines.  Made once for each struct pw_file and stored with it.
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
	const struct settings *rp_set;	/* settings of the location */
	struct validators rp_announced; /* validators for conditions */
	time_t rp_made;
	size_t rp_len;
	enum coding rp_coding; /* coding if it is a sibling, else CODING_NONE */
	size_t rp_coded;       /* offset in rp_lines after Content-Type */
	size_t rp_digest;      /* offset in rp_lines after Content-Encoding */
	size_t rp_validators;  /* offset in rp_lines after Repr-Digest */
	/*
	 * true if the file's time is less than 2 s ago or in the future; such a representation is
	 * used once
	 */
	bool rp_young;
	struct response_cache_count rp_asked; /* recent requests for the file */
	struct response_cache_list rp_ready;
	char rp_type[CONF_MEDIA_TYPE];
	char rp_tag[80];
	char rp_lines[REPRESENTATION_LINES]; /* fields, ready to be sent */
};

/*
 * Returns the file's representation.  Makes a new one if there is none, if it is young, or if it
 * was made for other settings or another coding.  Returns NULL if memory is short.  `name`
 * determines the media type; a file with a coding is a sibling of the file of that name.
 *
 * The entity tag contains the size and the modification time in nanoseconds, so that two mirrors
 * that preserve times send the same tag.  With etag = inode it also contains the inode.  With etag
 * = digest it contains only the content's hash, if the file carries one (server/http/digest.h).
 * The tag is weak while the modification is less than two seconds old, because another modification
 * may still get the same time.  Later it is strong, provided that no file is rewritten in place
 * with the same size and modification time.
 *
 * Package managers and image builders set all modification times to 0 or 1 (the Nix store, OSTree).
 * Such a time identifies no version, so the response has no Last-Modified, and the entity tag also
 * contains the inode and its ctime.
 *
 * A rule of the configuration may set ETag or Last-Modified (set_last_modified, set_entity_tag).
 * Last-Modified is never later than now (RFC 9110, 8.8.2.1); conditions are compared with the
 * file's own time, so that a client that has an earlier version never gets 304.
 */
struct representation *representation_of(struct pw_file *, const struct conf *,
    const struct settings *, const char *name, enum coding, time_t now);

#endif
