/*
 * header_cache: see header_cache.h.
 */
#include <stdlib.h>

#include "lib/os/seed.h"
#include "server/content/header_cache.h"
#include "server/http/coding.h"

struct header_cache *
header_cache_create(void)
{
	struct header_cache *ft = calloc(1, sizeof(*ft));

	if (ft != NULL)
		seed_draw(&ft->ft_seed);
	return ft;
}

/*
 * Returns true if, of all fields, only Host and Accept-Encoding affect a cached response, and the
 * connection stays open.  Returns false for an empty Host, because SNI then determines the site.
 */
static bool
header_cache_plain(const struct request *rq)
{
	const struct conditional *pre = &rq->rq_pre;

	return rq->rq_method == METHOD_GET && rq->rq_keepalive &&
	       rq->rq_texts.qt_host.s_len > 0 && !rq->rq_http10 &&
	       rq->rq_body == 0 && !rq->rq_chunked &&
	       rq->rq_authorization.s_ptr == NULL &&
	       rq->rq_range.s_ptr == NULL && rq->rq_expect.s_ptr == NULL &&
	       rq->rq_want_digest.s_ptr == NULL && rq->rq_trace.s_ptr == NULL &&
	       pre->pre_if_match.s_ptr == NULL &&
	       pre->pre_if_none_match.s_ptr == NULL &&
	       pre->pre_if_modified_since.s_ptr == NULL &&
	       pre->pre_if_unmodified_since.s_ptr == NULL &&
	       pre->pre_if_range.s_ptr == NULL;
}

/*
 * Returns true if `s` is absent or inside the block.  A value joined from repeated fields is
 * outside.
 */
static bool
header_cache_inside(struct str s, struct str block)
{
	return s.s_ptr == NULL ||
	       (s.s_ptr >= block.s_ptr &&
		   s.s_ptr + s.s_len <= block.s_ptr + block.s_len);
}

static bool
header_cache_all_inside(struct request_texts texts, struct str block)
{
	for (size_t i = 1; i < REQUEST_TEXTS; i++)
		if (!header_cache_inside(*request_text(&texts, i), block))
			return false;
	return true;
}

static struct request_texts
header_cache_copied(const struct cached_header *fl, struct request_texts texts,
    struct str block)
{
	struct str *s;

	texts.qt_line = (struct str){NULL, 0};
	for (size_t i = 1; i < REQUEST_TEXTS; i++) {
		s = request_text(&texts, i);
		if (s->s_ptr != NULL)
			s->s_ptr = fl->fl_text + (s->s_ptr - block.s_ptr);
	}
	return texts;
}

const struct cached_header *
header_cache_remember(struct header_cache *ft, const struct request *rq,
    struct str block, const struct site *site, const union sockaddr_any *client)
{
	struct cached_header *fl;
	uint64_t hash;

	if (block.s_len > HEADER_CACHE_MAX || !header_cache_plain(rq) ||
	    !header_cache_all_inside(rq->rq_texts, block))
		return NULL;
	hash = hash_bytes(&ft->ft_seed, 0, block.s_ptr, block.s_len);
	fl = &ft->ft_slots[hash % HEADER_CACHE_SLOTS];
	if (fl->fl_len == block.s_len &&
	    header_cache_matches(fl, block.s_ptr, block.s_len))
		return fl;
	fl->fl_number = ++ft->ft_count;
	fl->fl_site = site;
	fl->fl_texts = header_cache_copied(fl, rq->rq_texts, block);
	fl->fl_client = *client;
	fl->fl_accept = coding_weights(rq->rq_accept_encoding);
	memcpy(fl->fl_text, block.s_ptr, block.s_len);
	fl->fl_len = block.s_len;
	return fl;
}
