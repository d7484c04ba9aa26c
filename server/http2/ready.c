/*
 * ready: sends cached responses to known requests (known.h), without an exchange.  A cached head is
 * split into fields once, for all clients.
 */
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/account.h"
#include "server/content/known.h"
#include "server/http/date.h"
#include "server/http/head_write.h"
#include "server/http2/hold.h"
#include "server/http2/stream.h"
#include "server/log/keep.h"
#include "server/tls/session.h"
#include "server/worker/worker.h"

/*
 * A cached response head as an array of fields.  libnghttp2 does not copy the fields.  The cache
 * frees the array together with the cached response.
 */
struct form {
	size_t fm_n;
	time_t fm_date;
	char *fm_text;
	nghttp2_nv fm_fields[]; /* the text of the head follows */
};

static struct service *
h2_ready_service_of(const struct h2_stream *sm)
{
	return &sm->sm_session->h2_owner.ho_worker->wk_service;
}

static size_t
h2_ready_count_lines(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static struct form *
h2_ready_make_form(struct cached_response *rsp, uint64_t now)
{
	size_t most = h2_ready_count_lines(rsp->rsp_text, rsp->rsp_head),
	       size = sizeof(struct form) + most * sizeof(nghttp2_nv) +
		      rsp->rsp_head;
	struct form *fm = response_cache_form(rsp, size, now);

	if (fm == NULL)
		return NULL;
	fm->fm_text = (char *)&fm->fm_fields[most];
	fm->fm_date = rsp->rsp_date;
	memcpy(fm->fm_text, rsp->rsp_text, rsp->rsp_head);
	fm->fm_n =
	    h2_head_fields(fm->fm_text, rsp->rsp_head, fm->fm_fields, most);
	for (size_t i = 0; i < fm->fm_n; i++)
		fm->fm_fields[i].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME |
					 NGHTTP2_NV_FLAG_NO_COPY_VALUE;
	return fm;
}

/*
 * Returns the form of a cached response, with the current date.  Returns NULL if the cache has no
 * memory for a form.
 */
static struct form *
h2_ready_form_of(struct cached_response *rsp, uint64_t now)
{
	struct form *fm = rsp->rsp_form != NULL ? rsp->rsp_form
						: h2_ready_make_form(rsp, now);

	if (fm == NULL || fm->fm_date == rsp->rsp_date)
		return fm;
	fm->fm_date = rsp->rsp_date;
	memcpy(fm->fm_text + HEAD_WRITE_DATE, rsp->rsp_text + HEAD_WRITE_DATE,
	    DATE_LEN);
	return fm;
}

static size_t
h2_ready_body_len(const struct cached_response *rsp)
{
	return rsp->rsp_len - rsp->rsp_head;
}

/*
 * Finds the cached response to a request.  Returns false if there is none, or if a proxy states the
 * client's address, which may differ for each request.
 */
static bool
h2_ready_find(const struct h2_stream *sm, uint64_t now, struct known *kn)
{
	const struct h2 *h2 = sm->sm_session;
	const struct h2_owner *ho = &h2->h2_owner;
	const struct buf *text = &sm->sm_head.hh_text;

	if (h2->h2_known.kh_fields == NULL ||
	    h2_ready_service_of(sm)->svc_responses == NULL ||
	    sm->sm_head.hh_status != 0)
		return false;
	return known_find(h2_ready_service_of(sm), &h2->h2_known,
		   ho->ho_tls != NULL, (struct str){text->b_data, text->b_len},
		   STR(H2_HEAD_VERSION), now, kn) &&
	       kn->kn_len == text->b_len &&
	       !(ho->ho_proxied &&
		   kn->kn_fields->fl_client.sa.sa_family != AF_UNSPEC);
}

/*
 * If the head is large, frees it and keeps only the texts for the log, because the client may be
 * slow.
 */
static void
h2_ready_settle(struct h2_stream *sm)
{
	struct h2_ready *rd = &sm->sm_ready;
	struct buf kept = {0};

	if (sm->sm_heavy == 0 ||
	    !log_keep(&rd->rd_texts, h2_hold_room(sm), &kept))
		return;
	h2_hold_free(sm);
	h2_hold_keep(sm, kept.b_cap);
	sm->sm_head.hh_text = kept;
}

static void
h2_ready_keep_for_log(struct h2_stream *sm, const struct known *kn)
{
	sm->sm_ready.rd_texts =
	    header_cache_texts(kn->kn_fields, kn->kn_begin, kn->kn_line);
	h2_ready_settle(sm);
}

const nghttp2_nv *
h2_ready_begin(struct h2_stream *sm, size_t *n, bool *body)
{
	struct service *svc = h2_ready_service_of(sm);
	uint64_t now = clock_now();
	struct form *fm;
	struct known kn;

	if (!h2_ready_find(sm, now, &kn))
		return NULL;
	fm = h2_ready_form_of(kn.kn_response, now);
	if (fm == NULL)
		return NULL;
	*n = fm->fm_n;
	*body = h2_ready_body_len(kn.kn_response) > 0;
	known_asked(svc, &kn, now);
	response_cache_ref(kn.kn_response);
	sm->sm_ready = (struct h2_ready){.rd_response = kn.kn_response,
	    .rd_since = now,
	    .rd_time = svc->svc_time};
	if (log_access_on(svc->svc_log) &&
	    conf_logs(svc->svc_conf, kn.kn_target, 200))
		h2_ready_keep_for_log(sm, &kn);
	else
		h2_hold_free(sm);
	counter_add(&svc->svc_stats.sta_sent, kn.kn_response->rsp_head);
	counter_add(&svc->svc_stats.sta_cached, 1);
	return fm->fm_fields;
}

ssize_t
h2_ready_read(struct h2_stream *sm, uint32_t *flags)
{
	struct h2_ready *rd = &sm->sm_ready;
	const struct cached_response *rsp = rd->rd_response;
	size_t left = h2_ready_body_len(rsp) - rd->rd_at,
	       n = left < sm->sm_room ? left : sm->sm_room;

	memcpy(sm->sm_to, rsp->rsp_text + rsp->rsp_head + rd->rd_at, n);
	rd->rd_at += n;
	counter_add(&h2_ready_service_of(sm)->svc_stats.sta_sent, n);
	if (n == left) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		h2_ready_end(sm);
	}
	return (ssize_t)n;
}

void
h2_ready_end(struct h2_stream *sm)
{
	struct h2_ready *rd = &sm->sm_ready;
	struct service *svc = h2_ready_service_of(sm);
	const struct h2_owner *ho = &sm->sm_session->h2_owner;

	if (rd->rd_response == NULL)
		return;
	account_response(
	    svc, &(struct account){
		     .ac_peer = ho->ho_peer,
		     .ac_tls = ho->ho_tls == NULL ? NULL : &ho->ho_tls->tl_log,
		     .ac_texts = &rd->rd_texts,
		     .ac_time = rd->rd_time,
		     .ac_since = rd->rd_since,
		     .ac_status = 200,
		     .ac_head = rd->rd_response->rsp_head,
		     .ac_sent = rd->rd_response->rsp_head + rd->rd_at,
		     .ac_logged = rd->rd_texts.qt_line.s_ptr != NULL,
		 });
	response_cache_unref(&rd->rd_response);
	h2_hold_free(sm);
}
