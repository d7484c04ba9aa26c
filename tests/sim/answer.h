/*
 * answer: a request of a client of the server, and the check of the response, which is the same for
 * HTTP/1 and HTTP/2.
 */
#ifndef TESTS_SIM_ANSWER_H
#define TESTS_SIM_ANSWER_H

#include "tests/sim/scene.h"

#define ETAG 64

struct answer {
	/* The request. */
	unsigned an_client, an_disk, an_name;
	bool an_due;
	bool an_shut; /* the client shut its side down: it gets less time */
	bool an_listing, an_no_body; /* no_body: HEAD */
	int32_t an_stream;	     /* HTTP/2 */
	off_t an_from, an_to;	     /* a range; an_to is -1 without one */
	char an_path[16], an_host[8], an_range[48], an_match[ETAG];
	uint64_t an_asked;

	/* The response. */
	unsigned an_status;
	uint64_t an_length; /* UINT64_MAX: the head does not state it */
	uint64_t an_got, an_progress;
	size_t an_owed; /* bytes that open the stream's window later */
	off_t an_off, an_last, an_total, an_size;
	unsigned an_version;
	uint64_t an_inodes; /* bits: what the bytes may be of */
	bool an_mixed;
	char an_etag[ETAG];
};

/* Draws a request.  `etag` is the last one of this name, or "". */
void answer_ask(struct answer *, unsigned client);
void answer_field(struct answer *, const char *name, const char *value);
void answer_head(struct answer *, unsigned status);
void answer_body(struct answer *, const char *mem, size_t len);
/* The response has ended, or its client goes.  `why` is NULL if something may end it early. */
void answer_end(struct answer *, bool complete, const char *why);
/* Fails if the response is late.  `until` is when the client could have read last. */
void answer_check(const struct answer *, uint64_t since, const char *how);

#endif
