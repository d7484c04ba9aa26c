/*
 * fast_path: see fast_path.h.
 */
#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"
#include "server/conn/fast_path.h"
#include "server/content/known.h"

#define TOGETHER 16 /* answers with one call */

/* ------------------------------------------------------------------ requests */

static bool
fast_path_match(
    const struct conn *c, struct str in, uint64_t now, struct known *kn)
{
	return known_find(&c->cn_worker->wk_service, &c->cn_known_header,
	    c->cn_secure, in, now, kn);
}

/* Those at the front of the input, until their answers are enough for one turn; not the last
 * one of max_requests: its answer says so. */
static int
fast_path_match_all(
    struct conn *c, uint64_t now, struct known matches[static TOGETHER])
{
	struct str in = {c->cn_in.b_data, c->cn_in.b_len};
	uint64_t bytes = c->cn_turn_sent;
	unsigned left = conn_requests_left(c);
	int n = 0, most = left > TOGETHER ? TOGETHER : (int)left - 1;

	while (n < most && bytes <= RESPONSE_SHARE &&
	       fast_path_match(c, in, now, &matches[n])) {
		in.s_ptr += matches[n].kn_len;
		in.s_len -= matches[n].kn_len;
		bytes += matches[n].kn_answer->ha_len;
		n++;
	}
	return n;
}

/* ------------------------------------------------------------------- answers */

static long
fast_path_send_all(struct conn *c, const struct known *matches, int n)
{
	struct iovec iov[TOGETHER];
	const struct cached_response *ha = matches[0].kn_answer;
	int i;

	if (n == 1)
		return transport_send(
		    &c->cn_transport, ha->ha_text, ha->ha_len);
	for (i = 0; i < n; i++) {
		ha = matches[i].kn_answer;
		iov[i] = (struct iovec){ha->ha_text, ha->ha_len};
	}
	return transport_sendv(&c->cn_transport, iov, n);
}

/* As exchange_client. */
static const struct sockaddr *
fast_path_client_of(const struct conn *c, const struct cached_header *fl)
{
	return c->cn_proxied && fl->fl_client.sa.sa_family != AF_UNSPEC
		   ? &fl->fl_client.sa
		   : &c->cn_peer.sa;
}

static void
fast_path_record(struct conn *c, const struct known *kn, uint64_t duration)
{
	const struct cached_response *ha = kn->kn_answer;
	const struct cached_header *fl = kn->kn_fields;
	struct log_record rec = {
	    .rec_peer = fast_path_client_of(c, fl),
	    .rec_time = c->cn_worker->wk_service.svc_time,
	    .rec_line = {kn->kn_begin, kn->kn_line},
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

/* Counts and logs those that went out whole; returns how many. */
static int
fast_path_account(struct conn *c, const struct known *matches, int n,
    uint64_t since, size_t *sent)
{
	struct stats *sta = &c->cn_worker->wk_service.svc_stats;
	const struct conf *conf = c->cn_worker->wk_service.svc_conf;
	bool log = log_access_on(c->cn_worker->wk_service.svc_log);
	uint64_t duration = log ? clock_now() - since : 0;
	size_t len, whole = 0;
	int i;

	for (i = 0; i < n; i++) {
		len = matches[i].kn_answer->ha_len;
		if (*sent - whole < len)
			break;
		whole += len;
		known_asked(&c->cn_worker->wk_service, &matches[i], since);
		if (log && conf_logs(conf, matches[i].kn_target, 200))
			fast_path_record(c, &matches[i], duration);
	}
	counter_add(&sta->sta_status[200 - STATS_STATUS], (uint64_t)i);
	counter_add(&sta->sta_hot, (uint64_t)i);
	counter_add(&sta->sta_sent, whole);
	c->cn_turn_sent += whole;
	c->cn_unseen += whole;
	c->cn_requests += (unsigned)i;
	*sent -= whole;
	return i;
}

/* The rest of an answer is sent as every other, and so is what the socket says. */
static enum fast_path
fast_path_go_on(
    struct conn *c, const struct known *kn, uint64_t since, size_t sent)
{
	const char *begin = c->cn_in.b_data, *block = begin + kn->kn_line + 2;
	const struct cached_header *fl = kn->kn_fields;
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
	rq->rq_line = (struct str){begin, kn->kn_line};
	c->cn_ex->ex_target.tgt_path =
	    (struct str){begin + STR("GET ").s_len, kn->kn_target.s_len};
	rq->rq_host = header_cache_slice(fl, fl->fl_host, block);
	rq->rq_referer = header_cache_slice(fl, fl->fl_referer, block);
	rq->rq_agent = header_cache_slice(fl, fl->fl_agent, block);
	c->cn_head = (struct head){.hd_len = kn->kn_len};
	c->cn_requests++;
	known_asked(&c->cn_worker->wk_service, kn, since);
	response_ready(c->cn_ex, kn->kn_answer, sent);
	counter_add(&c->cn_worker->wk_service.svc_stats.sta_hot, 1);
	return FAST_PATH_BEGUN;
}

enum fast_path
fast_path_run(struct conn *c)
{
	struct known matches[TOGETHER];
	size_t sent, gone = 0;
	uint64_t now;
	int i, n, whole;
	long result;

	if (c->cn_known_header.kh_fields == NULL ||
	    c->cn_worker->wk_service.svc_hot == NULL)
		return FAST_PATH_NONE;
	now = clock_now();
	n = fast_path_match_all(c, now, matches);
	if (n == 0)
		return FAST_PATH_NONE;
	result = fast_path_send_all(c, matches, n);
	sent = result > 0 ? (size_t)result : 0;
	whole = fast_path_account(c, matches, n, now, &sent);
	for (i = 0; i < whole; i++)
		gone += matches[i].kn_len;
	buf_consume(&c->cn_in, gone);
	if (whole == n)
		return FAST_PATH_SENT;
	if (whole > 0 && sent == 0)
		return FAST_PATH_SENT;
	return fast_path_go_on(c, &matches[whole], now, sent);
}
