/*
 * fast_path: sends cached responses to known requests (known.h), with one system call for all
 * pipelined requests.  Other requests take the slow path, which makes their heads known.
 */
#ifndef SERVER_CONN_FAST_PATH_H
#define SERVER_CONN_FAST_PATH_H

#include "server/content/response_cache.h"
#include "server/util/str.h"

struct conn;

enum fast_path {
	FAST_PATH_NONE,	  /* the first request is not known */
	FAST_PATH_SENT,	  /* each response that was begun is complete */
	FAST_PATH_BEGUN,  /* an exchange sends the rest of a response */
	FAST_PATH_FAILED, /* memory is short */
};

/*
 * Sends responses to the known requests at the front of the input.  The connection must be between
 * two requests, and the socket writable.
 */
enum fast_path fast_path_run(struct conn *);

#endif
