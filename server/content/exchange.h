/*
 * exchange: a request and its answer, and how they are counted and logged.  It knows what it
 * answers from, and of the connection that it belongs to only struct exchange_ops: a
 * connection of HTTP/1 has one at a time, from the end of a request's head to the end of
 * its answer, and one that is idle has none, which makes it small.  The worker's thread.
 *
 *	exchange_create, and its owner fills ex_request
 *	exchange_respond: an answer is ready; or a disk is waited for:
 *	    exchange_wait, and when it has answered ex_ops->resumed: exchange_continue
 *	exchange_refuse: an answer is ready
 *	response_step, until it is done; it may wait in the same way
 *	exchange_free; in a wait exchange_cancel, and exchange_free after ex_ops->resumed
 */
#ifndef SERVER_CONTENT_EXCHANGE_H
#define SERVER_CONTENT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include "lib/util/clock.h"

#include "server/content/access.h"
#include "server/content/client_rates.h"
#include "server/content/response.h"
#include "server/content/service.h"
#include "server/content/static_file.h"
#include "server/content/verifier.h"
#include "server/http/request.h"
#include "server/util/sockaddr_text.h"

struct sockaddr;
struct tls;
struct token_bucket;

/* Calls from an answer to its connection. */
struct exchange_ops {
	/*
	 * The completion has come.  It may be one of thousands: continue later.  The
	 * exchange may be freed here.
	 */
	void (*resumed)(struct exchange *);

	/* Does the connection end after this answer?  It says so then. */
	bool (*last)(const struct exchange *);

	/* Gives the client these bytes now, past ex_response.  False: not all of them; the rest is lost. */
	bool (*send_now)(struct exchange *, const char *, size_t len);

	/*
	 * Asks for memory beyond what each answer takes, until the exchange is freed.  Returns false if
	 * the connection's answers have too much of it.  NULL: there is always some.
	 */
	bool (*reserve)(struct exchange *, size_t bytes);
};

/*
 * What an exchange waits for.  Whoever begins a wait registers it by exchange_pend; the completion
 * calls exchange_resume.
 */
struct pending {
	/* Goes on after the completion, as exchange_continue.  NULL: response_step goes on. */
	bool (*resume)(struct exchange *);

	/* The result is not wanted any more; the completion comes all the same.  NULL: nothing to do. */
	void (*cancel)(struct exchange *);

	/* Returns true if what is waited for is slow, but does something.  NULL: not known. */
	bool (*slow)(struct exchange *);

	const char *name; /* for messages: what has not answered ... */
	const char *cure; /* ... and what to do about it */
};

#define PENDING_DISK \
	.name = "the disk", .cure = "look for errors of the disk (dmesg)"

/* How the client takes the answer: see min_rate.c.  Bytes and microseconds. */
struct pace {
	bool pc_begun;
	uint64_t pc_since; /* the socket is full since then; 0: it is not */
	uint64_t pc_full;  /* it was, in this period, before that */
	int64_t pc_begin;  /* bytes taken when the period began ... */
	int64_t pc_last;   /* ... and when TIMER_SEND was set */
};

struct exchange {
	const struct exchange_ops *ex_ops;
	void *ex_owner; /* theirs */
	struct service *ex_service;
	const struct sockaddr *ex_peer; /* the owner's, or ex_client */
	union sockaddr_any ex_client;	/* whom a trusted proxy asks for */
	int ex_sock;			/* the owner's: see pw_send */
	struct pw_sink *ex_sink;	/* the same */
	const struct tls *ex_tls;	/* the same; NULL: no TLS */
	uint64_t ex_rate; /* bytes/s that the client takes, or 0: see pw_send */

	bool
	    ex_head_apart; /* the owner sends the head itself: response_head_given */

	bool ex_proxied; /* the owner's: a proxy that is trusted sent it */
	bool ex_no_site; /* it names none: its answer has no site's fields */
	int ex_refusal;	 /* what exchange_respond was given */
	bool ex_open;	 /* begun, and not counted and logged yet */
	bool ex_pending; /* a completion is to come */
	const struct pending *ex_pending_on; /* what is waited for, or was */
	bool
	    ex_held; /* in place of that: the owner continues it when reserve may succeed */
	bool ex_cancelled;   /* its connection has gone */
	unsigned ex_looks;   /* at a disk that is slow: how often */
	uint64_t ex_since;   /* when its head was complete, microseconds */
	time_t ex_time;	     /* the same, seconds since the epoch */
	uint64_t ex_wait;    /* microseconds that it waited for a disk ... */
	uint64_t ex_waiting; /* ... but for the wait that began then */
	uint64_t ex_counted; /* bytes sent that are in the statistics */
	size_t ex_503;	     /* bytes of a 503 for a disk that hangs; 0: none */
	size_t ex_503_body;  /* of them */

	struct request ex_request;
	struct target ex_target;
	/* memory of ex_target; once settled, of what the log needs */
	struct buf ex_path;
	bool ex_settled;     /* see exchange_settle */
	bool ex_unlogged;    /* settled: no line of the log comes of it */
	struct buf ex_user;  /* user name of Basic credentials, for the log */
	bool ex_paced;	     /* see pace.h, as the next ones */
	uint64_t ex_allowed; /* bytes that were taken from the buckets */
	uint64_t ex_not_before; /* when they may be sent, microseconds */
	struct token_bucket *ex_bucket; /* the owner's: of its connection */
	struct client_buckets ex_client_rate; /* if there is client_rate */
	struct verify ex_verify;
	struct lookup ex_lookup;
	struct response ex_response;
	struct pace ex_pace;

	SLIST_ENTRY(exchange) ex_free; /* of those that are kept for later */
};

/* NULL: no memory. */
struct exchange *exchange_create(
    struct service *, const struct exchange_ops *, void *owner);

/*
 * The answer to ex_request.  True: it is ready to be sent; false: something is being fetched:
 * exchange_wait, then exchange_continue; or ex_held is set.  refusal is 0, or the status of an answer that needs no
 * file, such as 413, to a client that may have one.
 */
bool exchange_respond(struct exchange *, int refusal);

/*
 * Makes the error that answers what is no correct request.  Its site, and the rules of that about
 * addresses and rates, are those of rq_target and rq_texts.qt_host, as far as they are known; of SNI; or else
 * of none, whose rules are the first site's and whose fields are the top level's.
 */
void exchange_refuse(struct exchange *, int status);

/*
 * Refuses what was received before a request, of which no target and no host are known, with this
 * text in place of an error page.
 */
void exchange_refuse_text(struct exchange *, int status, struct str text);

/* The same, when that has come. */
bool exchange_continue(struct exchange *);

/*
 * Call when the answer was chosen and may wait long for its client.  Keeps what the log and
 * messages need of the request, at most `most` bytes of it, and gives the rest back: ex_request
 * and ex_target no longer point into the owner's memory, which may be freed.  Returns the bytes
 * that are kept.  Returns -ENOMEM, with nothing changed, if memory is short.
 */
long exchange_settle(struct exchange *, size_t most);

static inline bool
exchange_reserve(struct exchange *ex, size_t bytes)
{
	return ex->ex_ops->reserve == NULL || ex->ex_ops->reserve(ex, bytes);
}

/*
 * Whom the fields of a request name as its client, if trusted_proxies sent it: see
 * client_address.  False: nobody.
 */
bool exchange_named(
    const struct conf *, const struct request *, union sockaddr_any *);

/* The same of its own request. */
void exchange_name_client(struct exchange *);

/* A trusted proxy asks for this client; AF_UNSPEC: for nobody that is known. */
static inline void
exchange_asked_for(struct exchange *ex, const union sockaddr_any *client)
{
	if (client->sa.sa_family == AF_UNSPEC)
		return;
	ex->ex_client = *client;
	ex->ex_peer = &ex->ex_client.sa;
}

/* Who asked, as the log, limits and rules have it. */
static inline const struct sockaddr *
exchange_client(const struct exchange *ex)
{
	return ex->ex_peer;
}

/* Registers what is waited for.  Returns false, so that a function can end with it. */
static inline bool
exchange_pend(struct exchange *ex, const struct pending *pn)
{
	ex->ex_pending_on = pn;
	return false;
}

/* A completion is being waited for, until it has come: ex_pending. */
static inline void
exchange_wait(struct exchange *ex)
{
	ex->ex_pending = true;
	ex->ex_waiting = clock_now();
}

/* It has come: called by what has asked for it.  The exchange may be gone then. */
static inline void
exchange_resume(struct exchange *ex)
{
	ex->ex_pending = false;
	ex->ex_wait += clock_now() - ex->ex_waiting;
	ex->ex_ops->resumed(ex);
}

/* Returns true if its password waits to be verified, or is. */
static inline bool
exchange_verifies(const struct exchange *ex)
{
	return ex->ex_pending && ex->ex_pending_on == &access_pending;
}

/* While it is pending: it has ended, and only its memory stays until then; what ex_request names need not. */
void exchange_cancel(struct exchange *);

/* The disk has not answered in time: it is only busy, and gets more. */
bool exchange_has_patience(struct exchange *);

/* The disk was too late, and the request ends: counts it and logs a message. */
void exchange_disk_late(struct exchange *);

/* Counts what was sent since the last call. */
void exchange_sent(struct exchange *);

/* Counts and logs it, and frees it; NULL is none.  Nothing may be pending. */
void exchange_free(struct exchange **);

/*
 * The disk does not answer: tells the client, past its response, which what
 * waits for the disk still uses.
 */
void exchange_503(struct exchange *);

#endif
