/*
 * exchange: a request and its answer, as they are counted and logged.  A part of
 * struct conn.
 */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct conn;

struct exchange {
	bool ex_open;	     /* begun, and not counted and logged yet */
	uint64_t ex_since;   /* when its head was complete, microseconds */
	time_t ex_time;	     /* the same, seconds since the epoch */
	uint64_t ex_wait;    /* microseconds that it waited for a disk ... */
	uint64_t ex_waiting; /* ... but for the wait that began then */
	uint64_t ex_counted; /* bytes sent that are in the statistics */
	size_t ex_503;	     /* bytes of a 503 for a disk that hangs; 0: none */
	size_t ex_503_body;  /* of them */
};

void exchange_begin(struct conn *);

/* A completion is being waited for, until it has come: cn_waiting. */
void exchange_wait(struct conn *);
void exchange_resume(struct conn *);

/* Counts what was sent since the last call. */
void exchange_sent(struct conn *);

/* When it ends, or is cut while it waits for a disk.  Does nothing if not open. */
void exchange_end(struct conn *);

/*
 * The disk does not answer: tells the client, past its response, which what
 * waits for the disk still uses.
 */
void exchange_503(struct conn *);

#endif
