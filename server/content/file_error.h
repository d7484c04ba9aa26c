/*
 * file_error: log messages about files that could not be opened or sent.
 */
#ifndef SERVER_CONTENT_FILE_ERROR_H
#define SERVER_CONTENT_FILE_ERROR_H

#include <stdbool.h>

struct exchange;

/*
 * Logs why the requested file cannot be sent.  Logs a lack of memory or descriptors at most once a
 * minute, with the number of repeats.
 */
void file_error_tell(struct exchange *, int error);

/*
 * Logs at most once a minute that a file changed while it was sent.  `cut` is true if the response
 * was aborted, false if the client got 503 because nothing had been sent.
 */
void file_error_changed(struct exchange *, bool cut);

/* Returns true if the error is a lack of descriptors. */
bool file_error_descriptor(int error);

#endif
