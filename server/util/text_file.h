/*
 * text_file: files that a configuration is made of.  Each start of a server process reads
 * them again, also those by SIGHUP, and must not wait for a writer: so they are regular
 * files.
 *
 * A byte order mark of UTF-8 at the beginning (EF BB BF) is left out, as if it were not there.
 */
#ifndef SERVER_UTIL_TEXT_FILE_H
#define SERVER_UTIL_TEXT_FILE_H

#include <stdio.h>

/* For reading.  NULL: errno; ESPIPE: no regular file. */
FILE *text_file_open(const char *path);

/* The cause of an error, errno, for a message. */
const char *text_file_cause(int error);

#endif
