/*
 * server/conn/fast_path.h against the long way: whatever it answers, head check and parser
 * take for the same request, and it takes no byte more.
 * Input: the request whose fields are known, a NUL, then what is received; "\1" in it
 * stands for the known fields.
 */
#include <sys/socket.h>

#include "fuzz.h"
#include "long_way.h"
#include "lib/util/clock.h"
#include "server/conf/conf_priv.h"
#include "server/conn/conn.h"
#include "server/conn/fast_path.h"

#define YEAR_US UINT64_C(31536000000000)
#define FIELDS                      \
	"HTTP/1.1 200 OK\r\nDate: " \
	"Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\nX: n\r\n"

/* The last field of the answer to each is its number. */
static const char *const targets[] = {"/", "/a", "/a/b.html"};

static struct worker worker;
static struct conn conn;
static struct conf conf;
static int far_end;

static void
add_site(const char *name)
{
	struct settings none = {0};
	struct conf_scope scope = {
	    .cs_where = KEY_SITE, .cs_conf = &conf, .cs_set = &none};
	struct conf_why why;

	CHECK(conf_site_add(&scope, name, &scope.cs_site, &why) == 0);
	CHECK(conf_key_set(&scope, "names", name, &why) == 0);
}

/* Fresh for ever, and of a file without a body. */
static void
add_answer(size_t site, size_t target)
{
	struct pw_file file = {.fil_checked = clock_now() + YEAR_US};
	struct cached_key key = {.ck_site = &conf.conf_sites[site],
	    .ck_target = fuzz_str(targets[target])};
	char fields[] = FIELDS;

	fields[sizeof(fields) - 4] =
	    (char)('0' + site * COUNT(targets) + target);
	response_cache_offer(worker.wk_service.svc_responses, key, &file,
	    (struct str){fields, sizeof(fields) - 1}, RESPONSE_CACHE_ASKED,
	    clock_now(), time(NULL));
}

static void
prepare(void)
{
	struct log *lg;
	int sv[2];

	if (worker.wk_service.svc_responses != NULL)
		return;
	worker.wk_service.svc_conf = &conf;
	worker.wk_service.svc_responses =
	    response_cache_create((size_t)1 << 20);
	worker.wk_header_cache = header_cache_create();
	CHECK(worker.wk_service.svc_responses != NULL &&
	      worker.wk_header_cache != NULL);
	CHECK(log_create(NULL, LOG_COMBINED, 1, &lg, &(bool){false}) == 0);
	worker.wk_service.svc_log = log_writer(lg, 0);
	conf.conf_max_head = limits.hl_size;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	transport_open(&conn.cn_transport, sv[0]);
	far_end = sv[1];
	conn.cn_worker = &worker;
	add_site("a.example");
	add_site("b.example");
	for (size_t i = 0; i < 2 * COUNT(targets); i++)
		add_answer(i / COUNT(targets), i % COUNT(targets));
}

/* A higher minor version is a request as good as 1.1, but not one for the short way. */
static bool
is_http11(const struct request *rq)
{
	static const char version[] = " HTTP/1.1";
	size_t n = sizeof(version) - 1;

	return rq->rq_texts.qt_line.s_len >= n &&
	       memcmp(
		   rq->rq_texts.qt_line.s_ptr + rq->rq_texts.qt_line.s_len - n,
		   version, n) == 0;
}

/* The number of its answer, or -1: only the long way has one. */
static int
expected(const struct parsed *pd)
{
	const struct request *rq = &pd->pd_rq;
	const struct site *site;

	if (!pd->pd_good || rq->rq_method != METHOD_GET || !is_http11(rq) ||
	    !rq->rq_keepalive || rq->rq_body > 0 || rq->rq_chunked ||
	    rq->rq_range.s_ptr != NULL)
		return -1;
	site = conf_site(
	    &conf, rq->rq_texts.qt_host.s_ptr, rq->rq_texts.qt_host.s_len);
	for (size_t i = 0; i < COUNT(targets); i++)
		if (str_eq(rq->rq_target, fuzz_str(targets[i])))
			return (int)((size_t)(site - conf.conf_sites) *
					 COUNT(targets) +
				     i);
	return -1;
}

/* Reads the answer to the request at the front, and takes that. */
static void
check_answer(struct str *in)
{
	char answer[sizeof(FIELDS) + 1];
	struct parsed pd;

	parse(&pd, *in);
	CHECK(recv(far_end, answer, sizeof(answer), MSG_DONTWAIT) ==
	      (ssize_t)sizeof(answer));
	CHECK(memcmp(answer, FIELDS, 17) == 0);
	CHECK(answer[sizeof(answer) - 5] == '0' + expected(&pd));
	CHECK(pd.pd_head.hd_len <= in->s_len);
	in->s_ptr += pd.pd_head.hd_len;
	in->s_len -= pd.pd_head.hd_len;
	parsed_free(&pd);
}

/* In memory of just that size; the short way takes from its front. */
static void
run(struct str in)
{
	char *copy = fuzz_copy(in), byte;
	size_t before = in.s_len;
	struct parsed pd;

	conn.cn_in = (struct buf){copy, in.s_len, in.s_len, false};
	while (fast_path_run(&conn) == FAST_PATH_SENT) {
		conn.cn_slice_sent = 0;
		CHECK(conn.cn_in.b_len < before);
		before = conn.cn_in.b_len;
		while (in.s_len > before)
			check_answer(&in);
		CHECK(in.s_len == before);
		CHECK(memcmp(in.s_ptr, conn.cn_in.b_data, before) == 0);
	}
	CHECK(conn.cn_ex == NULL);
	CHECK(recv(far_end, &byte, 1, MSG_DONTWAIT) == -1);
	parse(&pd, in);
	CHECK(expected(&pd) == -1 || conn.cn_known_header.kh_fields == NULL ||
	      pd.pd_block.s_len != conn.cn_known_header.kh_fields->fl_len ||
	      !known_header_matches(
		  &conn.cn_known_header, pd.pd_block.s_ptr, pd.pd_block.s_len));
	parsed_free(&pd);
	free(copy);
}

/* What is received, with the known fields in it. */
static void
compose(struct str in, const struct cached_header *fl)
{
	char *out = NULL, *p;
	size_t i, marks = 0;

	for (i = 0; i < in.s_len; i++)
		marks += in.s_ptr[i] == 1;
	out = malloc(in.s_len + marks * HEADER_CACHE_MAX + 1);
	CHECK(out != NULL);
	for (i = 0, p = out; i < in.s_len; i++) {
		if (in.s_ptr[i] == 1)
			p = mempcpy(p, fl->fl_text, fl->fl_len);
		else
			*p++ = in.s_ptr[i];
	}
	run((struct str){out, (size_t)(p - out)});
	free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), known = fuzz_until(&in, '\0');
	static const union sockaddr_any nobody;
	const struct cached_header *fl = NULL;
	const struct request *rq;
	struct parsed pd;

	prepare();
	parse(&pd, known);
	rq = &pd.pd_rq;
	if (pd.pd_good)
		fl = header_cache_remember(worker.wk_header_cache, rq,
		    pd.pd_block,
		    conf_site(&conf, rq->rq_texts.qt_host.s_ptr,
			rq->rq_texts.qt_host.s_len),
		    &nobody);
	conn.cn_known_header =
	    fl != NULL ? known_header(fl) : (struct known_header){0};
	if (fl != NULL && size <= 1024)
		compose(in, fl);
	parsed_free(&pd);
	return 0;
}
