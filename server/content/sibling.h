/*
 * sibling: decides whether a compressed sibling that was found beside its original may be sent, and
 * whether a request for a range names the sibling.
 */
#ifndef SERVER_CONTENT_SIBLING_H
#define SERVER_CONTENT_SIBLING_H

#include <stdbool.h>

struct exchange;
struct pw_file;

/*
 * Returns true if the sibling is a regular file and not older than the original, which may be
 * absent.  Compares whole seconds, because compressors and archives store times in seconds.
 * `error` is the result of the open; `file` is NULL if the open failed.  Counts an existing sibling
 * that may not be sent, and logs it at most once a minute.
 */
bool sibling_is_usable(
    struct exchange *, int error, const struct pw_file *file);

/*
 * Returns true for a GET with Range if there is an original and the client accepts it.  The
 * response is then a part of the original, unless the request names a sibling.  Most programs that
 * send Accept-Encoding by default cannot decode a part of a compressed file.
 */
bool sibling_is_optional(const struct exchange *);

/*
 * Returns true if sibling_is_optional is true and the request has neither If-Range nor If-Match, so
 * that no sibling need be looked up.
 */
bool sibling_is_unwanted(const struct exchange *);

/*
 * Returns true if a usable sibling must be sent.  An optional sibling is sent only if If-Range or
 * If-Match names it.  If the field is a date that the original has as well, the sibling is sent
 * whole, and ex_request loses its Range.
 */
bool sibling_is_chosen(struct exchange *, struct pw_file *file);

#endif
