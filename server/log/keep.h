/*
 * keep: copies the texts that the access log needs out of a request head, so that the head can be
 * freed while the response is sent.  Pure.
 */
#ifndef SERVER_LOG_KEEP_H
#define SERVER_LOG_KEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "server/http/request.h"
#include "server/util/buf.h"

/* Returns the number of bytes that log_keep would copy without a limit. */
size_t log_keep_size(struct request_texts);

/*
 * Copies the texts into an empty buffer, and makes the slices point there.  Truncates each text as
 * the log does, and truncates later texts further so that all texts together have at most `most`
 * bytes.  A truncated request line still ends with the protocol.  Returns false and changes nothing
 * if memory is short.
 */
bool log_keep(struct request_texts *, size_t most, struct buf *);

#endif
