/*
 * account: counts and logs a response when it ends.  Only this file fills in struct log_record, for
 * responses from memory and from files, over HTTP/1 and HTTP/2.  The worker's thread calls
 * account_response once for each response.
 */
#ifndef SERVER_CONTENT_ACCOUNT_H
#define SERVER_CONTENT_ACCOUNT_H

#include "lib/util/clock.h"
#include "server/content/service.h"
#include "server/log/log.h"

struct account {
	const struct sockaddr *ac_peer;
	const struct log_tls *ac_tls; /* NULL without TLS */
	const struct request_texts *ac_texts;
	struct str ac_user;
	/* time when the request arrived, seconds since the epoch */
	time_t ac_time;
	/* time when the request's head was complete, microseconds */
	uint64_t ac_since;
	uint64_t ac_wait; /* time spent in waits for a disk, microseconds */
	int ac_status;
	/* bytes of the response's head, even if the head was not sent */
	uint64_t ac_head;
	uint64_t ac_sent;
	bool ac_logged; /* true if the access log must get a line */
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

/*
 * Counts and logs a response.  Does not count the bytes of the response, because sta_sent counts
 * bytes when they are sent.
 */
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
