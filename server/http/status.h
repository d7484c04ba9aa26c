/*
 * status: chooses the status of the response to a GET or HEAD of an existing representation.  Pure.
 */
#ifndef SERVER_HTTP_STATUS_H
#define SERVER_HTTP_STATUS_H

#include <sys/types.h>
#include <time.h>

#include "server/http/range.h"
#include "server/http/request.h"

struct plan {
	int pl_status;		 /* 200, 206, 304, 412 or 416 */
	struct range *pl_ranges; /* caller's array of RANGE_MOST elements */
	size_t pl_max;		 /* maximum number of ranges: see range_parse */
	size_t pl_nranges;	 /* number of ranges; 0 unless 206 */
};

/*
 * Chooses pl_status and the ranges.  Evaluates the preconditions, then If-Range, then Range (RFC
 * 9110, 13.2.2).  HEAD gets the status of GET, as from most servers: clients probe by HEAD whether a
 * server sends ranges.  RFC 9110, 14.2, defines Range for GET alone.
 */
void status_decide(struct plan *, const struct request *, off_t size,
    const struct validators *, time_t now);

#endif
