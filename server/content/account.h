/*
 * account: what is counted and logged when a response has ended, of whatever kind: from memory or a
 * file, in HTTP/1 or HTTP/2.  Called once for each, by the worker's thread; a log field that is added
 * to struct log_record is filled in here for all of them.
 */
#ifndef SERVER_CONTENT_ACCOUNT_H
#define SERVER_CONTENT_ACCOUNT_H

#include "lib/util/clock.h"
#include "server/content/service.h"
#include "server/log/log.h"

struct account {
	const struct sockaddr *ac_peer;
	const struct log_tls *ac_tls; /* NULL: no TLS */
	const struct request_texts *ac_texts;
	struct str ac_user;
	time_t ac_time;	   /* of the request's arrival, seconds ... */
	uint64_t ac_since; /* ... and of its complete head, microseconds */
	uint64_t ac_wait;  /* of that, while a disk was waited for */
	int ac_status;
	uint64_t
	    ac_head; /* bytes of the head; fewer were sent if ac_sent is less */
	uint64_t ac_sent;
	bool ac_logged; /* log_exclude has nothing against it */
};

static inline void
account_log(struct service *svc, const struct account *ac)
{
	struct log_record rec = {
	    .rec_peer = ac->ac_peer,
	    .rec_time = ac->ac_time,
	    .rec_user = ac->ac_user,
	    .rec_texts = *ac->ac_texts,
	    .rec_status = ac->ac_status,
	    .rec_body =
		ac->ac_sent > ac->ac_head ? ac->ac_sent - ac->ac_head : 0,
	    .rec_bytes = ac->ac_sent,
	    .rec_duration = clock_now() - ac->ac_since,
	    .rec_wait = ac->ac_wait,
	    .rec_tls = ac->ac_tls,
	};

	log_access(svc->svc_log, &rec);
}

/* The bytes are counted as they go out: sta_sent. */
static inline void
account_response(struct service *svc, const struct account *ac)
{
	struct stats *sta = &svc->svc_stats;

	counter_add(&sta->sta_status[ac->ac_status - STATS_STATUS], 1);
	if (ac->ac_wait > 0)
		counter_add(&sta->sta_disk_wait, ac->ac_wait);
	if (ac->ac_logged)
		account_log(svc, ac);
}

#endif
