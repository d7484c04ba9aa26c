/*
 * fast_path: see fast_path.h.
 */
#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"
#include "server/conn/fast_path.h"
#include "server/content/popular.h"

#define TOGETHER 16 /* answers with one call */

struct match {
	struct cached_response *m_answer;
	const struct cached_header *m_fields;
	const char *m_begin; /* of the head */
	size_t m_line;	     /* bytes of its first line, without CRLF */
	size_t m_len;	     /* bytes of all of it */
	struct str m_target; /* its path: it has no more */
};

/* -------------------------------------------------------------- what is known */

void
fast_path_learn(struct conn *c, struct str head)
{
	const struct request *rq = &c->cn_ex->ex_request;
	const struct conf *conf = c->cn_worker->wk_service.svc_conf;
	size_t line = rq->rq_line.s_len + 2;
	struct str block = {head.s_ptr + line, head.s_len - line};
	union sockaddr_any client = {.sa = {.sa_family = AF_UNSPEC}};
	const struct cached_header *fl;

	if (c->cn_worker->wk_header_cache == NULL ||
	    (c->cn_known_header != NULL &&
		cached_header_matches(
		    c->cn_known_header, block.s_ptr, block.s_len)))
		return;
	/* Another connection, of a trusted proxy, may send the same. */
	if (c->cn_proxied)
		client = c->cn_ex->ex_client;
	else if (conf->conf_client_address != FORWARDED_OFF)
		(void)exchange_named(conf, rq, &client);
	fl = header_cache_remember(c->cn_worker->wk_header_cache, rq, block,
	    conf_site(conf, rq->rq_host.s_ptr, rq->rq_host.s_len), &client);
	if (fl != NULL)
		c->cn_known_header = fl;
}

/* ------------------------------------------------------------------ requests */

static bool
take_target(struct str *s, struct str *target)
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

/* Whether a request that is known is at the front, with an answer that is ready. */
static bool
match(struct conn *c, struct str in, uint64_t now, struct match *m)
{
	struct worker *wk = c->cn_worker;
	struct str target;

	*m =
	    (struct match){.m_begin = in.s_ptr, .m_fields = c->cn_known_header};
	if (!str_skip(&in, STR("GET ")) || !take_target(&in, &target) ||
	    !str_skip(&in, STR(" HTTP/1.1\r\n")) ||
	    !cached_header_matches(m->m_fields, in.s_ptr, in.s_len))
		return false;
	m->m_line = (size_t)(in.s_ptr - m->m_begin) - 2;
	m->m_len = m->m_line + 2 + m->m_fields->fl_len;
	if (m->m_len > wk->wk_service.svc_conf->conf_max_head)
		return false;
	m->m_answer = response_cache_find(wk->wk_service.svc_hot,
	    (struct cached_key){m->m_fields->fl_site, target,
		m->m_fields->fl_accept |
		    (c->cn_secure ? RESPONSE_CACHE_TLS : 0),
		false},
	    now, service_time(&wk->wk_service), wk->wk_service.svc_date);
	m->m_target = target;
	return m->m_answer != NULL;
}

/* Those at the front of the input, until their answers are enough for one turn; not the last
 * one of max_requests: its answer says so. */
static int
match_all(struct conn *c, uint64_t now, struct match matches[static TOGETHER])
{
	struct str in = {c->cn_in.b_data, c->cn_in.b_len};
	uint64_t bytes = c->cn_turn_sent;
	unsigned left = conn_requests_left(c);
	int n = 0, most = left > TOGETHER ? TOGETHER : (int)left - 1;

	while (n < most && bytes <= RESPONSE_SHARE &&
	       match(c, in, now, &matches[n])) {
		in.s_ptr += matches[n].m_len;
		in.s_len -= matches[n].m_len;
		bytes += matches[n].m_answer->ha_len;
		n++;
	}
	return n;
}

/* ------------------------------------------------------------------- answers */

static long
send_all(struct conn *c, const struct match *matches, int n)
{
	struct iovec iov[TOGETHER];
	const struct cached_response *ha = matches[0].m_answer;
	int i;

	if (n == 1)
		return transport_send(
		    &c->cn_transport, ha->ha_text, ha->ha_len);
	for (i = 0; i < n; i++) {
		ha = matches[i].m_answer;
		iov[i] = (struct iovec){ha->ha_text, ha->ha_len};
	}
	return transport_sendv(&c->cn_transport, iov, n);
}

/* As exchange_client. */
static const struct sockaddr *
client_of(const struct conn *c, const struct cached_header *fl)
{
	return c->cn_proxied && fl->fl_client.sa.sa_family != AF_UNSPEC
		   ? &fl->fl_client.sa
		   : &c->cn_peer.sa;
}

static void
record(struct conn *c, const struct match *m, uint64_t duration)
{
	const struct cached_response *ha = m->m_answer;
	const struct cached_header *fl = m->m_fields;
	struct log_record rec = {
	    .rec_peer = client_of(c, fl),
	    .rec_time = c->cn_worker->wk_service.svc_time,
	    .rec_line = {m->m_begin, m->m_line},
	    .rec_status = 200,
	    .rec_body = ha->ha_len - ha->ha_head,
	    .rec_bytes = ha->ha_len,
	    .rec_referer = fl->fl_referer,
	    .rec_agent = fl->fl_agent,
	    .rec_host = fl->fl_host,
	    .rec_duration = duration,
	    .rec_tls = conn_log_tls(c),
	};

	log_access(c->cn_worker->wk_service.svc_log, &rec);
}

static void
count(struct conn *c, const struct match *m, uint64_t now)
{
	popular_asked(c->cn_worker->wk_service.svc_popular,
	    m->m_answer->ha_site, m->m_target, m->m_answer->ha_hash, now);
}

/* Counts and logs those that went out whole; returns how many. */
static int
account(struct conn *c, const struct match *matches, int n, uint64_t since,
    size_t *sent)
{
	struct stats *sta = &c->cn_worker->wk_service.svc_stats;
	const struct conf *conf = c->cn_worker->wk_service.svc_conf;
	const struct popular *popular = c->cn_worker->wk_service.svc_popular;
	bool log = log_access_on(c->cn_worker->wk_service.svc_log);
	uint64_t duration = log ? clock_now() - since : 0;
	size_t len, whole = 0;
	int i;

	for (i = 0; i < n; i++) {
		len = matches[i].m_answer->ha_len;
		if (*sent - whole < len)
			break;
		whole += len;
		if (popular != NULL)
			count(c, &matches[i], since);
		if (log && conf_logs(conf, matches[i].m_target, 200))
			record(c, &matches[i], duration);
	}
	stat_add(&sta->sta_status[200 - STATS_STATUS], (uint64_t)i);
	stat_add(&sta->sta_hot, (uint64_t)i);
	stat_add(&sta->sta_sent, whole);
	c->cn_turn_sent += whole;
	c->cn_unseen += whole;
	c->cn_requests += (unsigned)i;
	*sent -= whole;
	return i;
}

/* The rest of an answer is sent as every other, and so is what the socket says. */
static enum fast_path
go_on(struct conn *c, const struct match *m, uint64_t since, size_t sent)
{
	const char *begin = c->cn_in.b_data, *block = begin + m->m_line + 2;
	const struct cached_header *fl = m->m_fields;
	struct request *rq;

	if (!conn_begin(c))
		return FAST_PATH_FAILED;
	c->cn_ex->ex_since = since;
	/* A copy: another block may take the place of this one. */
	if (c->cn_proxied)
		exchange_asked_for(c->cn_ex, &fl->fl_client);
	rq = &c->cn_ex->ex_request;
	rq->rq_method = METHOD_GET;
	rq->rq_keepalive = true;
	rq->rq_line = (struct str){begin, m->m_line};
	c->cn_ex->ex_target.tgt_path =
	    (struct str){begin + STR("GET ").s_len, m->m_target.s_len};
	rq->rq_host = cached_header_slice(fl, fl->fl_host, block);
	rq->rq_referer = cached_header_slice(fl, fl->fl_referer, block);
	rq->rq_agent = cached_header_slice(fl, fl->fl_agent, block);
	c->cn_head = (struct head){.hd_len = m->m_len};
	c->cn_requests++;
	if (c->cn_worker->wk_service.svc_popular != NULL)
		count(c, m, since);
	respond_ready(c->cn_ex, m->m_answer, sent);
	stat_add(&c->cn_worker->wk_service.svc_stats.sta_hot, 1);
	return FAST_PATH_BEGUN;
}

enum fast_path
fast_path_run(struct conn *c)
{
	struct match matches[TOGETHER];
	size_t sent, gone = 0;
	uint64_t now;
	int i, n, whole;
	long result;

	if (c->cn_known_header == NULL ||
	    c->cn_worker->wk_service.svc_hot == NULL)
		return FAST_PATH_NONE;
	now = clock_now();
	n = match_all(c, now, matches);
	if (n == 0)
		return FAST_PATH_NONE;
	result = send_all(c, matches, n);
	sent = result > 0 ? (size_t)result : 0;
	whole = account(c, matches, n, now, &sent);
	for (i = 0; i < whole; i++)
		gone += matches[i].m_len;
	buf_consume(&c->cn_in, gone);
	if (whole == n)
		return FAST_PATH_SENT;
	if (whole > 0 && sent == 0)
		return FAST_PATH_SENT;
	return go_on(c, &matches[whole], now, sent);
}
