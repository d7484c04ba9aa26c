/*
 * exchange: a request and its answer, and how they are counted and logged.  A
 * connection has one from the end of a request's head to the end of its answer; so
 * an idle connection costs little memory.
 */
#ifndef SERVER_CONTENT_EXCHANGE_H
#define SERVER_CONTENT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include "server/content/response.h"
#include "server/content/static_file.h"
#include "server/http/request.h"

struct conn;

/* How the client takes the answer: see min_rate.c.  Bytes and microseconds. */
struct pace {
	bool pc_begun;
	uint64_t pc_since; /* the socket is full since then; 0: it is not */
	uint64_t pc_full;  /* it was, in this period, before that */
	int64_t pc_begin;  /* what had been taken when the period began ... */
	int64_t pc_last;   /* ... and when TIMER_SEND was set */
};

struct exchange {
	struct conn *ex_conn;
	bool ex_open;	     /* begun, and not counted and logged yet */
	uint64_t ex_since;   /* when its head was complete, microseconds */
	time_t ex_time;	     /* the same, seconds since the epoch */
	uint64_t ex_wait;    /* microseconds that it waited for a disk ... */
	uint64_t ex_waiting; /* ... but for the wait that began then */
	uint64_t ex_counted; /* bytes sent that are in the statistics */
	size_t ex_503;	     /* bytes of a 503 for a disk that hangs; 0: none */
	size_t ex_503_body;  /* of them */

	struct request ex_request;
	struct target ex_target;
	struct buf ex_path; /* memory of ex_target */
	struct lookup ex_lookup;
	struct response ex_response;
	struct pace ex_pace;

	SLIST_ENTRY(exchange) ex_free; /* of those that are kept for later */
};

/* Those of a worker that nobody has; its thread only. */
struct exchange_list {
	SLIST_HEAD(, exchange) xl_free;
	unsigned xl_count;
};

void exchange_list_destroy(struct exchange_list *);

/* False: no memory. */
bool exchange_begin(struct conn *);

/* A completion is being waited for, until it has come: cn_waiting. */
void exchange_wait(struct conn *);
void exchange_resume(struct conn *);

/* Counts what was sent since the last call. */
void exchange_sent(struct conn *);

/* When it ends, or is cut while it waits for a disk.  Does nothing if not open. */
void exchange_end(struct conn *);

/* The same, and frees it, if there is one.  Nothing may be pending. */
void exchange_free(struct conn *);

/*
 * The disk does not answer: tells the client, past its response, which what
 * waits for the disk still uses.
 */
void exchange_503(struct conn *);

#endif
