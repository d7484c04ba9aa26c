/*
 * server/http/head.h and server/http/request.h together against a naive reading: which heads
 * are taken, in how many pieces they come, and what the parser makes of them.  The same request by
 * HTTP/2 (server/http2/head.h) gets the same verdict and has the same values.
 * Input: "MAX_SIZE MAX_TARGET MAX_FIELDS PIECE ...\n" and what is received; the
 * sizes of the pieces repeat.
 */
#include <ctype.h>

#include "naive_head.h"
#include "server/http/request.h"
#include "server/http2/head.h"

#define MAX_BODY 1000

/* Each call sees a copy that ends where the piece ends. */
static int
check_pieces(struct str in, const struct head_limits *limits, struct str sizes,
    struct head *hd)
{
	struct str left = sizes;
	size_t len = 0;
	int status = HEAD_MORE;
	char *copy;

	*hd = (struct head){0};
	while (status == HEAD_MORE && len < in.s_len) {
		if (left.s_len == 0)
			left = sizes;
		len += fuzz_size(&left, in.s_len, 1, 4096);
		if (len > in.s_len)
			len = in.s_len;
		copy = fuzz_copy((struct str){in.s_ptr, len});
		status = head_check(copy, len, limits, hd);
		free(copy);
	}
	return status;
}

static int
check_bytes(struct str in, const struct head_limits *limits, struct head *hd)
{
	size_t len;
	int status = HEAD_MORE;

	*hd = (struct head){0};
	for (len = 1; status == HEAD_MORE && len <= in.s_len; len++)
		status = head_check(in.s_ptr, len, limits, hd);
	return status;
}

/* A verdict is never more than what the bytes say. */
static void
check_refusal(int status, struct str in, const struct head_limits *limits)
{
	bool crlf = true;

	for (size_t i = 0; i < in.s_len; i++) {
		if (in.s_ptr[i] == '\n')
			crlf &= i > 0 && in.s_ptr[i - 1] == '\r';
		if (in.s_ptr[i] == '\r' && i + 1 < in.s_len)
			crlf &= in.s_ptr[i + 1] == '\n';
	}
	switch (status) {
	case HEAD_MORE:
		CHECK(in.s_len < limits->hl_size && crlf);
		CHECK(memchr(in.s_ptr, '\0', in.s_len) == NULL);
		break;
	case 414:
		CHECK(in.s_len > limits->hl_target);
		break;
	case 431:
		CHECK(in.s_len >= limits->hl_size ||
		      in.s_len >= 4 * limits->hl_fields);
		break;
	case 501:
	case 505:
		CHECK(in.s_len > 8);
		break;
	default:
		CHECK(status == 400);
	}
}

/* The members of all Connection fields. */
static bool
connection_has(const struct naive_head *nh, const char *token)
{
	struct str list, member;
	bool found = false;

	for (size_t i = 0; i < nh->nh_nfields; i++) {
		if (strcasecmp(nh->nh_fields[i].nf_name, "connection") != 0)
			continue;
		for (list = nh->nh_fields[i].nf_value; list.s_len > 0;) {
			member = str_trim(fuzz_until(&list, ','));
			found |= str_caseeq(member, fuzz_str(token));
		}
	}
	return found;
}

/* What a field that is a list should be; cost: bytes that joining it took. */
static char *
joined(const struct naive_head *nh, const char *name, size_t *cost)
{
	char *text = NULL, *more;

	for (size_t i = 0; i < nh->nh_nfields; i++) {
		if (strcasecmp(nh->nh_fields[i].nf_name, name) != 0)
			continue;
		CHECK(asprintf(&more, "%s%s%s", text != NULL ? text : "",
			  text != NULL ? ", " : "",
			  nh->nh_fields[i].nf_value.s_ptr) != -1);
		*cost += text != NULL ? strlen(more) : 0;
		free(text);
		text = more;
	}
	return text;
}

static void
check_single(const struct naive_head *nh, const char *name, struct str value)
{
	struct str expected;
	size_t n = naive_find(nh, name, &expected);

	CHECK(fuzz_same(value, n > 1 ? STR("") : expected));
}

static void
check_list(const struct naive_head *nh, const char *name, struct str value)
{
	size_t cost = 0;
	char *text = joined(nh, name, &cost);

	CHECK(text == NULL ? value.s_ptr == NULL
			   : fuzz_same(value, fuzz_str(text)));
	free(text);
}

/* Absent, in the head, or in what was joined (or "", for what came twice). */
static void
check_slices(const struct request *rq, struct str head)
{
	const struct str all[] = {rq->rq_texts.qt_line, rq->rq_target,
	    rq->rq_texts.qt_host, rq->rq_range, rq->rq_texts.qt_referer,
	    rq->rq_texts.qt_agent, rq->rq_expect, rq->rq_accept,
	    rq->rq_pre.pre_if_match, rq->rq_pre.pre_if_none_match,
	    rq->rq_pre.pre_if_modified_since,
	    rq->rq_pre.pre_if_unmodified_since, rq->rq_pre.pre_if_range};
	const struct buf *joined_b = &rq->rq_joined;

	for (size_t i = 0; i < COUNT(all); i++)
		CHECK(all[i].s_len == 0 ||
		      fuzz_inside(all[i], head.s_ptr, head.s_len) ||
		      fuzz_inside(all[i], joined_b->b_data, joined_b->b_len));
}

static void
check_fields(const struct naive_head *nh, const struct request *rq)
{
	const struct conditional *pre = &rq->rq_pre;

	check_single(nh, "host", rq->rq_texts.qt_host);
	check_single(nh, "range", rq->rq_range);
	check_single(nh, "referer", rq->rq_texts.qt_referer);
	check_single(nh, "user-agent", rq->rq_texts.qt_agent);
	check_single(nh, "expect", rq->rq_expect);
	check_single(nh, "if-range", pre->pre_if_range);
	check_single(nh, "if-modified-since", pre->pre_if_modified_since);
	check_single(nh, "if-unmodified-since", pre->pre_if_unmodified_since);
	check_list(nh, "if-match", pre->pre_if_match);
	check_list(nh, "if-none-match", pre->pre_if_none_match);
	check_list(nh, "accept", rq->rq_accept);
}

static enum method
naive_method(const char *name)
{
	if (strcmp(name, "GET") == 0)
		return METHOD_GET;
	if (strcmp(name, "HEAD") == 0)
		return METHOD_HEAD;
	return strcmp(name, "OPTIONS") == 0 ? METHOD_OPTIONS : METHOD_OTHER;
}

static void
check_request(const struct naive_head *nh, const struct request *rq)
{
	bool close = connection_has(nh, "close");
	bool keep = connection_has(nh, "keep-alive");
	struct str length, coding;

	CHECK(str_eq(rq->rq_texts.qt_line, fuzz_str(nh->nh_line)));
	CHECK(str_eq(rq->rq_target, fuzz_str(nh->nh_target)));
	CHECK(rq->rq_method == naive_method(nh->nh_method));
	CHECK(rq->rq_http10 == (nh->nh_minor == 0));
	CHECK(rq->rq_keepalive == (!close && (nh->nh_minor == 1 || keep)));
	naive_find(nh, "content-length", &length);
	CHECK(rq->rq_body ==
	      (length.s_ptr == NULL ? 0 : strtoull(length.s_ptr, NULL, 10)));
	CHECK(rq->rq_chunked ==
	      (naive_find(nh, "transfer-encoding", &coding) == 1));
	check_fields(nh, rq);
}

/* What a correct head may still be refused for. */
static void
check_parser_refusal(int status, const struct naive_head *nh)
{
	struct target tgt;
	struct str length, target = fuzz_str(nh->nh_target);
	char *buf = malloc(target.s_len + 2);
	size_t cost = 0;
	bool bad;

	CHECK(buf != NULL);
	bad = target_parse(target, buf, target.s_len + 2, &tgt) != 0 ||
	      strcmp(nh->nh_method, "CONNECT") == 0 || tgt.tgt_asterisk;
	free(buf);
	naive_find(nh, "content-length", &length);
	free(joined(nh, "if-match", &cost));
	free(joined(nh, "if-none-match", &cost));
	free(joined(nh, "accept", &cost));
	if (status == 400)
		CHECK(bad || length.s_len > 18 || cost > 4 * nh->nh_len);
	else if (status == 413 || status == 405)
		CHECK(length.s_len > 0 &&
		      strtoull(length.s_ptr, NULL, 10) > MAX_BODY &&
		      (naive_method(nh->nh_method) == METHOD_OTHER) ==
			  (status == 405));
	else
		CHECK(status == 501 &&
		      naive_method(nh->nh_method) == METHOD_OTHER);
}

static const struct head_limits roomy = {1 << 24, 1 << 24, 1 << 16};

/* Fields that HTTP/2 does not have are left out. */
static void
send_by_http2(
    const struct naive_head *nh, struct h2_head *hh, struct buf_list *bufs)
{
	const char *name;
	char lower[256];

	h2_head_add(hh, bufs, STR(":method"), fuzz_str(nh->nh_method), &roomy);
	h2_head_add(hh, bufs, STR(":path"), fuzz_str(nh->nh_target), &roomy);
	for (size_t i = 0; i < nh->nh_nfields; i++) {
		name = nh->nh_fields[i].nf_name;
		if (strlen(name) >= sizeof(lower) ||
		    strcasecmp(name, "connection") == 0)
			continue;
		for (size_t n = 0; n <= strlen(name); n++)
			lower[n] = (char)tolower((unsigned char)name[n]);
		h2_head_add(hh, bufs, fuzz_str(lower),
		    nh->nh_fields[i].nf_value, &roomy);
	}
	CHECK(h2_head_end(hh, bufs, &roomy));
}

static void
check_equal(const struct request *a, const struct request *b)
{
#define SAME(member) CHECK(fuzz_same(a->member, b->member))
	CHECK(a->rq_method == b->rq_method && a->rq_body == b->rq_body);
	SAME(rq_target);
	SAME(rq_texts.qt_host);
	SAME(rq_texts.qt_agent);
	SAME(rq_texts.qt_referer);
	SAME(rq_range);
	SAME(rq_accept);
	SAME(rq_origin);
	SAME(rq_accept_encoding);
	SAME(rq_want_digest);
	SAME(rq_x_forwarded_for);
	SAME(rq_forwarded);
	SAME(rq_authorization);
	SAME(rq_preflight);
	SAME(rq_expect);
	SAME(rq_pre.pre_if_match);
	SAME(rq_pre.pre_if_none_match);
	SAME(rq_pre.pre_if_modified_since);
	SAME(rq_pre.pre_if_unmodified_since);
	SAME(rq_pre.pre_if_range);
#undef SAME
}

/* 400 is http-parser's alone for some targets, which exchange_respond judges for both. */
static void
check_http2(const struct naive_head *nh, const struct request *rq, int status)
{
	struct buf_list bufs = {0};
	struct h2_head hh = {0};
	struct request other;
	struct str value;

	if (status == 400 || naive_find(nh, "transfer-encoding", &value) > 0 ||
	    naive_find(nh, "host", &value) != 1)
		return;
	send_by_http2(nh, &hh, &bufs);
	CHECK(h2_head_request(&hh, &roomy, &other, MAX_BODY, &bufs) == status);
	if (status == 0)
		check_equal(rq, &other);
	buf_release(&other.rq_joined, &bufs);
	h2_head_release(&hh, &bufs);
	buf_list_destroy(&bufs);
}

static void
check_parser(const struct naive_head *nh, struct str head)
{
	struct buf_list bufs = {0};
	char *copy = fuzz_copy(head);
	struct str slice = {copy, head.s_len};
	struct request rq;
	int status = request_parse(&rq, slice, MAX_BODY, &bufs);

	check_slices(&rq, slice);
	if (status == 0)
		check_request(nh, &rq);
	else
		check_parser_refusal(status, nh);
	check_http2(nh, &rq, status);
	buf_release(&rq.rq_joined, &bufs);
	buf_list_destroy(&bufs);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct naive_head nh;
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	struct head_limits limits = {fuzz_size(&line, 16384, 1024, 1 << 20),
	    fuzz_size(&line, 8192, 64, 1 << 20),
	    fuzz_size(&line, 100, 1, 1024)};
	struct head whole = {0}, pieces, bytes;
	int status = in.s_len > 0
			 ? head_check(in.s_ptr, in.s_len, &limits, &whole)
			 : HEAD_MORE;
	bool good = naive_read(&nh, in, &limits);

	CHECK(check_pieces(in, &limits, line, &pieces) == status);
	CHECK(check_bytes(in, &limits, &bytes) == status);
	CHECK((status == 0) == good);
	if (good) {
		CHECK(whole.hd_len == nh.nh_len && pieces.hd_len == nh.nh_len &&
		      bytes.hd_len == nh.nh_len);
		CHECK(whole.hd_skip == nh.nh_skip &&
		      whole.hd_minor == nh.nh_minor);
		check_parser(&nh, (struct str){in.s_ptr + nh.nh_skip,
				      nh.nh_len - nh.nh_skip});
	} else
		check_refusal(status, in, &limits);
	naive_free(&nh);
	return 0;
}
