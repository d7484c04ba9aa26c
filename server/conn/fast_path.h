/*
 * fast_path: responds to requests of which every byte is known (known.h) from the response cache, to
 * all pipelined ones with one system call.  An unknown head takes the slow path, and is known the next
 * time.
 */
#ifndef SERVER_CONN_FAST_PATH_H
#define SERVER_CONN_FAST_PATH_H

#include "server/content/response_cache.h"
#include "server/util/str.h"

struct conn;

enum fast_path {
	FAST_PATH_NONE, /* the request at the front of the input is not known */
	FAST_PATH_SENT, /* responses were sent; no other has begun */
	FAST_PATH_BEGUN,  /* the first request left over has an exchange */
	FAST_PATH_FAILED, /* memory is short */
};

/*
 * Sends responses to known requests at the front of the input.  The connection must be between two
 * requests, and the socket writable.
 */
enum fast_path fast_path_run(struct conn *);

#endif
