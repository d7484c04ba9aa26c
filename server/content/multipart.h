/*
 * multipart: writes the heads of the parts of a response with several ranges, and computes its
 * length (RFC 9110, 14.6).  Pure.
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
 * Writes the head of part `i`, counted from 0.  If `i` is the number of parts, writes the closing
 * delimiter.  Returns the number of bytes written.
 */
int multipart_head(
    const struct response *, size_t i, char text[MULTIPART_HEAD]);

uint64_t multipart_length(const struct response *);

#endif
