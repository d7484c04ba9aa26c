/*
 * fields: see fields.h.
 */
#include <stdlib.h>

#include "fields.h"

struct fields *
fields_create(void)
{
	return calloc(FIELDS_SLOTS, sizeof(struct fields));
}

/* Nothing but Host decides what the answer is, and the connection stays. */
static bool
plain(const struct request *rq)
{
	const struct precond *pre = &rq->rq_pre;

	return rq->rq_method == METHOD_GET && rq->rq_keepalive &&
	       !rq->rq_http10 && rq->rq_body == 0 &&
	       rq->rq_range.s_ptr == NULL && rq->rq_expect.s_ptr == NULL &&
	       pre->pre_if_match.s_ptr == NULL &&
	       pre->pre_if_none_match.s_ptr == NULL &&
	       pre->pre_if_modified_since.s_ptr == NULL &&
	       pre->pre_if_unmodified_since.s_ptr == NULL &&
	       pre->pre_if_range.s_ptr == NULL;
}

/* A field that came twice has a value that is not in the block. */
static bool
take_slice(struct fields *fl, struct str *to, struct str s, struct str block)
{
	*to = (struct str){NULL, 0};
	if (s.s_ptr == NULL)
		return true;
	if (s.s_ptr < block.s_ptr ||
	    s.s_ptr + s.s_len > block.s_ptr + block.s_len)
		return false;
	*to = (struct str){fl->fl_text + (s.s_ptr - block.s_ptr), s.s_len};
	return true;
}

const struct fields *
fields_remember(struct fields *table, const struct request *rq,
    struct str block, const struct site *site)
{
	struct fields *fl;

	if (block.s_len > FIELDS_MAX || !plain(rq))
		return NULL;
	fl = &table[str_hash(block) % FIELDS_SLOTS];
	if (fl->fl_len == block.s_len &&
	    fields_match(fl, block.s_ptr, block.s_len))
		return fl;
	fl->fl_len = 0;
	if (!take_slice(fl, &fl->fl_host, rq->rq_host, block) ||
	    !take_slice(fl, &fl->fl_referer, rq->rq_referer, block) ||
	    !take_slice(fl, &fl->fl_agent, rq->rq_agent, block))
		return NULL;
	fl->fl_site = site;
	memcpy(fl->fl_text, block.s_ptr, block.s_len);
	fl->fl_len = block.s_len;
	return fl;
}
