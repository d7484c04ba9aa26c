/*
 * head_write: see head_write.h.
 */
#include <stdio.h>

#include "server/http/head_write.h"

#define PAGE 256 /* maximum bytes of an error page */

static const struct line {
	const char *text; /* status code and reason phrase */
	int number;
	bool close;
} lines[] = {
    {"200 OK", 200, false},
    {"204 No Content", 204, false},
    {"206 Partial Content", 206, false},
    {"301 Moved Permanently", 301, false},
    {"302 Found", 302, false},
    {"303 See Other", 303, false},
    {"304 Not Modified", 304, false},
    {"307 Temporary Redirect", 307, false},
    {"308 Permanent Redirect", 308, false},
    {"400 Bad Request", 400, true},
    {"401 Unauthorized", 401, false},
    {"403 Forbidden", 403, false},
    {"404 Not Found", 404, false},
    {"405 Method Not Allowed", 405, false},
    {"408 Request Timeout", 408, true},
    {"410 Gone", 410, false},
    {"412 Precondition Failed", 412, false},
    {"413 Content Too Large", 413, true},
    {"414 URI Too Long", 414, true},
    {"416 Range Not Satisfiable", 416, false},
    {"421 Misdirected Request", 421, false},
    {"429 Too Many Requests", 429, false},
    {"431 Request Header Fields Too Large", 431, true},
    {"451 Unavailable For Legal Reasons", 451, false},
    {"500 Internal Server Error", 500, false},
    {"501 Not Implemented", 501, true},
    {"503 Service Unavailable", 503, false},
    {"505 HTTP Version Not Supported", 505, true},
};

static const struct line *
head_write_find(int number)
{
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].number == number)
			return &lines[i];
	return head_write_find(500);
}

bool
head_write_closes(int status)
{
	return head_write_find(status)->close;
}

void
head_write_text(struct head_writer hw, const char *text)
{
	buf_str(hw.hw_buf, hw.hw_bufs, text);
}

void
head_write_lines(struct head_writer hw, struct str text)
{
	if (text.s_len > 0)
		buf_add(hw.hw_buf, hw.hw_bufs, text.s_ptr, text.s_len);
}

static void
head_write_number(struct head_writer hw, uint64_t value)
{
	buf_uint(hw.hw_buf, hw.hw_bufs, value);
}

void
head_write_begin(
    struct head_writer hw, int status, const char *date, struct str server)
{
	if (status == 200)
		head_write_text(hw, HEAD_WRITE_OK);
	else {
		head_write_text(hw, "HTTP/1.1 ");
		head_write_text(hw, head_write_find(status)->text);
		head_write_text(hw, "\r\nDate: ");
	}
	head_write_text(hw, date);
	head_write_text(hw, "\r\n");
	head_write_lines(hw, server);
}

void
head_write_length(struct head_writer hw, uint64_t bytes)
{
	head_write_text(hw, "Content-Length: ");
	head_write_number(hw, bytes);
	head_write_text(hw, "\r\n");
}

void
head_write_content_range(
    struct head_writer hw, const struct range *r, off_t size)
{
	head_write_text(hw, "Content-Range: bytes ");
	if (r == NULL)
		head_write_text(hw, "*");
	else {
		head_write_number(hw, (uint64_t)r->rng_off);
		head_write_text(hw, "-");
		head_write_number(hw, (uint64_t)(r->rng_off + r->rng_len - 1));
	}
	head_write_text(hw, "/");
	head_write_number(hw, (uint64_t)size);
	head_write_text(hw, "\r\n");
}

void
head_write_end(struct head_writer hw, bool close, bool http10)
{
	if (close)
		head_write_text(hw, "Connection: close\r\n");
	else if (http10)
		head_write_text(hw, "Connection: keep-alive\r\n");
	head_write_text(hw, "\r\n");
}

size_t
head_write_page(struct head_writer hw, struct str type, struct str page,
    bool close, bool http10, bool wanted)
{
	head_write_lines(hw, type);
	head_write_length(hw, page.s_len);
	head_write_end(hw, close, http10);
	if (!wanted)
		return 0;
	head_write_lines(hw, page);
	return page.s_len;
}

size_t
head_write_error(
    struct head_writer hw, int status, bool close, bool http10, bool wanted)
{
	const char *line = head_write_find(status)->text;
	char page[PAGE];
	size_t len = (size_t)snprintf(page, sizeof(page),
	    "<!DOCTYPE html>\n<html "
	    "lang=\"en\"><head><title>%s</title></head>\n"
	    "<body><h1>%s</h1></body></html>\n",
	    line, line);

	return head_write_page(hw,
	    STR("Content-Type: text/html; charset=utf-8\r\n"),
	    (struct str){page, len}, close, http10, wanted);
}
