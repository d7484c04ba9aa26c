/* file_error: logs why files could not be opened or sent. */
#ifndef SERVER_CONTENT_FILE_ERROR_H
#define SERVER_CONTENT_FILE_ERROR_H

#include <stdbool.h>

struct exchange;

/*
 * Logs why the requested file cannot be sent.  Logs a shortage of memory or descriptors at most
 * once a minute, and counts the suppressed messages, whose number the worker logs later.
 */
void file_error_tell(struct exchange *, int error);

/*
 * Counts, and logs at most once a minute, that a file changed while it was being sent.  `cut` is true if the
 * response was aborted, and false if no byte was sent and the client got 503.
 */
void file_error_changed(struct exchange *, bool cut);

/* Returns true if the error is a shortage of descriptors. */
bool file_error_descriptor(int error);

#endif
