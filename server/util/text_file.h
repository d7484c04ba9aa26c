/*
 * text_file: opens the files of a configuration.  Each start of a server process reads these files
 * again, also after SIGHUP, and must not wait for a writer, so they must be regular files.
 *
 * A UTF-8 byte order mark at the start (EF BB BF) is skipped.
 */
#ifndef SERVER_UTIL_TEXT_FILE_H
#define SERVER_UTIL_TEXT_FILE_H

#include <stdio.h>

/*
 * Opens a file for reading.  Returns NULL and sets errno on failure; ESPIPE means that the file is
 * not a regular one.
 */
FILE *text_file_open(const char *path);

/* Returns the text of an errno value, for a message. */
const char *text_file_cause(int error);

#endif
