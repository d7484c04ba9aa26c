/*
 * mime: file name extension to media type, from a table file in the format of
 * Apache's mime.types: "type ext ext ...", '#' comments.  A type may have parameters,
 * "text/plain; charset=utf-8 txt".
 */
#ifndef SERVER_HTTP_MIME_H
#define SERVER_HTTP_MIME_H

#include <stdbool.h>
#include <stddef.h>

struct mime;

/*
 * text is the whole table; name is for messages.  An extension listed twice
 * keeps its first type.  Returns NULL and a message "name:line: what" in err.
 * Extensions compare without regard to case.  Immutable afterwards, so any
 * thread may look up.
 */
struct mime *mime_parse(
    const char *text, const char *name, char *err, size_t errsize);

/* Reads a file; NULL and a message that names it in err. */
struct mime *mime_load(const char *path, char *err, size_t errsize);

/* The table that was compiled in, from conf/mime.types.  NULL: no memory. */
struct mime *mime_builtin(void);

/* "type/subtype", with parameters or without; what a field may have as its value. */
bool mime_type_valid(const char *);

/*
 * The type for a path, by the extension of its last segment; the result lives
 * as long as the table, or is other: the table has none.  A name that begins with its only dot
 * (".gz") has no extension.
 */
const char *mime_type(const struct mime *, const char *path, const char *other);

void mime_destroy(struct mime **);

#endif
