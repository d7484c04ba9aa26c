/*
 * sibling: decides whether the compressed sibling of a file may be sent, and whether a request for
 * a range refers to the sibling.
 */
#ifndef SERVER_CONTENT_SIBLING_H
#define SERVER_CONTENT_SIBLING_H

#include <stdbool.h>

struct exchange;
struct pw_file;

/*
 * Returns true if the sibling is a regular file and not older than the original.  The original may
 * be missing.  Compares whole seconds, because compressors and archives store times in seconds.
 * `error` is the result of opening the sibling; `file` is NULL if the open failed.  Counts an
 * unusable sibling, and logs it at most once a minute.
 */
bool sibling_is_usable(
    struct exchange *, int error, const struct pw_file *file);

/*
 * Returns true for a GET with Range if the original exists and the client accepts a response
 * without a coding.  The response is then a part of the original, unless the request names a
 * sibling: most programs that send Accept-Encoding by default cannot decode a part of a compressed
 * file.
 */
bool sibling_is_optional(const struct exchange *);

/*
 * Returns true if no sibling need be looked up: sibling_is_optional is true, and the request has
 * neither If-Range nor If-Match.
 */
bool sibling_is_unwanted(const struct exchange *);

/*
 * Returns true if a usable sibling must be sent.  An optional sibling is sent only if If-Range or
 * If-Match names it.  If the field has a date, and the original has the same date, removes Range
 * from ex_request, so that the whole sibling is sent.
 */
bool sibling_is_chosen(struct exchange *, struct pw_file *file);

#endif
