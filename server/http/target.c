/*
 * target: parses the request target.  Escapes, dot segments and double slashes may disguise a path;
 * all of them are resolved here, once, before the path is looked up.
 */
#include "server/http/target.h"

#include "server/http/chars.h"
#include "server/http/head.h"

/* Normalised path so far.  Its last segment starts at offset pth_segment. */
struct path {
	char *pth_buf;
	size_t pth_len;
	size_t pth_segment;
};

static int
target_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Reads one byte or percent-escape.  Returns the byte, or -1 for a bad escape or a NUL. */
static int
target_next_byte(struct str *s)
{
	int high, low, c = (unsigned char)*s->s_ptr;
	size_t n = 1;

	if (c == '%') {
		if (s->s_len < 3)
			return -1;
		high = target_hex_digit(s->s_ptr[1]);
		low = target_hex_digit(s->s_ptr[2]);
		if (high < 0 || low < 0)
			return -1;
		c = high << 4 | low;
		n = 3;
	}
	s->s_ptr += n;
	s->s_len -= n;
	return c == '\0' ? -1 : c;
}

/* Resolves the last segment if it is "." or "..".  Returns false if ".." would leave the root. */
static bool
target_end_segment(struct path *p)
{
	const char *segment = p->pth_buf + p->pth_segment;
	size_t n = p->pth_len - p->pth_segment;

	if (n == 1 && segment[0] == '.') {
		p->pth_len = p->pth_segment;
	} else if (n == 2 && segment[0] == '.' && segment[1] == '.') {
		if (p->pth_segment == 1)
			return false;
		p->pth_len = p->pth_segment - 1;
		while (p->pth_buf[p->pth_len - 1] != '/')
			p->pth_len--;
		p->pth_segment = p->pth_len;
	}
	return true;
}

/* Copies bytes up to the next escape or the end of the segment. */
static void
target_copy_plain(struct str *raw, struct path *p)
{
	size_t n = 0;

	while (n < raw->s_len && chars_is(raw->s_ptr[n], CHAR_SEGMENT))
		n++;
	memcpy(p->pth_buf + p->pth_len, raw->s_ptr, n);
	p->pth_len += n;
	raw->s_ptr += n;
	raw->s_len -= n;
}

static bool
target_normalise(struct str raw, char *buf, struct str *path)
{
	struct path p = {buf, 1, 1};

	buf[0] = '/';
	for (target_copy_plain(&raw, &p); raw.s_len > 0;
	     target_copy_plain(&raw, &p)) {
		int c = target_next_byte(&raw);

		if (c < 0)
			return false;
		if (c != '/') {
			buf[p.pth_len++] = (char)c;
			continue;
		}
		if (!target_end_segment(&p))
			return false;
		if (p.pth_len > p.pth_segment)
			buf[p.pth_len++] = '/';
		p.pth_segment = p.pth_len;
	}
	if (!target_end_segment(&p))
		return false;
	buf[p.pth_len] = '\0';
	*path = (struct str){buf, p.pth_len};
	return true;
}

/*
 * Returns the '/' before the next segment that starts with a dot, or NULL if there is none.  If
 * `first` is true, skips a leading "/.well-known".
 */
static const char *
target_next_dotfile(const char *path, bool first)
{
	static const char exempt[] = "/.well-known";
	size_t n = sizeof(exempt) - 1;

	if (first && strncmp(path, exempt, n) == 0 &&
	    (path[n] == '/' || path[n] == '\0'))
		path += n;
	return strstr(path, "/.");
}

bool
target_dotname(char *const *names, const char *segment, size_t len)
{
	for (; names != NULL && *names != NULL; names++)
		if (strncmp(*names, segment, len) == 0 && (*names)[len] == '\0')
			return true;
	return false;
}

bool
target_dotnames(char *const *names, const char *path)
{
	const char *p = target_next_dotfile(path, true);

	for (; p != NULL; p = target_next_dotfile(p + 1, false))
		if (!target_dotname(names, p + 1, strcspn(p + 1, "/")))
			return false;
	return true;
}

static bool
target_skip_prefix(struct str *s, struct str prefix)
{
	if (s->s_len < prefix.s_len ||
	    strncasecmp(s->s_ptr, prefix.s_ptr, prefix.s_len) != 0)
		return false;
	s->s_ptr += prefix.s_len;
	s->s_len -= prefix.s_len;
	return true;
}

/*
 * Removes "http://authority" or "https://authority" from a target in absolute form.  Returns false
 * if the scheme or the authority is invalid.
 */
static bool
target_take_origin(struct str *raw, struct target *tgt)
{
	struct str host;
	size_t n;

	tgt->tgt_https = target_skip_prefix(raw, STR("https://"));
	if (!tgt->tgt_https && !target_skip_prefix(raw, STR("http://")))
		return false;
	for (n = 0; n < raw->s_len; n++)
		if (raw->s_ptr[n] == '/' || raw->s_ptr[n] == '?')
			break;
	host = (struct str){raw->s_ptr, n};
	str_advance(raw, n);
	if (!head_host_valid(host))
		return false;
	tgt->tgt_host = host;
	return true;
}

int
target_parse(struct str raw, char *buf, size_t size, struct target *tgt)
{
	const char *mark;

	*tgt = (struct target){0};
	if (size < raw.s_len + 2)
		return 414;
	if (raw.s_len == 0 || memchr(raw.s_ptr, '#', raw.s_len) != NULL)
		return 400;
	if (str_eq(raw, STR("*"))) {
		tgt->tgt_asterisk = true;
		raw = STR("/");
	} else if (raw.s_ptr[0] != '/') {
		if (!target_take_origin(&raw, tgt))
			return 400;
	}

	mark = memchr(raw.s_ptr, '?', raw.s_len);
	if (mark != NULL) {
		size_t n = (size_t)(mark - raw.s_ptr);

		tgt->tgt_query = (struct str){mark + 1, raw.s_len - n - 1};
		raw.s_len = n;
	}
	if (!target_normalise(raw, buf, &tgt->tgt_path))
		return 400;
	tgt->tgt_dotfile = target_next_dotfile(buf, true) != NULL;
	return 0;
}

size_t
target_encode(struct str path, char *buf, size_t size)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t len = 0, end = 0;

	for (size_t i = 0; i < path.s_len; i++) {
		unsigned char c = (unsigned char)path.s_ptr[i];
		char code[3] = {'%', hex[c >> 4], hex[c & 15]};
		size_t n = chars_is(path.s_ptr[i], CHAR_LINK) ? 1 : 3;

		/* Omits an escape that does not fit, rather than a part of it. */
		if (len == end && len + n < size) {
			memcpy(buf + end, n == 1 ? &path.s_ptr[i] : code, n);
			end += n;
		}
		len += n;
	}
	if (size > 0)
		buf[end] = '\0';
	return len;
}
