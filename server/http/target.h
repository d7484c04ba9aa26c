/*
 * target: the request target (RFC 9112, section 3.2) and the path in it.  Pure.
 */
#ifndef SERVER_HTTP_TARGET_H
#define SERVER_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

struct target {
	/*
	 * Decoded and normalised, always beginning with '/', NUL-terminated, in
	 * the caller's buffer: percent-encoding decoded once, duplicate slashes
	 * merged, dot segments removed.
	 */
	struct str tgt_path;
	struct str tgt_query; /* after '?', raw; s_ptr NULL if none */
	struct str tgt_host;  /* of an absolute-form target, else NULL */
	bool
	    tgt_https; /* of an absolute-form target: the caller refuses it on a
			   connection that is not secured (RFC 9110, 7.4) */
	bool tgt_asterisk; /* "*": only OPTIONS may have it */
	bool tgt_dotfile;  /* a segment begins with '.', except a leading
				 "/.well-known" (RFC 8615) */
};

/*
 * buf needs raw.s_len + 2 bytes; the slices point into buf and raw.
 * Returns 0, or 400: a bad escape, %00, a fragment, a path that climbs above
 * the root, a form that only CONNECT may have, a scheme other than http and
 * https, a host that Host could not have; or 414: buf is too small.  "*" has
 * path "/".  After an error tgt_path is absent; tgt_host is there if it is valid.
 * Decoding comes before dot segments are removed, so that "%2e%2e" climbs
 * nowhere; a decoded "%2F" is a separator, as in nginx.
 */
int target_parse(struct str raw, char *buf, size_t size, struct target *);

/* Is the segment one of the names?  NULL ends them; names may be NULL. */
bool target_dotname(char *const *names, const char *segment, size_t len);

/* Is each segment of a path that makes it a dotfile one of the names? */
bool target_dotnames(char *const *names, const char *path);

/*
 * Percent-encodes a path for use in Location or href: everything but
 * unreserved characters, '/', and the sub-delims and '@' that RFC 3986 allows
 * in a path, minus those that HTML or a header could misread ('&', '\'').  ':'
 * is encoded, so that a relative href to a file named "javascript:x" is no
 * scheme.  Writes at most size bytes including the NUL, never half an escape;
 * returns the length that the whole needs without it, as snprintf does.
 */
size_t target_encode(struct str path, char *buf, size_t size);

#endif
