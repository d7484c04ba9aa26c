/* target: parses the request target (RFC 9112, section 3.2).  Pure. */
#ifndef SERVER_HTTP_TARGET_H
#define SERVER_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

struct target {
	/*
	 * Decoded and normalised path in the caller's buffer.  Starts with '/' and ends with a NUL.
	 * Percent-encoding is decoded once, duplicate slashes are merged, and dot segments are
	 * removed.
	 */
	struct str tgt_path;
	struct str tgt_query; /* raw text after '?'; s_ptr is NULL if none */
	struct str tgt_host;  /* host of the absolute form, else absent */
	/*
	 * True if the target is in absolute form with the scheme https.  The caller must refuse
	 * such a target without TLS (RFC 9110, 7.4).
	 */
	bool tgt_https;
	bool tgt_asterisk; /* true for "*", which only OPTIONS may have */
	/*
	 * True if a segment starts with '.'.  A leading "/.well-known" does not count (RFC 8615).
	 */
	bool tgt_dotfile;
};

/*
 * Parses a target.  `buf` needs raw.s_len + 2 bytes.  The slices in the result point into `buf` and
 * `raw`.  Returns 0, 414 if `buf` is too small, or 400.  400 means a bad escape, %00, a fragment, a
 * path that leaves the root, a form that only CONNECT may have, a scheme other than http and https,
 * or a host that is not valid in Host.  The path of "*" is "/".  After an error tgt_path is absent,
 * but tgt_host is set if valid.  Escapes are decoded before dot segments are removed, so that
 * "%2e%2e" cannot leave the root.  A decoded "%2F" separates segments, as in nginx.
 */
int target_parse(struct str raw, char *buf, size_t size, struct target *);

/* Returns true if `names` contains the segment.  `names` ends with NULL, and may be NULL itself. */
bool target_dotname(char *const *names, const char *segment, size_t len);

/* Returns true if `names` contains each segment of the path that starts with a dot. */
bool target_dotnames(char *const *names, const char *path);

/*
 * Percent-encodes a path for Location or href.  Leaves unreserved characters, '/', '@' and most
 * sub-delims of RFC 3986 as they are.  Encodes '&' and '\'', which HTML or a header could misread.
 * Encodes ':', so that a relative href to a file named "javascript:x" does not start with a scheme.
 * Writes at most `size` bytes including the NUL, and never a part of an escape.  Returns the full
 * length without the NUL, as snprintf does.
 */
size_t target_encode(struct str path, char *buf, size_t size);

#endif
