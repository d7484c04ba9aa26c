/*
 * file_error: log messages about files that could not be opened or sent.
 */
#ifndef SERVER_CONTENT_FILE_ERROR_H
#define SERVER_CONTENT_FILE_ERROR_H

#include <stdbool.h>

struct exchange;

/*
 * A message about what was being looked for.  Want of memory or of descriptors is told
 * once a minute, and then how often it was.
 */
void file_error_tell(struct exchange *, int error);

/* For want of a descriptor? */
bool file_error_descriptor(int error);

#endif
