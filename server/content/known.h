/*
 * known: finds requests that need neither parsing nor a lookup, because their header block was
 * parsed before (header_cache.h) and the response to their target is cached (response_cache.h).
 * Runs on the worker's thread.
 */
#ifndef SERVER_CONTENT_KNOWN_H
#define SERVER_CONTENT_KNOWN_H

#include "server/content/header_cache.h"
#include "server/content/popular.h"
#include "server/content/response_cache.h"
#include "server/content/service.h"

struct exchange;

struct known {
	struct cached_response *kn_response; /* borrowed: no reference */
	const struct cached_header *kn_fields;
	const char *kn_begin; /* start of the head */
	size_t kn_line;	      /* bytes of the request line, without CRLF */
	size_t kn_len;	      /* bytes of the head */
	struct str kn_target; /* request target, a path without a query */
};

/*
 * Stores the header block of a request in the cache, and sets the known_header of its connection.
 * Does nothing if the cache is NULL.  Call if the response is cached.  `head` is the whole head.
 * `proxied` is true if a trusted proxy sent the request.
 */
void known_learn(struct header_cache *, struct known_header *,
    const struct exchange *, struct str head, bool proxied);

static inline bool
known_take_target(struct str *s, struct str *target)
{
	size_t most =
	    s->s_len < RESPONSE_CACHE_TARGET ? s->s_len : RESPONSE_CACHE_TARGET;
	const char *end = memchr(s->s_ptr, ' ', most);

	if (end == NULL)
		return false;
	*target = (struct str){s->s_ptr, (size_t)(end - s->s_ptr)};
	s->s_ptr += target->s_len;
	s->s_len -= target->s_len;
	return true;
}

/*
 * Looks for a known request at the start of `in`, and fills in `kn`.  Returns false if there is
 * none.  `version` is the text that must follow the target in the request line.  `now` is in
 * microseconds.  The function is inline for speed.
 */
static inline bool
known_find(struct service *svc, const struct known_header *known, bool tls,
    struct str in, struct str version, uint64_t now, struct known *kn)
{
	const struct cached_header *fl = known->kh_fields;
	const char *begin = in.s_ptr;
	struct str target;
	size_t line, len;

	if (!str_skip(&in, STR("GET ")) || !known_take_target(&in, &target) ||
	    !str_skip(&in, version) ||
	    !known_header_matches(known, in.s_ptr, in.s_len))
		return false;
	line = (size_t)(in.s_ptr - begin);
	len = line + fl->fl_len;
	if (len > svc->svc_conf->conf_max_head)
		return false;
	*kn = (struct known){
	    .kn_response = response_cache_find(svc->svc_responses,
		(struct cached_key){fl->fl_site, target,
		    fl->fl_accept | (tls ? RESPONSE_CACHE_TLS : 0), false},
		now, service_time(svc), svc->svc_date),
	    .kn_fields = fl,
	    .kn_begin = begin,
	    .kn_line = line - 2,
	    .kn_len = len,
	    .kn_target = target,
	};
	return kn->kn_response != NULL;
}

/* Counts a known request in svc_popular, unless svc_popular is NULL. */
static inline void
known_asked(struct service *svc, const struct known *kn, uint64_t now)
{
	if (svc->svc_popular != NULL)
		popular_asked(svc->svc_popular, kn->kn_response->rsp_site,
		    kn->kn_target, kn->kn_response->rsp_hash, now);
}

#endif
