/*
 * server/content/header_cache.h against the long way: a request that the short way takes for a known
 * one is what check and parser would have made of it.
 * Input: "TARGET\n", the known request, a NUL, what comes then.  The latter begins with
 * "GET TARGET HTTP/1.1", then the known block follows, as far as "\1" is for it.
 */
#include "long_way.h"
#include "server/content/header_cache.h"

/* Only its address matters. */
static const char place;
static const struct site *const site =
    (const struct site *)(const void *)&place;

/* What a 200 with the whole body, on a connection that stays, is not for. */
static void
check_plain(const struct request *rq)
{
	const struct conditional *pre = &rq->rq_pre;

	CHECK(rq->rq_method == METHOD_GET && rq->rq_keepalive);
	CHECK(!rq->rq_http10 && rq->rq_body == 0 && !rq->rq_chunked);
	CHECK(rq->rq_range.s_ptr == NULL && rq->rq_expect.s_ptr == NULL);
	CHECK(pre->pre_if_match.s_ptr == NULL);
	CHECK(pre->pre_if_none_match.s_ptr == NULL);
	CHECK(pre->pre_if_modified_since.s_ptr == NULL);
	CHECK(pre->pre_if_unmodified_since.s_ptr == NULL);
	CHECK(pre->pre_if_range.s_ptr == NULL);
}

/* The block is taken for the known one: it is read the same. */
static void
check_known(
    const struct cached_header *fl, const struct parsed *pd, size_t line)
{
	const struct request *rq = &pd->pd_rq;
	struct request_texts parsed = rq->rq_texts,
			     known = header_cache_texts(
				 fl, pd->pd_block.s_ptr - line, line - 2);

	CHECK(pd->pd_good);
	CHECK(pd->pd_head.hd_len == line + fl->fl_len);
	CHECK(fl->fl_len == pd->pd_block.s_len && fl->fl_site == site);
	check_plain(rq);
	for (size_t i = 0; i < REQUEST_TEXTS; i++) {
		const struct str *a = request_text(&known, i),
				 *b = request_text(&parsed, i);

		CHECK(a->s_ptr == b->s_ptr && a->s_len == b->s_len);
	}
}

/* "GET TARGET HTTP/1.1\r\n", and what follows with the block in place of \1. */
static struct str
compose(struct str target, struct str text, struct str block, size_t *line)
{
	const char *mark = memchr(text.s_ptr, 1, text.s_len);
	char *out = malloc(target.s_len + text.s_len + block.s_len + 16), *p;
	size_t before = mark == NULL ? text.s_len : (size_t)(mark - text.s_ptr);

	CHECK(out != NULL);
	p = stpcpy(out, "GET ");
	p = mempcpy(p, target.s_ptr, target.s_len);
	p = stpcpy(p, " HTTP/1.1\r\n");
	*line = (size_t)(p - out);
	p = mempcpy(p, text.s_ptr, before);
	if (mark != NULL) {
		p = mempcpy(p, block.s_ptr, block.s_len);
		p = mempcpy(p, mark + 1, text.s_len - before - 1);
	}
	return (struct str){out, (size_t)(p - out)};
}

/* As the connection's own: one whose target was parsed before. */
static bool
target_good(struct str target)
{
	char *head;
	struct parsed pd;
	bool good;
	int len = asprintf(&head, "GET %.*s HTTP/1.1\r\nHost: h\r\n\r\n",
	    (int)target.s_len, target.s_ptr);

	CHECK(len != -1);
	parse(&pd, (struct str){head, (size_t)len});
	good = pd.pd_good && str_eq(pd.pd_rq.rq_target, target);
	parsed_free(&pd);
	free(head);
	return good;
}

static void
check_next(const struct cached_header *fl, struct str target, struct str text)
{
	struct str block = {fl->fl_text, fl->fl_len}, next;
	struct parsed pd;
	size_t line;

	next = compose(target, text, block, &line);
	parse(&pd, next);
	if (header_cache_matches(fl, next.s_ptr + line, next.s_len - line))
		check_known(fl, &pd, line);
	else if (pd.pd_good)
		CHECK(!str_eq(pd.pd_block, block));
	parsed_free(&pd);
	free((char *)(uintptr_t)next.s_ptr);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), target = fuzz_line(&in);
	struct str first = fuzz_until(&in, '\0');
	static const union sockaddr_any nobody;
	static struct header_cache *table;
	const struct cached_header *fl = NULL;
	struct parsed pd;

	if (table == NULL)
		table = header_cache_create();
	CHECK(table != NULL);
	parse(&pd, first);
	if (pd.pd_good)
		fl = header_cache_remember(
		    table, &pd.pd_rq, pd.pd_block, site, &nobody);
	if (fl != NULL) {
		check_plain(&pd.pd_rq);
		CHECK(header_cache_matches(
		    fl, pd.pd_block.s_ptr, pd.pd_block.s_len));
		if (target_good(target))
			check_next(fl, target, in);
	}
	parsed_free(&pd);
	return 0;
}
