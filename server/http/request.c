/*
 * request: see request.h.
 */
#include <http_parser.h>
#include <stddef.h>

#include "server/http/request.h"

struct parsing {
	struct request *ps_rq;
	struct buf_list *ps_bufs;
	size_t ps_size; /* bytes of the request head */
	struct str ps_name;
	bool ps_close; /* true if Connection lists "close" */
	bool ps_keep;
	bool ps_complete;
};

enum kind {
	KIND_ONE,    /* a repeated field makes the value empty */
	KIND_LIST,   /* values of repeated fields are joined */
	KIND_NUMBER, /* the value is stored as a uint64_t */
};

struct field {
	const char *name;
	size_t offset;
	enum kind kind;
};

#define FIELD(name, member, kind)                            \
	{                                                    \
		name, offsetof(struct request, member), kind \
	}
#define SLICE(name, member)	 FIELD(name, member, KIND_ONE)
#define SLICE_LIST(name, member) FIELD(name, member, KIND_LIST)
#define SAME_LENGTH		 3

static const struct method_row {
	struct str name;
	unsigned number;
} methods[] = {
#define METHOD_ROW(number, name, text) {{#text, sizeof(#text) - 1}, number},
    HTTP_METHOD_MAP(METHOD_ROW)
#undef METHOD_ROW
};

/*
 * Fields that the server uses, indexed by the length of their names: most other fields of a request
 * have names of other lengths.
 */
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
    [14] = {FIELD("content-length", rq_body, KIND_NUMBER),
	SLICE("pagewise-trace", rq_trace)},
    [16] = {SLICE_LIST("want-repr-digest", rq_want_digest)},
    [17] = {SLICE("if-modified-since", rq_pre.pre_if_modified_since)},
    [19] = {SLICE("if-unmodified-since", rq_pre.pre_if_unmodified_since)},
    [29] = {SLICE("access-control-request-method", rq_preflight)},
};

#define LENGTHS (sizeof(fields) / sizeof(fields[0]))

unsigned
request_field(struct str name)
{
	const struct field *f;

	if (name.s_len >= LENGTHS)
		return 0;
	for (unsigned i = 0; i < SAME_LENGTH; i++) {
		f = &fields[name.s_len][i];
		if (f->name == NULL)
			return 0;
		if (strncasecmp(name.s_ptr, f->name, name.s_len) == 0)
			return (unsigned)name.s_len * SAME_LENGTH + i;
	}
	return 0;
}

static bool
request_is_last(const struct buf *b, struct str value)
{
	return value.s_ptr + value.s_len == b->b_data + b->b_len;
}

/*
 * Joins *value and `more` in rq_joined.  The memory of rq_joined never moves, because slices may
 * point into it.  Returns -1 if the values do not fit: rq_joined has four times the size of the
 * head, and a request that needs more tries to exhaust memory.
 */
static int
request_join(struct request *rq, struct buf_list *bufs, struct str *value,
    struct str more)
{
	struct buf *to = &rq->rq_joined;
	struct str old = *value;

	if (request_is_last(to, old))
		to->b_len -= old.s_len;
	if (to->b_len + old.s_len + 2 + more.s_len > to->b_cap)
		return -1;
	value->s_ptr = to->b_data + to->b_len;
	value->s_len = old.s_len + 2 + more.s_len;
	buf_add(to, bufs, old.s_ptr, old.s_len);
	buf_add(to, bufs, ", ", 2);
	buf_add(to, bufs, more.s_ptr, more.s_len);
	return 0;
}

/* Returns the number that the digits stand for, or UINT64_MAX if the number does not fit. */
static uint64_t
request_number(struct str digits)
{
	uint64_t n = 0;

	for (size_t i = 0; i < digits.s_len; i++) {
		if (n > (UINT64_MAX - 9) / 10)
			return UINT64_MAX;
		n = 10 * n + (uint64_t)(digits.s_ptr[i] - '0');
	}
	return n;
}

int
request_set(struct request *rq, unsigned field, struct str value,
    size_t head_size, struct buf_list *bufs)
{
	const struct field *f =
	    &fields[field / SAME_LENGTH][field % SAME_LENGTH];
	void *at = (char *)rq + f->offset;
	struct str *to = at;

	if (f->kind == KIND_NUMBER) {
		*(uint64_t *)at = request_number(value);
		return 0;
	}
	if (to->s_ptr == NULL) {
		*to = value;
		return 0;
	}
	if (f->kind == KIND_LIST) {
		if (!buf_reserve(&rq->rq_joined, bufs, 4 * head_size))
			return -1;
		return request_join(rq, bufs, to, value);
	}
	/* An empty value is never valid, so a repeated field is invalid. */
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

/*
 * Reads the options in Connection.  http-parser would miss some options in a list, and would treat
 * Proxy-Connection as Connection.
 */
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
	unsigned field = request_field(ps->ps_name);
	struct str value = str_trim((struct str){at, len});

	if (field > 0)
		return request_set(
		    ps->ps_rq, field, value, ps->ps_size, ps->ps_bufs);
	if (str_caseeq(ps->ps_name, STR("connection")))
		request_note_connection(ps, value);
	else if (str_caseeq(ps->ps_name, STR("transfer-encoding")))
		ps->ps_rq->rq_chunked = true; /* no other coding is accepted */
	return 0;
}

static int
request_on_url(http_parser *parser, const char *at, size_t len)
{
	struct parsing *ps = parser->data;

	ps->ps_rq->rq_target = (struct str){at, len};
	return 0;
}

/*
 * Ends the parsing after the head: the connection reads the body itself, and upgrades are not
 * supported.
 */
static int
request_on_headers_complete(http_parser *parser)
{
	struct parsing *ps = parser->data;
	struct request *rq = ps->ps_rq;

	ps->ps_complete = true;
	parser->upgrade = 0;
	rq->rq_http10 = parser->http_minor == 0;
	/* If both options are present, "close" wins (RFC 9112, 9.3). */
	rq->rq_keepalive = !ps->ps_close && (!rq->rq_http10 || ps->ps_keep);
	return 1;
}

static const http_parser_settings settings = {
    .on_url = request_on_url,
    .on_header_field = request_on_field,
    .on_header_value = request_on_value,
    .on_headers_complete = request_on_headers_complete,
};

static enum method
request_method_numbered(unsigned number)
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

int
request_method(struct str name, enum method *method)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (str_eq(methods[i].name, name)) {
			*method = request_method_numbered(methods[i].number);
			return 0;
		}
	}
	*method = METHOD_OTHER;
	return 501;
}

/* Returns 405 rather than 413 if both the method and the body are wrong. */
int
request_check_body(const struct request *rq, uint64_t max_body)
{
	if (rq->rq_body <= max_body)
		return 0;
	return rq->rq_method == METHOD_OTHER ? 405 : 413;
}

/*
 * Removes the parser's limit of 80 KiB, which may be below max_head_size.  head_check limits the
 * head.
 */
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
		/*
		 * The last members of the lists determine the client's address, and may be missing
		 * here.
		 */
		rq->rq_x_forwarded_for = rq->rq_forwarded = (struct str){0};
		return parser.http_errno == HPE_INVALID_METHOD ? 501 : 400;
	}
	rq->rq_method = request_method_numbered(parser.method);
	return request_check_body(rq, max_body);
}
