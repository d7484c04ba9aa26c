/*
 * head_write: writes response heads and error pages.  To write a head, call head_write_begin,
 * append field lines with CRLF, then call head_write_end.  Pure.
 */
#ifndef SERVER_HTTP_HEAD_WRITE_H
#define SERVER_HTTP_HEAD_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/http/range.h"
#include "server/util/buf.h"

/*
 * Start of the head of a 200.  The date follows at the same offset in each head, so that the
 * response cache can replace it.
 */
#define HEAD_WRITE_OK	"HTTP/1.1 200 OK\r\nDate: "
#define HEAD_WRITE_DATE (sizeof(HEAD_WRITE_OK) - 1)

struct head_writer {
	struct buf *hw_buf;
	struct buf_list *hw_bufs;
};

/*
 * Returns true if the connection must close after this status, because the end of the request is
 * unknown or the client is not trusted.
 */
bool head_write_closes(int status);

/*
 * Writes the status line and the fields that every response has.  `date` has the format of date.h;
 * `server` is the whole line of the field Server, or empty.
 */
void head_write_begin(
    struct head_writer, int status, const char *date, struct str server);

/*
 * head_write_text and head_write_lines append text to the head: whole lines with their CRLF, or a
 * part of a line.
 */
void head_write_text(struct head_writer, const char *);
void head_write_lines(struct head_writer, struct str);

void head_write_length(struct head_writer, uint64_t bytes);

/* Writes Content-Range.  If the range is NULL, writes "*" instead (for a 416). */
void head_write_content_range(
    struct head_writer, const struct range *, off_t size);

/*
 * Ends the head.  Writes Connection: close if `close` is true.  Otherwise writes Connection:
 * keep-alive if `http10` is true, because HTTP/1.0 clients need this field.
 */
void head_write_end(struct head_writer, bool close, bool http10);

/*
 * Writes `type` (the Content-Type line with its CRLF), Content-Length, the end of the head and, if
 * `wanted` is true, the page.  Returns the number of bytes of the page that were written.
 */
size_t head_write_page(struct head_writer, struct str type, struct str page,
    bool close, bool http10, bool wanted);

/*
 * Writes the fields of an error response, the end of the head and, if `wanted` is true, the error
 * page.  Returns the number of bytes of the page that were written.
 */
size_t head_write_error(
    struct head_writer, int status, bool close, bool http10, bool wanted);

#endif
