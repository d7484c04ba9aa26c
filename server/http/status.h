/*
 * status: what to answer to a GET or HEAD for a representation that exists.
 * Pure.
 */
#ifndef SERVER_HTTP_STATUS_H
#define SERVER_HTTP_STATUS_H

#include <sys/types.h>
#include <time.h>

#include "server/http/range.h"
#include "server/http/request.h"

struct plan {
	int pl_status;		 /* 200, 206, 304, 412, 416 */
	struct range *pl_ranges; /* the caller's, room for RANGE_MOST */
	size_t pl_max;		 /* see range_parse */
	size_t pl_nranges;	 /* with 206 */
};

/*
 * Preconditions first, then If-Range, then Range, which only GET has (RFC 9110,
 * 13.2.2 and 14.2).
 */
void status_decide(struct plan *, const struct request *, off_t size,
    const struct validators *, time_t now);

#endif
