/*
 * secret_file: a small file with passwords or keys, read as a whole at the start, by the
 * user that starts the server.  Its text is wiped when it is no longer needed.
 */
#ifndef SERVER_UTIL_SECRET_FILE_H
#define SERVER_UTIL_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct secret_file {
	char *sf_text;
	size_t sf_len;
	char *sf_rest; /* the next line */
};

/*
 * closed: nobody but its owner and group may be able to read it, and nobody but its owner to
 * write it; else all may read it, and its owner and group write it.  False: why, with the path.
 */
bool secret_file_read(struct secret_file *, const char *path, bool closed,
    char *why, size_t size);

/* The same of a file that need not be text; a NUL is behind it. */
bool secret_file_read_bytes(struct secret_file *, const char *path, bool closed,
    char *why, size_t size);

/* The next line, without its end; NULL: there is none. */
char *secret_file_line(struct secret_file *);

/* Wipes it; also one that was not read. */
void secret_file_forget(struct secret_file *);

#endif
