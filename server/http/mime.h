/*
 * mime: maps file name extensions to media types.  The table has the format of Apache's mime.types:
 * lines of "type ext ext ...", comments after '#'.  A type may have parameters: "text/plain;
 * charset=utf-8 txt".
 */
#ifndef SERVER_HTTP_MIME_H
#define SERVER_HTTP_MIME_H

#include <stdbool.h>
#include <stddef.h>

struct mime;

/*
 * Parses a whole table.  If the table lists an extension twice, the first type counts.  Case of
 * extensions does not matter.  On failure returns NULL and writes "NAME:LINE: CAUSE" to `err`, with
 * `name` as NAME.  The table is immutable afterwards, so all threads may use it.
 */
struct mime *mime_parse(
    const char *text, const char *name, char *err, size_t errsize);

/*
 * Reads a table from a file.  On failure returns NULL and writes a message with the path to `err`.
 */
struct mime *mime_load(const char *path, char *err, size_t errsize);

/* Returns the compiled-in table of conf/mime.types, or NULL if memory is short. */
struct mime *mime_builtin(void);

/* Returns true for "type/subtype", with or without parameters, that is valid as a field value. */
bool mime_type_valid(const char *);

/*
 * Returns the type for a path by the extension of its last segment, or `other` if the table has
 * none.  A type from the table lives as long as the table.  A name whose only dot is its first byte
 * (".gz") has no extension.
 */
const char *mime_type(const struct mime *, const char *path, const char *other);

void mime_destroy(struct mime **);

#endif
