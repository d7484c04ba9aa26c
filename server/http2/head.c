/*
 * head: see head.h.
 */
#include <string.h>

#include "server/http/head.h"
#include "server/http2/head.h"

/* ---------------------------------------------------------------- requests */

/* The three in their order, so that each ends where the next one begins. */
static struct str
part(const struct h2_head *hh, size_t at, size_t len)
{
	return len > 0 ? (struct str){hh->hh_raw.b_data + at, len} : STR("");
}

static struct str
method(const struct h2_head *hh)
{
	return part(hh, 0, hh->hh_method);
}

static struct str
path(const struct h2_head *hh)
{
	return part(hh, hh->hh_method, hh->hh_path);
}

static struct str
authority(const struct h2_head *hh)
{
	return part(hh, hh->hh_method + hh->hh_path, hh->hh_authority);
}

/* Puts it there, before what is already behind. */
static void
insert(struct buf *b, struct buf_list *bufs, size_t at, struct str value)
{
	size_t behind = b->b_len - at;

	if (!buf_reserve(b, bufs, b->b_len + value.s_len)) {
		b->b_failed = true;
		return;
	}
	memmove(b->b_data + at + value.s_len, b->b_data + at, behind);
	memcpy(b->b_data + at, value.s_ptr, value.s_len);
	b->b_len += value.s_len;
}

static void
add_pseudo(struct h2_head *hh, struct buf_list *bufs, struct str name,
    struct str value)
{
	if (value.s_len == 0)
		return;
	if (str_eq(name, STR(":method"))) {
		insert(&hh->hh_raw, bufs, 0, value);
		hh->hh_method = value.s_len;
	} else if (str_eq(name, STR(":path"))) {
		insert(&hh->hh_raw, bufs, hh->hh_method, value);
		hh->hh_path = value.s_len;
	} else if (str_eq(name, STR(":authority"))) {
		insert(&hh->hh_raw, bufs, hh->hh_method + hh->hh_path, value);
		hh->hh_authority = value.s_len;
	} else if (str_eq(name, STR(":scheme")))
		hh->hh_https = str_caseeq(value, STR("https"));
}

static void
add(struct h2_head *hh, struct buf_list *bufs, struct str s)
{
	if (s.s_len > 0)
		buf_add(&hh->hh_text, bufs, s.s_ptr, s.s_len);
}

/* CONNECT has no path: the authority is its target (RFC 9113, 8.5). */
static void
begin(struct h2_head *hh, struct buf_list *bufs)
{
	if (hh->hh_begun)
		return;
	hh->hh_begun = true;
	if (hh->hh_raw.b_failed) {
		hh->hh_text.b_failed = true;
		return;
	}
	add(hh, bufs, method(hh));
	add(hh, bufs, STR(" "));
	add(hh, bufs, hh->hh_path > 0 ? path(hh) : authority(hh));
	add(hh, bufs, STR(" HTTP/1.1\r\n"));
	if (hh->hh_authority == 0)
		return;
	add(hh, bufs, STR("host: "));
	add(hh, bufs, authority(hh));
	add(hh, bufs, STR("\r\n"));
}

/* A second Host that says the same is left out (RFC 9113, 8.3.1). */
static bool
is_said_already(struct h2_head *hh, struct str name, struct str value)
{
	if (hh->hh_authority == 0 || !str_eq(name, STR("host")))
		return false;
	if (!head_hosts_equal(value, authority(hh), hh->hh_https))
		hh->hh_two_hosts = true;
	return true;
}

void
h2_head_add(struct h2_head *hh, struct buf_list *bufs, struct str name,
    struct str value, size_t most)
{
	/* It is refused then: of what is kept until that is sent there is no more. */
	if (value.s_len > most)
		value.s_len = most + 1;
	if (hh->hh_over)
		return;
	if (name.s_len > 0 && name.s_ptr[0] == ':') {
		add_pseudo(hh, bufs, name, value);
		return;
	}
	begin(hh, bufs);
	if (str_eq(name, STR("priority")))
		hh->hh_priority = true;
	if (is_said_already(hh, name, value))
		return;
	/* head_check sees that it is too long. */
	if (hh->hh_text.b_len > most) {
		hh->hh_over = true;
		return;
	}
	add(hh, bufs, name);
	add(hh, bufs, STR(": "));
	add(hh, bufs, value);
	add(hh, bufs, STR("\r\n"));
}

bool
h2_head_end(struct h2_head *hh, struct buf_list *bufs)
{
	begin(hh, bufs);
	add(hh, bufs, STR("\r\n"));
	buf_release(&hh->hh_raw, bufs);
	buf_fit(&hh->hh_text, bufs);
	return !hh->hh_text.b_failed;
}

void
h2_head_mark(struct h2_head *hh, size_t line)
{
	size_t len = sizeof(H2_HEAD_VERSION) - 1;

	memcpy(hh->hh_text.b_data + line - len, H2_HEAD_VERSION, len);
}

void
h2_head_release(struct h2_head *hh, struct buf_list *bufs)
{
	buf_release(&hh->hh_text, bufs);
	buf_release(&hh->hh_raw, bufs);
}

/* ----------------------------------------------------------------- answers */

/* RFC 9113, 8.2.2. */
static bool
is_of_http1(struct str name)
{
	return str_eq(name, STR("connection")) ||
	       str_eq(name, STR("keep-alive")) ||
	       str_eq(name, STR("transfer-encoding"));
}

static void
lower(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] += 'a' - 'A';
}

static void
set(nghttp2_nv *nv, char *name, size_t name_len, char *value, size_t len)
{
	*nv = (nghttp2_nv){.name = (uint8_t *)name,
	    .namelen = name_len,
	    .value = (uint8_t *)value,
	    .valuelen = len};
}

/* False: it is left out. */
static bool
take_line(char *line, size_t len, nghttp2_nv *nv)
{
	char *colon = memchr(line, ':', len), *value, *end = line + len;

	if (colon == NULL)
		return false;
	lower(line, (size_t)(colon - line));
	if (is_of_http1((struct str){line, (size_t)(colon - line)}))
		return false;
	for (value = colon + 1; value < end && *value == ' '; value++)
		continue;
	set(nv, line, (size_t)(colon - line), value, (size_t)(end - value));
	return true;
}

size_t
h2_head_fields(char *text, size_t len, nghttp2_nv *nv, size_t max)
{
	static char name[] = ":status";
	char *end = text + len, *line = text, *cr;
	nghttp2_nv spare;
	size_t n = 1;

	set(nv, name, sizeof(name) - 1, text + sizeof("HTTP/1.1"), 3);
	while ((cr = memchr(line, '\r', (size_t)(end - line))) != NULL &&
	       cr > line) {
		if (line != text && take_line(line, (size_t)(cr - line),
					n < max ? &nv[n] : &spare))
			n++;
		line = cr + 2;
	}
	return n;
}
