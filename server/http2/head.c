/*
 * head: see head.h.
 */
#include <string.h>

#include "server/http2/head.h"

/* ---------------------------------------------------------------- requests */

/* Bytes before a value in hh_text: the number of the field and the length of the value. */
#define ENTRY_HEAD (1 + sizeof(uint32_t))

static struct str
h2_head_pseudo(const struct h2_head *hh, enum h2_pseudo which)
{
	const struct h2_part *pt = &hh->hh_pseudo[which];

	return pt->pt_len > 0
		   ? (struct str){hh->hh_raw.b_data + pt->pt_at, pt->pt_len}
		   : STR("");
}

static void
h2_head_add_pseudo(struct h2_head *hh, struct buf_list *bufs, struct str name,
    struct str value)
{
	enum h2_pseudo which;

	if (str_eq(name, STR(":method")))
		which = H2_METHOD;
	else if (str_eq(name, STR(":path")))
		which = H2_PATH;
	else if (str_eq(name, STR(":authority")))
		which = H2_AUTHORITY;
	else {
		if (str_eq(name, STR(":scheme")))
			hh->hh_https = str_caseeq(value, STR("https"));
		return;
	}
	hh->hh_pseudo[which] =
	    (struct h2_part){(uint32_t)hh->hh_raw.b_len, (uint32_t)value.s_len};
	buf_add(&hh->hh_raw, bufs, value.s_ptr, value.s_len);
}

static void
h2_head_append(struct h2_head *hh, struct buf_list *bufs, struct str s)
{
	if (s.s_len > 0)
		buf_add(&hh->hh_text, bufs, s.s_ptr, s.s_len);
}

/* Sets the status, unless an earlier error has set it. */
static void
h2_head_judge(struct h2_head *hh, int status)
{
	if (hh->hh_status == 0)
		hh->hh_status = status;
}

static void
h2_head_store(
    struct h2_head *hh, struct buf_list *bufs, unsigned field, struct str value)
{
	uint32_t len = (uint32_t)value.s_len;
	char head[ENTRY_HEAD] = {(char)field};

	memcpy(head + 1, &len, sizeof(len));
	buf_add(&hh->hh_text, bufs, head, sizeof(head));
	h2_head_append(hh, bufs, value);
}

/*
 * Counts a field with the size that it has in HTTP/1, so that max_head_size and max_fields mean the
 * same in both versions.
 */
static void
h2_head_count(struct h2_head *hh, size_t name, size_t value,
    const struct head_limits *limits)
{
	hh->hh_size += name + sizeof(": \r\n") - 1 + value;
	if (hh->hh_fields++ == limits->hl_fields ||
	    hh->hh_size > limits->hl_size)
		h2_head_judge(hh, 431);
}

static void
h2_head_set_host(struct h2_head *hh, struct buf_list *bufs, struct str host,
    const struct head_limits *limits)
{
	h2_head_count(hh, sizeof("host") - 1, host.s_len, limits);
	h2_head_store(hh, bufs, request_field(STR("host")), host);
}

/*
 * Writes the request line.  The target of CONNECT is the authority, because CONNECT has no path
 * (RFC 9113, 8.5).
 */
static void
h2_head_begin(
    struct h2_head *hh, struct buf_list *bufs, const struct head_limits *limits)
{
	struct str method = h2_head_pseudo(hh, H2_METHOD),
		   authority = h2_head_pseudo(hh, H2_AUTHORITY),
		   target = hh->hh_pseudo[H2_PATH].pt_len > 0
				? h2_head_pseudo(hh, H2_PATH)
				: authority;

	if (hh->hh_begun)
		return;
	hh->hh_begun = true;
	if (hh->hh_raw.b_failed) {
		hh->hh_text.b_failed = true;
		return;
	}
	h2_head_append(hh, bufs, method);
	h2_head_append(hh, bufs, STR(" "));
	h2_head_append(hh, bufs, target);
	h2_head_append(hh, bufs, STR(H2_HEAD_VERSION));
	hh->hh_size = method.s_len + target.s_len + sizeof(H2_HEAD_VERSION);
	hh->hh_line = (uint32_t)hh->hh_size - 2;
	hh->hh_method = (uint32_t)method.s_len;
	hh->hh_target = (uint32_t)target.s_len;
	if (authority.s_len > 0)
		h2_head_set_host(hh, bufs, authority, limits);
}

/*
 * Adds Host.  Sets status 400 if Host and :authority are both present and name different origins
 * (RFC 9113, 8.3.1).
 */
static void
h2_head_add_host(struct h2_head *hh, struct buf_list *bufs, struct str host,
    const struct head_limits *limits)
{
	struct str authority = h2_head_pseudo(hh, H2_AUTHORITY);

	if (authority.s_len == 0)
		h2_head_set_host(hh, bufs, host, limits);
	else if (!head_hosts_equal(host, authority, hh->hh_https))
		h2_head_judge(hh, 400);
}

void
h2_head_add(struct h2_head *hh, struct buf_list *bufs, struct str name,
    struct str value, const struct head_limits *limits)
{
	unsigned field;

	/* The head will be refused, so one byte above the limit is enough. */
	if (value.s_len > limits->hl_size)
		value.s_len = limits->hl_size + 1;
	if (name.s_len > 0 && name.s_ptr[0] == ':') {
		h2_head_add_pseudo(hh, bufs, name, value);
		return;
	}
	h2_head_begin(hh, bufs, limits);
	if (hh->hh_raw.b_failed || hh->hh_size > limits->hl_size)
		return;
	value = str_trim(value);
	if (str_eq(name, STR("priority")))
		hh->hh_priority = true;
	if (str_eq(name, STR("host"))) {
		h2_head_add_host(hh, bufs, value, limits);
		return;
	}
	h2_head_count(hh, name.s_len, value.s_len, limits);
	field = request_field(name);
	if (field > 0)
		h2_head_store(hh, bufs, field, value);
}

bool
h2_head_end(
    struct h2_head *hh, struct buf_list *bufs, const struct head_limits *limits)
{
	h2_head_begin(hh, bufs, limits);
	hh->hh_size += sizeof("\r\n") - 1;
	if (hh->hh_size > limits->hl_size)
		h2_head_judge(hh, 431);
	buf_release(&hh->hh_raw, bufs);
	buf_fit(&hh->hh_text, bufs);
	return !hh->hh_text.b_failed;
}

static struct str
h2_head_block(const struct h2_head *hh)
{
	size_t line = hh->hh_line + 2;

	return (struct str){
	    hh->hh_text.b_data + line, hh->hh_text.b_len - line};
}

/* Moves the first field of the block to *field and *value.  Returns false if no field is left. */
static bool
h2_head_next(struct str *block, unsigned *field, struct str *value)
{
	uint32_t len;

	if (block->s_len == 0)
		return false;
	*field = (unsigned char)*block->s_ptr;
	memcpy(&len, block->s_ptr + 1, sizeof(len));
	str_advance(block, ENTRY_HEAD);
	*value = (struct str){block->s_ptr, len};
	str_advance(block, len);
	return true;
}

/* Sets all fields of the request except Host.  Returns 0, or 400 if a field cannot be set. */
static int
h2_head_set_fields(
    const struct h2_head *hh, struct request *rq, struct buf_list *bufs)
{
	unsigned field, host = request_field(STR("host"));
	struct str value, block = h2_head_block(hh);

	while (h2_head_next(&block, &field, &value)) {
		if (field == host ||
		    request_set(rq, field, value, hh->hh_size, bufs) == 0)
			continue;
		rq->rq_x_forwarded_for = rq->rq_forwarded = (struct str){0};
		return 400;
	}
	return 0;
}

/* Returns the value of Host; the text is absent without Host. */
static struct str
h2_head_host(const struct h2_head *hh)
{
	unsigned field, host = request_field(STR("host"));
	struct str value, block = h2_head_block(hh);

	while (h2_head_next(&block, &field, &value))
		if (field == host)
			return value;
	return (struct str){0};
}

/*
 * Sets the parts of the first line.  Returns 0, or the status for an error in the line.  The status
 * for an unknown method goes to *unknown instead.
 */
static int
h2_head_set_line(const struct h2_head *hh, const struct head_limits *limits,
    struct request *rq, int *unknown)
{
	struct str line = {hh->hh_text.b_data, hh->hh_line};
	struct str method = {line.s_ptr, hh->hh_method};
	struct str target = {line.s_ptr + hh->hh_method + 1, hh->hh_target};
	int status = head_check_method(method);

	*unknown = request_method(method, &rq->rq_method);
	rq->rq_texts.qt_line = line;
	if (status == 0)
		status = head_check_target(target, limits);
	if (status == 0 || status == 414)
		rq->rq_target = target;
	return status;
}

int
h2_head_request(const struct h2_head *hh, const struct head_limits *limits,
    struct request *rq, uint64_t max_body, struct buf_list *bufs)
{
	struct str host = h2_head_host(hh);
	int bad_host = host.s_ptr == NULL ? 400 : head_check_host(host);
	int status, unknown;

	*rq = (struct request){.rq_keepalive = true, .rq_framed = true};
	status = h2_head_set_line(hh, limits, rq, &unknown);
	if (bad_host == 0)
		rq->rq_texts.qt_host = host;
	if (status == 0)
		status = hh->hh_status;
	if (status == 0)
		status = bad_host != 0 ? bad_host : unknown;
	/*
	 * Ignores the fields of a refused head.  The last members of its lists determine the
	 * client's address, and may be missing.
	 */
	if (status == 0)
		status = h2_head_set_fields(hh, rq, bufs);
	return status != 0 ? status : request_check_body(rq, max_body);
}

void
h2_head_release(struct h2_head *hh, struct buf_list *bufs)
{
	buf_release(&hh->hh_text, bufs);
	buf_release(&hh->hh_raw, bufs);
}

/* -------------------------------------------------------------- responses */

/* Returns true for the names of fields that HTTP/2 forbids (RFC 9113, 8.2.2). */
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

/* Makes a field from a line.  Returns false if HTTP/2 must not send the line. */
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
