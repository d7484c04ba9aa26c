/*
 * known: see known.h.
 */
#include "server/content/exchange.h"
#include "server/content/known.h"

void
known_learn(struct header_cache *cache, struct known_header *known,
    const struct exchange *ex, struct str head, bool proxied)
{
	const struct request *rq = &ex->ex_request;
	const struct conf *conf = ex->ex_service->svc_conf;
	size_t line = rq->rq_texts.qt_line.s_len + 2;
	struct str block = {head.s_ptr + line, head.s_len - line};
	union sockaddr_any client = {.sa = {.sa_family = AF_UNSPEC}};
	const struct cached_header *fl;

	if (cache == NULL ||
	    known_header_matches(known, block.s_ptr, block.s_len))
		return;
	/* Stores the client too, because a trusted proxy may send this block again. */
	if (proxied)
		client = ex->ex_client;
	else if (conf->conf_client_address != FORWARDED_OFF)
		(void)exchange_named(conf, rq, &client);
	fl = header_cache_remember(cache, rq, block,
	    conf_site(
		conf, rq->rq_texts.qt_host.s_ptr, rq->rq_texts.qt_host.s_len),
	    &client);
	if (fl != NULL)
		*known = known_header(fl);
}
