/*
 * file_error: log messages about files that could not be opened or sent.
 */
#ifndef SERVER_CONTENT_FILE_ERROR_H
#define SERVER_CONTENT_FILE_ERROR_H

#include <stdbool.h>

struct exchange;

/*
 * A message about the requested file.  A lack of memory or descriptors is logged once a
 * minute, then with the number of repeats.
 */
void file_error_tell(struct exchange *, int error);

/* Logs, once a minute, that a file changed while it was sent and the response is cut. */
void file_error_changed(struct exchange *);

/* For want of a descriptor? */
bool file_error_descriptor(int error);

#endif
