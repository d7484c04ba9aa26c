/*
 * static_error: responses for files and directories that cannot be opened.
 */
#ifndef SERVER_CONTENT_STATIC_ERROR_H
#define SERVER_CONTENT_STATIC_ERROR_H

#include <stdbool.h>

struct exchange;

/* Returns the status for an -errno of a lookup. */
int static_error_status(int error);

/*
 * Prepares the error response for an -errno.  Logs the error if the status is 500 or 503, except
 * for -EAGAIN.  Always returns true.
 */
bool static_error_send(struct exchange *, int error);

#endif
