/*
 * secret_file: a small file with passwords or keys, read as a whole at the start, by the
 * user that starts the server.  The caller wipes the text by secret_file_forget.
 */
#ifndef SERVER_UTIL_SECRET_FILE_H
#define SERVER_UTIL_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct secret_file {
	char *sf_text;
	size_t sf_len;
	char *sf_rest; /* start of the next line, or NULL if there is none */
};

/*
 * Reads a text file.  Refuses a file that users other than its owner and group can write.  If
 * `closed` is true, also refuses a file that the group can write, or that users other than its
 * owner and group can read.  On failure returns false, and writes the path and the reason to `why`.
 */
bool secret_file_read(struct secret_file *, const char *path, bool closed,
    char *why, size_t size);

/*
 * Does the work of secret_file_read for a file that need not be text.  Adds a NUL after the bytes.
 */
bool secret_file_read_bytes(struct secret_file *, const char *path, bool closed,
    char *why, size_t size);

/* Returns the next line without its newline, or NULL if there is none. */
char *secret_file_line(struct secret_file *);

/* Wipes and frees the text.  Does nothing for a file that was not read. */
void secret_file_forget(struct secret_file *);

#endif
