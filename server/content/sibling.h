/*
 * sibling: whether a compressed sibling that was found beside its original may be sent, and whether
 * a request for a part names it.
 */
#ifndef SERVER_CONTENT_SIBLING_H
#define SERVER_CONTENT_SIBLING_H

#include <stdbool.h>

struct exchange;
struct pw_file;

/*
 * Returns true for a regular file that is not older than the original, which may be absent.
 * Compares whole seconds: compressors and archives keep no more of the original's time.  error is
 * that of the open; file is NULL then.  An existing sibling that may not be sent is counted, and
 * logged once a minute.
 */
bool sibling_is_usable(
    struct exchange *, int error, const struct pw_file *file);

/*
 * Returns true for a GET with Range if there is an original and the client accepts it: the client
 * gets a part of the original unless it names a sibling.  Most programs that send Accept-Encoding
 * by default cannot decode a part of a compressed file.
 */
bool sibling_is_optional(const struct exchange *);

/* Returns true if such a request names no representation, so that no sibling need be looked up. */
bool sibling_is_unwanted(const struct exchange *);

/*
 * Returns true if a usable sibling is to be sent.  An optional one must be named by If-Range or
 * If-Match.  A date that both representations have names neither: the sibling is sent whole, and
 * ex_request loses its Range.
 */
bool sibling_is_chosen(struct exchange *, struct pw_file *file);

#endif
