/*
 * head: see head.h.
 */
#include <string.h>

#include "server/http/head.h"
#include "server/http2/head.h"

/* ---------------------------------------------------------------- requests */

/* The three in their order, so that each ends where the next one begins. */
static struct str
h2_head_part(const struct h2_head *hh, size_t at, size_t len)
{
	return len > 0 ? (struct str){hh->hh_raw.b_data + at, len} : STR("");
}

static struct str
h2_head_method(const struct h2_head *hh)
{
	return h2_head_part(hh, 0, hh->hh_method);
}

static struct str
h2_head_path(const struct h2_head *hh)
{
	return h2_head_part(hh, hh->hh_method, hh->hh_path);
}

static struct str
h2_head_authority(const struct h2_head *hh)
{
	return h2_head_part(hh, hh->hh_method + hh->hh_path, hh->hh_authority);
}

/* Puts it there, before what is already behind. */
static void
h2_head_insert(
    struct buf *b, struct buf_list *bufs, size_t at, struct str value)
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
h2_head_add_pseudo(struct h2_head *hh, struct buf_list *bufs, struct str name,
    struct str value)
{
	if (value.s_len == 0)
		return;
	if (str_eq(name, STR(":method"))) {
		h2_head_insert(&hh->hh_raw, bufs, 0, value);
		hh->hh_method = value.s_len;
	} else if (str_eq(name, STR(":path"))) {
		h2_head_insert(&hh->hh_raw, bufs, hh->hh_method, value);
		hh->hh_path = value.s_len;
	} else if (str_eq(name, STR(":authority"))) {
		h2_head_insert(
		    &hh->hh_raw, bufs, hh->hh_method + hh->hh_path, value);
		hh->hh_authority = value.s_len;
	} else if (str_eq(name, STR(":scheme")))
		hh->hh_https = str_caseeq(value, STR("https"));
}

static void
h2_head_append(struct h2_head *hh, struct buf_list *bufs, struct str s)
{
	if (s.s_len > 0)
		buf_add(&hh->hh_text, bufs, s.s_ptr, s.s_len);
}

/* CONNECT has no path: the authority is its target (RFC 9113, 8.5). */
static void
h2_head_begin(struct h2_head *hh, struct buf_list *bufs)
{
	if (hh->hh_begun)
		return;
	hh->hh_begun = true;
	if (hh->hh_raw.b_failed) {
		hh->hh_text.b_failed = true;
		return;
	}
	h2_head_append(hh, bufs, h2_head_method(hh));
	h2_head_append(hh, bufs, STR(" "));
	h2_head_append(hh, bufs,
	    hh->hh_path > 0 ? h2_head_path(hh) : h2_head_authority(hh));
	h2_head_append(hh, bufs, STR(" HTTP/1.1\r\n"));
	if (hh->hh_authority == 0)
		return;
	h2_head_append(hh, bufs, STR("host: "));
	h2_head_append(hh, bufs, h2_head_authority(hh));
	h2_head_append(hh, bufs, STR("\r\n"));
}

/* A second Host that says the same is left out (RFC 9113, 8.3.1). */
static bool
h2_head_is_repeated(struct h2_head *hh, struct str name, struct str value)
{
	if (hh->hh_authority == 0 || !str_eq(name, STR("host")))
		return false;
	if (!head_hosts_equal(value, h2_head_authority(hh), hh->hh_https))
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
		h2_head_add_pseudo(hh, bufs, name, value);
		return;
	}
	h2_head_begin(hh, bufs);
	if (str_eq(name, STR("priority")))
		hh->hh_priority = true;
	if (h2_head_is_repeated(hh, name, value))
		return;
	/* head_check sees that it is too long. */
	if (hh->hh_text.b_len > most) {
		hh->hh_over = true;
		return;
	}
	h2_head_append(hh, bufs, name);
	h2_head_append(hh, bufs, STR(": "));
	h2_head_append(hh, bufs, value);
	h2_head_append(hh, bufs, STR("\r\n"));
}

bool
h2_head_end(struct h2_head *hh, struct buf_list *bufs)
{
	h2_head_begin(hh, bufs);
	h2_head_append(hh, bufs, STR("\r\n"));
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
h2_head_is_of_http1(struct str name)
{
	return str_eq(name, STR("connection")) ||
	       str_eq(name, STR("keep-alive")) ||
	       str_eq(name, STR("transfer-encoding"));
}

static void
h2_head_lower(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] += 'a' - 'A';
}

static void
h2_head_set(
    nghttp2_nv *nv, char *name, size_t name_len, char *value, size_t len)
{
	*nv = (nghttp2_nv){.name = (uint8_t *)name,
	    .namelen = name_len,
	    .value = (uint8_t *)value,
	    .valuelen = len};
}

/* False: it is left out. */
static bool
h2_head_take_line(char *line, size_t len, nghttp2_nv *nv)
{
	char *colon = memchr(line, ':', len), *value, *end = line + len;

	if (colon == NULL)
		return false;
	h2_head_lower(line, (size_t)(colon - line));
	if (h2_head_is_of_http1((struct str){line, (size_t)(colon - line)}))
		return false;
	for (value = colon + 1; value < end && *value == ' '; value++)
		continue;
	h2_head_set(
	    nv, line, (size_t)(colon - line), value, (size_t)(end - value));
	return true;
}

size_t
h2_head_fields(char *text, size_t len, nghttp2_nv *nv, size_t max)
{
	static char name[] = ":status";
	char *end = text + len, *line = text, *cr;
	nghttp2_nv spare;
	size_t n = 1;

	h2_head_set(nv, name, sizeof(name) - 1, text + sizeof("HTTP/1.1"), 3);
	while ((cr = memchr(line, '\r', (size_t)(end - line))) != NULL &&
	       cr > line) {
		if (line != text && h2_head_take_line(line, (size_t)(cr - line),
					n < max ? &nv[n] : &spare))
			n++;
		line = cr + 2;
	}
	return n;
}
