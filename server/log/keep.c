/*
 * keep: see keep.h.
 */
#include <string.h>

#include "server/log/format.h"
#include "server/log/keep.h"

#define PROTOCOL ((size_t)9)	     /* bytes of a space and HTTP/1.1 */
#define LINE	 (FORMAT_FIELD + 64) /* maximum length of a kept request line */

static size_t
keep_len(struct str s)
{
	return s.s_len < FORMAT_FIELD ? s.s_len : FORMAT_FIELD;
}

/*
 * Returns the number of bytes to keep of a request line.  The log splits the line before it
 * truncates the parts.
 */
static size_t
keep_line_len(struct str line)
{
	return line.s_len < LINE ? line.s_len : LINE;
}

size_t
log_keep_size(struct request_texts texts)
{
	size_t size = keep_line_len(texts.qt_line);

	for (size_t i = 1; i < REQUEST_TEXTS; i++)
		size += keep_len(*request_text(&texts, i));
	return size;
}

static void
log_keep_text(struct buf *to, struct str *s, size_t len)
{
	char *at = to->b_data + to->b_len;
	size_t room = to->b_cap - to->b_len;

	if (s->s_ptr == NULL)
		return;
	if (len > room)
		len = room;
	memcpy(at, s->s_ptr, len);
	*s = (struct str){at, len};
	to->b_len += len;
}

static void
keep_line(struct buf *to, struct str *line)
{
	struct str whole = *line;

	log_keep_text(to, line, keep_line_len(whole));
	if (line->s_len < whole.s_len && line->s_len > PROTOCOL)
		memcpy(to->b_data + to->b_len - PROTOCOL,
		    whole.s_ptr + whole.s_len - PROTOCOL, PROTOCOL);
}

bool
log_keep(struct request_texts *texts, size_t most, struct buf *to)
{
	size_t size = log_keep_size(*texts);
	struct str *s;

	if (size > most)
		size = most;
	if (!buf_reserve_exact(to, size > 0 ? size : 1))
		return false;
	keep_line(to, &texts->qt_line);
	for (size_t i = 1; i < REQUEST_TEXTS; i++) {
		s = request_text(texts, i);
		log_keep_text(to, s, keep_len(*s));
	}
	return true;
}
