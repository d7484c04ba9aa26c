/*
 * head_write: the head of an answer, and the page of an error.  Every head of every answer
 * is written here.  Pure.
 *
 *	head_write_begin, lines of fields each with its CRLF, head_write_end
 */
#ifndef SERVER_HTTP_HEAD_WRITE_H
#define SERVER_HTTP_HEAD_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/http/range.h"
#include "server/util/buf.h"

/*
 * What the head of a 200 begins with; the date follows, at this place in each head: the cache of
 * answers puts a new one there.
 */
#define HEAD_WRITE_OK	"HTTP/1.1 200 OK\r\nDate: "
#define HEAD_WRITE_DATE (sizeof(HEAD_WRITE_OK) - 1)

struct head_writer {
	struct buf *hw_buf;
	struct buf_list *hw_bufs;
};

/* After this status framing is lost, or the client is not to be trusted. */
bool head_write_closes(int status);

/* The status line and what each answer has; date: see date.h; server: its line, or empty. */
void head_write_begin(
    struct head_writer, int status, const char *date, struct str server);

/* One line or more, each with its CRLF; or a part of one. */
void head_write_text(struct head_writer, const char *);
void head_write_lines(struct head_writer, struct str);

void head_write_length(struct head_writer, uint64_t bytes);

/* NULL: of none of the file's bytes. */
void head_write_content_range(
    struct head_writer, const struct range *, off_t size);

/* close: the connection ends after it; http10: to go on has to be said. */
void head_write_end(struct head_writer, bool close, bool http10);

/*
 * The field Content-Type, with its CRLF, the length of a page, the end of the head, and, if it is
 * wanted, the page.  Returns the bytes of the page that were written.
 */
size_t head_write_page(struct head_writer, struct str type, struct str page,
    bool close, bool http10, bool wanted);

/*
 * The fields of an error's page, the end of the head, and, if it is wanted, the page.
 * Returns the bytes of the page that were written.
 */
size_t head_write_error(
    struct head_writer, int status, bool close, bool http10, bool wanted);

#endif
