/*
 * keep: what a record of the access log needs of a request, copied out of its head, so that the
 * head can be freed while its client takes the answer.  Pure.
 */
#ifndef SERVER_LOG_KEEP_H
#define SERVER_LOG_KEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/buf.h"
#include "server/util/str.h"

/* Slices of a head; absent fields have no pointer. */
struct log_keep {
	struct str *lk_line;
	struct str *lk_host;
	struct str *lk_agent;
	struct str *lk_referer;
};

/* Returns how many bytes log_keep would copy if there were no limit. */
size_t log_keep_size(const struct log_keep *);

/*
 * Copies the texts into buf, which is empty, and makes the slices point there.  A text is cut as
 * the log cuts it, and the later ones so that all together have at most `most` bytes.  A request
 * line keeps its protocol at the end.  Returns false, with nothing changed, if memory is short.
 */
bool log_keep(const struct log_keep *, size_t most, struct buf *);

#endif
