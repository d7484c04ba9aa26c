/*
 * representation: data that all responses for a file share: media type, validators and complete
 * header lines (the representation of RFC 9110).  fil_user of a struct pw_file owns the
 * representation that was made last for the file.
 */
#ifndef SERVER_CONTENT_REPRESENTATION_H
#define SERVER_CONTENT_REPRESENTATION_H

#include <time.h>

#include "lib/pagewise.h"

#include "server/conf/conf.h"
#include "server/content/response_cache.h"
#include "server/http/conditional.h"
#include "server/util/str.h"

#define REPRESENTATION_LINES 512 /* size of rp_lines, bytes */

struct representation {
	const struct settings *rp_set;	/* settings of the location */
	struct validators rp_announced; /* validators for conditions */
	time_t rp_made;
	size_t rp_len;
	enum coding rp_coding; /* coding of a sibling, or CODING_NONE */
	size_t rp_coded;       /* offset in rp_lines after Content-Type */
	size_t rp_digest;      /* offset in rp_lines after Content-Encoding */
	size_t rp_validators;  /* offset in rp_lines after Repr-Digest */
	/*
	 * true if the file's time is less than 2 s old or in the future; the representation is then
	 * used only once
	 */
	bool rp_young;
	struct response_cache_count rp_asked; /* recent requests for the file */
	struct response_cache_list rp_ready;
	char rp_type[CONF_MEDIA_TYPE];
	char rp_tag[80];
	char rp_lines[REPRESENTATION_LINES]; /* complete fields */
};

/*
 * Returns the representation of the file.  Makes a new representation if the file has none, if it
 * is young, or if it was made for other settings or another coding.  Returns NULL if memory is
 * short.  `name` determines the media type; for a sibling it is the name of the original.
 *
 * The entity tag contains the size and the modification time in nanoseconds, so that mirrors that
 * preserve times send the same tag.  With etag = inode, the tag also contains the inode.  With etag
 * = digest, the tag contains only the hash of the content, if a hash is stored with the file
 * (server/http/digest.h).  The tag is weak while the file was modified less than two seconds ago,
 * because another modification may get the same time.  Later the tag is strong.  This assumes that
 * no program rewrites a file in place and keeps its size and modification time.
 *
 * Package managers and image builders set all modification times to 0 or 1 (the Nix store, OSTree).
 * Such a time identifies no version, so the response has no Last-Modified, and the entity tag also
 * contains the inode and its ctime.
 *
 * A rule of the configuration may set ETag or Last-Modified (set_last_modified, set_entity_tag).
 * Last-Modified is conditional_date_sent, but conditions are compared with the date of the file or
 * rule, so that a client with an earlier version never gets 304.
 */
struct representation *representation_of(struct pw_file *, const struct conf *,
    const struct settings *, const char *name, enum coding, time_t now);

#endif
