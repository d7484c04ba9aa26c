/*
 * text_file: opens the files of a configuration.  Each server process reads these files when it
 * starts, also after SIGHUP, and must not wait for a writer.  So these files must be regular files.
 *
 * Skips a UTF-8 byte order mark at the start (EF BB BF).
 */
#ifndef SERVER_UTIL_TEXT_FILE_H
#define SERVER_UTIL_TEXT_FILE_H

#include <stdio.h>

/*
 * Opens a file for reading.  Returns NULL and sets errno on failure; ESPIPE means that the file is
 * not a regular one.
 */
FILE *text_file_open(const char *path);

/* Returns the reason for the errno value of text_file_open, for a message. */
const char *text_file_cause(int error);

#endif
