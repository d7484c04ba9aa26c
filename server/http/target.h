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
	 * Decoded and normalised path in the caller's buffer.  It begins with '/' and ends with a
	 * NUL; percent-encoding is decoded once, duplicate slashes are merged, dot segments
	 * removed.
	 */
	struct str tgt_path;
	struct str tgt_query; /* raw text after '?'; s_ptr is NULL if none */
	struct str tgt_host;  /* host in absolute form, else absent */
	/*
	 * True if the target has absolute form with https.  The caller refuses such a target on a
	 * connection without TLS (RFC 9110, 7.4).
	 */
	bool tgt_https;
	bool tgt_asterisk; /* true for "*", which only OPTIONS may have */
	/* True if a segment begins with '.', except a leading "/.well-known" (RFC 8615). */
	bool tgt_dotfile;
};

/*
 * Parses a target.  `buf` needs raw.s_len + 2 bytes; the slices point into `buf` and `raw`.
 * Returns 0; 400 for a bad escape, %00, a fragment, a path that climbs above the root, a form that
 * only CONNECT may have, a scheme other than http and https, or a host that Host could not have; or
 * 414 if `buf` is too small.  "*" has path "/".  After an error tgt_path is absent, but tgt_host is
 * set if valid.  Decoding precedes the removal of dot segments, so that "%2e%2e" cannot climb; a
 * decoded "%2F" is a separator, as in nginx.
 */
int target_parse(struct str raw, char *buf, size_t size, struct target *);

/* Returns true if the segment is in `names`, a list that ends with NULL.  `names` may be NULL. */
bool target_dotname(char *const *names, const char *segment, size_t len);

/* Returns true if each segment of a path that begins with a dot is in `names`. */
bool target_dotnames(char *const *names, const char *path);

/*
 * Percent-encodes a path for use in Location or href: everything except unreserved characters, '/',
 * and the sub-delims and '@' that RFC 3986 allows in a path, minus those that HTML or a header
 * could misread ('&', '\'').  ':' is encoded, so that a relative href to a file named
 * "javascript:x" does not read as a scheme.  Writes at most `size` bytes including the NUL, never
 * part of an escape; returns the full length without the NUL, as snprintf does.
 */
size_t target_encode(struct str path, char *buf, size_t size);

#endif
