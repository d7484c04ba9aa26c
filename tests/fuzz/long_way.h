/*
 * long_way: a request at the front of the input, checked and parsed; blank lines before
 * it are none of the short way's business.
 */
#ifndef TESTS_LONG_WAY_H
#define TESTS_LONG_WAY_H

#include "fuzz.h"
#include "server/http/head.h"
#include "server/http/request.h"

#define MAX_BODY 1000

static const struct head_limits limits = {16384, 8192, 100};

struct parsed {
	struct buf_list pd_bufs;
	struct request pd_rq;
	struct head pd_head;
	struct str pd_block; /* behind the first line */
	bool pd_good;
};

static inline void
parse(struct parsed *pd, struct str in)
{
	struct str head = {in.s_ptr, 0};

	*pd = (struct parsed){0};
	if (in.s_len == 0 ||
	    head_check(in.s_ptr, in.s_len, &limits, &pd->pd_head) != 0 ||
	    pd->pd_head.hd_skip > 0)
		return;
	head.s_len = pd->pd_head.hd_len;
	pd->pd_good =
	    request_parse(&pd->pd_rq, head, MAX_BODY, &pd->pd_bufs) == 0;
	pd->pd_block.s_ptr = head.s_ptr + pd->pd_rq.rq_texts.qt_line.s_len + 2;
	pd->pd_block.s_len = head.s_len - pd->pd_rq.rq_texts.qt_line.s_len - 2;
}

static inline void
parsed_free(struct parsed *pd)
{
	buf_release(&pd->pd_rq.rq_joined, &pd->pd_bufs);
	buf_list_destroy(&pd->pd_bufs);
}

#endif
