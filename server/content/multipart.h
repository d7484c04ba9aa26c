/*
 * multipart: heads of the parts, and length, of a response with several ranges (RFC 9110, 14.6).
 * Pure.
 */
#ifndef SERVER_CONTENT_MULTIPART_H
#define SERVER_CONTENT_MULTIPART_H

#include <stddef.h>
#include <stdint.h>

#include "server/content/representation.h"

struct response;

/* maximum bytes of a part's head */
#define MULTIPART_HEAD (REPRESENTATION_LINES + 256)

/*
 * Writes the head of part `i`, counted from 0, or the closing delimiter if `i` is the number of
 * parts.  Returns the length of what it wrote.
 */
int multipart_head(
    const struct response *, size_t i, char text[MULTIPART_HEAD]);

/* Returns the length of the whole body. */
uint64_t multipart_length(const struct response *);

#endif
