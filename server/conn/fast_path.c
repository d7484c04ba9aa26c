/*
 * fast_path: see fast_path.h.
 */
#include <errno.h>

#include "lib/file/residency.h"
#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"
#include "server/conn/fast_path.h"
#include "server/content/account.h"
#include "server/content/known.h"

#define TOGETHER 16		    /* responses per system call */
#define COPIED	 ((size_t)32 << 10) /* bytes of a body that is always copied */

/* ------------------------------------------------------------------ requests */

static bool
fast_path_match(
    const struct conn *c, struct str in, uint64_t now, struct known *kn)
{
	return known_find(&c->cn_worker->wk_service, &c->cn_known_header,
	    c->cn_secure, in, STR(" HTTP/1.1\r\n"), now, kn);
}

/*
 * Matches known requests at the front of the input, until their responses fill a time slice.
 * Leaves the last request of max_requests to the slow path, which sends "Connection: close".
 */
static int
fast_path_match_all(
    struct conn *c, uint64_t now, struct known matches[static TOGETHER])
{
	struct str in = {c->cn_in.b_data, c->cn_in.b_len};
	uint64_t bytes = c->cn_slice_sent;
	unsigned left = conn_requests_left(c);
	int n = 0, most = left > TOGETHER ? TOGETHER : (int)left - 1;

	while (n < most && bytes <= RESPONSE_SLICE &&
	       fast_path_match(c, in, now, &matches[n])) {
		in.s_ptr += matches[n].kn_len;
		in.s_len -= matches[n].kn_len;
		bytes += matches[n].kn_response->rsp_len;
		n++;
	}
	return n;
}

/* -------------------------------------------------------------- responses */

/* A large body is sent from the page cache, if it is resident there: sendfile(2) then costs less than a copy. */
static long
fast_path_send_one(struct conn *c, const struct cached_response *rsp)
{
	struct transport *tr = &c->cn_transport;
	size_t sent;
	int error;

	if (tr->tr_sink == NULL && rsp->rsp_file != NULL &&
	    rsp->rsp_len - rsp->rsp_head > COPIED) {
		error = residency_send(rsp->rsp_file, tr->tr_fd, rsp->rsp_text,
		    rsp->rsp_head, &sent);
		if (error != -EBUSY || sent > 0)
			return sent > 0 ? (long)sent : error;
	}
	return transport_send(tr, rsp->rsp_text, rsp->rsp_len);
}

static long
fast_path_send_all(struct conn *c, const struct known *matches, int n)
{
	struct iovec iov[TOGETHER];
	const struct cached_response *rsp;
	int i;

	if (n == 1)
		return fast_path_send_one(c, matches[0].kn_response);
	for (i = 0; i < n; i++) {
		rsp = matches[i].kn_response;
		iov[i] = (struct iovec){rsp->rsp_text, rsp->rsp_len};
	}
	return transport_sendv(&c->cn_transport, iov, n);
}

/* Returns the client's address for the log, as exchange_client does. */
static const struct sockaddr *
fast_path_client_of(const struct conn *c, const struct cached_header *fl)
{
	return c->cn_proxied && fl->fl_client.sa.sa_family != AF_UNSPEC
		   ? &fl->fl_client.sa
		   : &c->cn_peer.sa;
}

static void
fast_path_account_one(
    struct conn *c, const struct known *kn, uint64_t since, bool log)
{
	struct service *svc = &c->cn_worker->wk_service;
	const struct cached_response *rsp = kn->kn_response;
	struct account ac = {.ac_status = 200};
	struct request_texts texts;

	known_asked(svc, kn, since);
	if (log && conf_logs(svc->svc_conf, kn->kn_target, 200)) {
		texts = header_cache_texts(
		    kn->kn_fields, kn->kn_begin, kn->kn_line);
		ac = (struct account){
		    .ac_peer = fast_path_client_of(c, kn->kn_fields),
		    .ac_tls = conn_log_tls(c),
		    .ac_texts = &texts,
		    .ac_time = svc->svc_time,
		    .ac_since = since,
		    .ac_status = 200,
		    .ac_head = rsp->rsp_head,
		    .ac_sent = rsp->rsp_len,
		    .ac_logged = true,
		};
	}
	account_response(svc, &ac);
}

/*
 * Counts and logs each response that was sent completely, and subtracts its bytes from *sent.
 * Returns the number of these responses.
 */
static int
fast_path_account(struct conn *c, const struct known *matches, int n,
    uint64_t since, size_t *sent)
{
	struct stats *sta = &c->cn_worker->wk_service.svc_stats;
	bool log = log_access_on(c->cn_worker->wk_service.svc_log);
	size_t len, whole = 0;
	int i;

	for (i = 0; i < n; i++) {
		len = matches[i].kn_response->rsp_len;
		if (*sent - whole < len)
			break;
		whole += len;
		fast_path_account_one(c, &matches[i], since, log);
	}
	counter_add(&sta->sta_cached, (uint64_t)i);
	counter_add(&sta->sta_sent, whole);
	c->cn_slice_sent += whole;
	c->cn_unseen += whole;
	c->cn_requests += (unsigned)i;
	*sent -= whole;
	return i;
}

/*
 * Sends the remainder, and reports socket errors, through the normal response path.  Corrects
 * kn_target, because buf_consume may have moved the head.
 */
static enum fast_path
fast_path_go_on(struct conn *c, struct known *kn, uint64_t since, size_t sent)
{
	const char *begin = c->cn_in.b_data;
	const struct cached_header *fl = kn->kn_fields;
	struct request *rq;

	if (!conn_begin(c))
		return FAST_PATH_FAILED;
	c->cn_ex->ex_since = since;
	/* Copies the address, because the cache may reuse the block that holds the address. */
	if (c->cn_proxied)
		exchange_asked_for(c->cn_ex, &fl->fl_client);
	rq = &c->cn_ex->ex_request;
	rq->rq_method = METHOD_GET;
	rq->rq_keepalive = true;
	rq->rq_texts = header_cache_texts(fl, begin, kn->kn_line);
	kn->kn_target.s_ptr = begin + STR("GET ").s_len;
	c->cn_ex->ex_target.tgt_path = kn->kn_target;
	c->cn_head = (struct head){.hd_len = kn->kn_len};
	c->cn_requests++;
	known_asked(&c->cn_worker->wk_service, kn, since);
	response_ready(c->cn_ex, kn->kn_response, sent);
	counter_add(&c->cn_worker->wk_service.svc_stats.sta_cached, 1);
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
	    c->cn_worker->wk_service.svc_responses == NULL)
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
	/* If the TLS session holds records of the next response, that response has begun. */
	if (whole > 0 && sent == 0 && !transport_holds(&c->cn_transport))
		return FAST_PATH_SENT;
	return fast_path_go_on(c, &matches[whole], now, sent);
}
