/*
 * autoindex_json: see autoindex_json.h.
 */
#include <limits.h>
#include <stdio.h>

#include "server/content/autoindex_json.h"
#include "server/http/target.h"
#include "server/util/utf8.h"

static const char *const types[] = {
    [ROW_FILE] = "file",
    [ROW_DIRECTORY] = "directory",
    [ROW_OTHER] = "other",
};

static void
autoindex_json_add(struct buf *b, const char *text)
{
	struct buf_list none = {0};

	buf_str(b, &none, text);
}

/*
 * Appends a name as a JSON string.  Bytes that are not valid UTF-8 become U+FFFD, so only href has
 * the exact name.
 */
static void
autoindex_json_add_text(struct buf *b, const char *text)
{
	struct buf_list none = {0};
	size_t n, len = strlen(text);
	char code[8];
	uint32_t c;

	for (; len > 0; text += n, len -= n) {
		n = utf8_decode(text, len, &c);
		if (n == 0) {
			autoindex_json_add(b, "\\ufffd");
			n = 1;
		} else if (c < 0x20 || c == '"' || c == '\\') {
			snprintf(code, sizeof(code), "\\u%04x", (unsigned)c);
			autoindex_json_add(b, code);
		} else
			buf_add(b, &none, text, n);
	}
}

void
autoindex_json_row(struct buf *b, const struct row *row, bool first)
{
	char href[3 * NAME_MAX + 1], text[64];
	struct tm tm;

	target_encode((struct str){row->row_name, strlen(row->row_name)}, href,
	    sizeof(href));
	autoindex_json_add(b, first ? "{\"name\":\"" : ",\n{\"name\":\"");
	autoindex_json_add_text(b, row->row_name);
	autoindex_json_add(b, "\",\"href\":\"");
	autoindex_json_add(b, href);
	autoindex_json_add(b, row->row_type == ROW_DIRECTORY ? "/" : "");
	autoindex_json_add(b, "\",\"type\":\"");
	autoindex_json_add(b, types[row->row_type]);
	autoindex_json_add(b, "\"");
	if (row->row_known && row->row_type == ROW_FILE) {
		snprintf(text, sizeof(text), ",\"size\":%lld",
		    (long long)row->row_size);
		autoindex_json_add(b, text);
	}
	if (row->row_known && gmtime_r(&row->row_mtime, &tm) != NULL) {
		strftime(text, sizeof(text),
		    ",\"mtime\":\"%Y-%m-%dT%H:%M:%SZ\"", &tm);
		autoindex_json_add(b, text);
	}
	if (row->row_digest[0] != '\0') {
		autoindex_json_add(b, ",\"digest\":\"sha-256=:");
		autoindex_json_add(b, row->row_digest);
		autoindex_json_add(b, ":\"");
	}
	autoindex_json_add(b, "}");
}

void
autoindex_json_begin(struct buf *b)
{
	autoindex_json_add(b, "[");
}

void
autoindex_json_end(struct buf *b)
{
	autoindex_json_add(b, "]\n");
}
