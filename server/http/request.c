/*
 * request: see request.h.
 */
#include <http_parser.h>
#include <stddef.h>

#include "server/http/request.h"

struct parsing {
	struct request *ps_rq;
	struct buf_list *ps_bufs;
	size_t ps_size; /* of the head */
	struct str ps_name;
	bool ps_close; /* what Connection asks for */
	bool ps_keep;
	bool ps_complete;
};

struct field {
	const char *name;
	size_t offset;
	bool list; /* may come more than once: the values are joined */
};

#define SLICE(name, member)                                   \
	{                                                     \
		name, offsetof(struct request, member), false \
	}
#define SLICE_LIST(name, member)                             \
	{                                                    \
		name, offsetof(struct request, member), true \
	}
#define SAME_LENGTH 3

/* By the length of their names: most fields are of none of these. */
static const struct field fields[][SAME_LENGTH] = {
    [4] = {SLICE("host", rq_texts.qt_host)},
    [5] = {SLICE("range", rq_range)},
    [6] = {SLICE("expect", rq_expect), SLICE("origin", rq_origin),
	SLICE_LIST("accept", rq_accept)},
    [7] = {SLICE("referer", rq_texts.qt_referer)},
    [8] = {SLICE("if-range", rq_pre.pre_if_range),
	SLICE_LIST("if-match", rq_pre.pre_if_match)},
    [9] = {SLICE_LIST("forwarded", rq_forwarded)},
    [10] = {SLICE("user-agent", rq_texts.qt_agent)},
    [13] = {SLICE_LIST("if-none-match", rq_pre.pre_if_none_match),
	SLICE("authorization", rq_authorization)},
    [15] = {SLICE_LIST("accept-encoding", rq_accept_encoding),
	SLICE_LIST("x-forwarded-for", rq_x_forwarded_for)},
    [16] = {SLICE_LIST("want-repr-digest", rq_want_digest)},
    [17] = {SLICE("if-modified-since", rq_pre.pre_if_modified_since)},
    [19] = {SLICE("if-unmodified-since", rq_pre.pre_if_unmodified_since)},
    [29] = {SLICE("access-control-request-method", rq_preflight)},
};

#define LENGTHS (sizeof(fields) / sizeof(fields[0]))

static const struct field *
request_find_field(struct str name)
{
	const struct field *f;
	int i;

	if (name.s_len >= LENGTHS)
		return NULL;
	for (i = 0; i < SAME_LENGTH; i++) {
		f = &fields[name.s_len][i];
		if (f->name == NULL)
			return NULL;
		if (strncasecmp(name.s_ptr, f->name, name.s_len) == 0)
			return f;
	}
	return NULL;
}

static bool
request_is_last(const struct buf *b, struct str value)
{
	return value.s_ptr + value.s_len == b->b_data + b->b_len;
}

/*
 * Both values in a row, in memory that never moves: others may point into it.
 * What does not fit was sent to exhaust us: one value is at most a head.
 */
static int
request_join(struct parsing *ps, struct str *value, struct str more)
{
	struct buf *to = &ps->ps_rq->rq_joined;
	struct str old = *value;

	if (request_is_last(to, old))
		to->b_len -= old.s_len;
	if (to->b_len + old.s_len + 2 + more.s_len > to->b_cap)
		return -1;
	value->s_ptr = to->b_data + to->b_len;
	value->s_len = old.s_len + 2 + more.s_len;
	buf_add(to, ps->ps_bufs, old.s_ptr, old.s_len);
	buf_add(to, ps->ps_bufs, ", ", 2);
	buf_add(to, ps->ps_bufs, more.s_ptr, more.s_len);
	return 0;
}

static int
request_set_field(struct parsing *ps, const struct field *f, struct str value)
{
	struct str *to;

	to = (struct str *)(void *)((char *)ps->ps_rq + f->offset);
	if (to->s_ptr == NULL) {
		*to = value;
		return 0;
	}
	if (f->list) {
		if (!buf_reserve(
			&ps->ps_rq->rq_joined, ps->ps_bufs, 4 * ps->ps_size))
			return -1;
		return request_join(ps, to, value);
	}
	/* Present twice, so it says nothing: an empty value is never valid. */
	*to = STR("");
	return 0;
}

static int
request_on_field(http_parser *parser, const char *at, size_t len)
{
	struct parsing *ps = parser->data;

	ps->ps_name = (struct str){at, len};
	return 0;
}

/* http-parser would miss some forms of a list, and take Proxy-Connection for this. */
static void
request_note_connection(struct parsing *ps, struct str list)
{
	struct str option;

	while (str_member(&list, &option)) {
		ps->ps_close |= str_caseeq(option, STR("close"));
		ps->ps_keep |= str_caseeq(option, STR("keep-alive"));
	}
}

static int
request_on_value(http_parser *parser, const char *at, size_t len)
{
	struct parsing *ps = parser->data;
	const struct field *f = request_find_field(ps->ps_name);
	struct str value = str_trim((struct str){at, len});

	if (f != NULL)
		return request_set_field(ps, f, value);
	if (str_caseeq(ps->ps_name, STR("connection")))
		request_note_connection(ps, value);
	else if (str_caseeq(ps->ps_name, STR("transfer-encoding")))
		ps->ps_rq->rq_chunked = true; /* head_check accepts no other */
	return 0;
}

static int
request_on_url(http_parser *parser, const char *at, size_t len)
{
	struct parsing *ps = parser->data;

	ps->ps_rq->rq_target = (struct str){at, len};
	return 0;
}

/* The body is the connection's business, and nothing is upgraded. */
static int
request_on_headers_complete(http_parser *parser)
{
	struct parsing *ps = parser->data;
	struct request *rq = ps->ps_rq;

	ps->ps_complete = true;
	parser->upgrade = 0;
	rq->rq_http10 = parser->http_minor == 0;
	/* Both may be said: "close" wins (RFC 9112, 9.3). */
	rq->rq_keepalive = !ps->ps_close && (!rq->rq_http10 || ps->ps_keep);
	rq->rq_body =
	    parser->content_length == UINT64_MAX ? 0 : parser->content_length;
	return 1;
}

static const http_parser_settings settings = {
    .on_url = request_on_url,
    .on_header_field = request_on_field,
    .on_header_value = request_on_value,
    .on_headers_complete = request_on_headers_complete,
};

static enum method
request_method(unsigned number)
{
	switch (number) {
	case HTTP_GET:
		return METHOD_GET;
	case HTTP_HEAD:
		return METHOD_HEAD;
	case HTTP_OPTIONS:
		return METHOD_OPTIONS;
	default:
		return METHOD_OTHER;
	}
}

/* head_check has bounded the head; the parser's 80 KiB are less than may be allowed. */
static void __attribute__((constructor)) lift_parser_limit(void)
{
	http_parser_set_max_header_size(UINT32_MAX);
}

static struct str
request_first_line(struct str head)
{
	const char *end = memchr(head.s_ptr, '\r', head.s_len);

	return (struct str){
	    head.s_ptr, end == NULL ? head.s_len : (size_t)(end - head.s_ptr)};
}

int
request_parse(struct request *rq, struct str head, uint64_t max_body,
    struct buf_list *bufs)
{
	struct parsing ps = {
	    .ps_rq = rq, .ps_bufs = bufs, .ps_size = head.s_len};
	http_parser parser;

	*rq = (struct request){.rq_texts.qt_line = request_first_line(head)};
	http_parser_init(&parser, HTTP_REQUEST);
	parser.data = &ps;
	http_parser_execute(&parser, &settings, head.s_ptr, head.s_len);
	if (!ps.ps_complete) {
		/* The end of these lists, which counts, may be missing. */
		rq->rq_x_forwarded_for = rq->rq_forwarded = (struct str){0};
		return parser.http_errno == HPE_INVALID_METHOD ? 501 : 400;
	}
	rq->rq_method = request_method(parser.method);
	if (rq->rq_body <= max_body)
		return 0;
	/* Of two things that are wrong the method is the first. */
	return rq->rq_method == METHOD_OTHER ? 405 : 413;
}
