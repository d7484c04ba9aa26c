/*
 * exchange: a request and its response; counts and logs them.  An exchange knows the sources of its
 * response; it knows its connection only through struct exchange_ops.  A connection of HTTP/1 has
 * one exchange at a time, from the end of a request's head to the end of its response; an idle
 * connection has none, which keeps it small.  The worker's thread only.
 *
 * The owner calls these functions in this order:
 *
 *	exchange_create, then fill in ex_request
 *	exchange_respond, or exchange_refuse; if exchange_respond returns false for a wait:
 *	    exchange_wait, and exchange_continue after ex_ops->resumed
 *	response_step until the response is done, with the same calls for a wait
 *	exchange_free; during a wait exchange_cancel, and exchange_free after ex_ops->resumed
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
#include "server/content/trace.h"
#include "server/content/verifier.h"
#include "server/http/request.h"
#include "server/util/sockaddr_text.h"

struct sockaddr;
struct tls;
struct token_bucket;

/* Callbacks from an exchange to its connection. */
struct exchange_ops {
	/*
	 * Called when the completion of a wait arrives.  Thousands may arrive at once, so the owner
	 * continues the exchange later.  May free the exchange.
	 */
	void (*resumed)(struct exchange *);

	/*
	 * Returns true if the connection must close after this response, which then carries Connection:
	 * close.
	 */
	bool (*last)(const struct exchange *);

	/*
	 * Sends these bytes at once, bypassing ex_response.  Returns false if the socket does not
	 * accept all of them; the rest is dropped.
	 */
	bool (*send_now)(struct exchange *, const char *, size_t len);

	/*
	 * Reserves memory for a response that needs more than most, until the exchange is freed.
	 * Returns false if the connection's responses already hold too much.  The callback is NULL
	 * if every reservation succeeds.
	 */
	bool (*reserve)(struct exchange *, size_t bytes);
};

/*
 * A kind of wait.  The code that starts a wait registers its kind with exchange_pend; the
 * completion calls exchange_resume.
 */
struct pending {
	/*
	 * Continues the exchange after the completion, and returns the same values as
	 * exchange_respond.  NULL if response_step continues it.
	 */
	bool (*resume)(struct exchange *);

	/*
	 * Cancels the wait, because the result is no longer needed.  The completion still arrives.
	 * NULL if there is nothing to cancel.
	 */
	void (*cancel)(struct exchange *);

	/* Returns true if the disk is slow but makes progress.  NULL if that is unknown. */
	bool (*slow)(struct exchange *);

	const char *name; /* name of the slow device or threads, for messages */
	const char *cure; /* remedy, for messages */
};

#define PENDING_DISK .name = "the disk", .cure = "look for disk errors (dmesg)"

/*
 * State to measure how fast the client receives the response (min_rate.c), in bytes and
 * microseconds.
 */
struct pace {
	bool pc_begun;
	uint64_t pc_since; /* time when the socket became full, or 0 */
	/* time with a full socket in this period, without the time since pc_since */
	uint64_t pc_full;
	int64_t pc_begin; /* bytes acknowledged at the start of the period */
	int64_t pc_last;  /* bytes acknowledged when TIMER_SEND was set */
};

struct exchange {
	const struct exchange_ops *ex_ops;
	void *ex_owner; /* the connection, for ex_ops */
	struct service *ex_service;
	/* client's address: the owner's, or ex_client */
	const struct sockaddr *ex_peer;
	union sockaddr_any ex_client; /* client that a trusted proxy names */
	int ex_sock;		      /* the owner's socket; see pw_send */
	struct pw_sink *ex_sink;      /* the owner's sink; see pw_send */
	const struct tls *ex_tls;     /* the owner's TLS state, or NULL */
	uint64_t ex_rate; /* client's last rate in bytes/s, or 0 if unknown */

	/* true if the owner sends the head; see response_head_given */
	bool ex_head_apart;

	bool ex_proxied; /* true if from a trusted proxy; set by owner */
	/* true if the request names no site; the response then has no fields of a site */
	bool ex_no_site;
	int ex_refusal;	 /* status of the refusal, or 0 */
	bool ex_open;	 /* true until the exchange is counted and logged */
	bool ex_pending; /* true during a wait for a completion */
	/* kind of the current or last wait */
	const struct pending *ex_pending_on;
	bool ex_held;	   /* true during a wait for memory (ops.reserve) */
	bool ex_cancelled; /* true after exchange_cancel */
	unsigned ex_looks; /* disk_timeout periods granted to a slow disk */
	uint64_t ex_since; /* time when the head was complete, microseconds */
	time_t ex_time;	   /* head's arrival, seconds since the epoch */
	/* time spent in waits for a disk that have ended, microseconds */
	uint64_t ex_wait;
	uint64_t ex_waiting; /* start of the current wait, microseconds */
	uint64_t ex_counted; /* sent bytes already in the statistics */
	size_t ex_503;	     /* bytes of the 503 for a hung disk, or 0 */
	size_t ex_503_body;  /* bytes of the body in ex_503 */

	struct request ex_request;
	struct target ex_target;
	/* memory for the strings of ex_target; after exchange_settle, for the texts of the log */
	struct buf ex_path;
	bool ex_settled;     /* true after exchange_settle */
	bool ex_unlogged;    /* true if ex_settled and the log gets no line */
	struct buf ex_user;  /* user name of Basic credentials, for the log */
	bool ex_paced;	     /* true if a rate limit applies; see pace.h */
	uint64_t ex_allowed; /* bytes taken from the buckets */
	uint64_t ex_not_before; /* earliest time to send, microseconds */
	struct token_bucket *ex_bucket; /* connection's bucket; set by owner */
	struct client_buckets ex_client_rate; /* buckets for client_rate */
	struct verify ex_verify;
	struct lookup ex_lookup;
	struct response ex_response;
	struct pace ex_pace;
	struct trace *ex_trace; /* NULL if the request is not traced */

	SLIST_ENTRY(exchange) ex_free; /* link in xl_free */
};

/* Creates an exchange for the connection `owner`.  Returns NULL if memory is short. */
struct exchange *exchange_create(
    struct service *, const struct exchange_ops *, void *owner);

/*
 * Makes the response to ex_request.  Returns true if it is ready to be sent.  Returns false if the
 * caller must call exchange_wait and later exchange_continue, or if ex_held is set.  `refusal` is
 * 0, or the status, such as 413, that an admitted client gets in place of a file.
 */
bool exchange_respond(struct exchange *, int refusal);

/*
 * Makes the error response to a malformed request.  The rules about addresses and rates are those
 * of the site that rq_target or rq_texts.qt_host names, as far as these are known, or else the site
 * that SNI names.  If none of them names a site, the rules of the first site apply, with the fields
 * of the top level.
 */
void exchange_refuse(struct exchange *, int status);

/*
 * Refuses input that precedes a request, so that target and host are unknown.  The response has
 * `text` in place of an error page.
 */
void exchange_refuse_text(struct exchange *, int status, struct str text);

/* Continues the exchange after the completion.  Returns the same values as exchange_respond. */
bool exchange_continue(struct exchange *);

/*
 * Releases the memory of the request, except up to `most` bytes that the log and messages need.
 * Afterwards ex_request and ex_target do not point into the owner's memory, which may be freed.
 * Call when the response is chosen and may wait long for its client.  Returns the number of bytes
 * kept.  Fails with -ENOMEM and changes nothing if memory is short.
 */
long exchange_settle(struct exchange *, size_t most);

static inline bool
exchange_reserve(struct exchange *ex, size_t bytes)
{
	return ex->ex_ops->reserve == NULL || ex->ex_ops->reserve(ex, bytes);
}

/*
 * Reads the client's address from the fields that a trusted proxy sets; see the key client_address.
 * Returns false if they name no client.
 */
bool exchange_named(
    const struct conf *, const struct request *, union sockaddr_any *);

/* Sets ex_client if the exchange's own request names a client. */
void exchange_name_client(struct exchange *);

/*
 * Sets the exchange's client to the client that a trusted proxy named.  Does nothing if the family
 * is AF_UNSPEC, because no client was named.
 */
static inline void
exchange_asked_for(struct exchange *ex, const union sockaddr_any *client)
{
	if (client->sa.sa_family == AF_UNSPEC)
		return;
	ex->ex_client = *client;
	ex->ex_peer = &ex->ex_client.sa;
}

/* Returns the client for the log, limits and rules. */
static inline const struct sockaddr *
exchange_client(const struct exchange *ex)
{
	return ex->ex_peer;
}

/* Registers a kind of wait.  Returns false, so that callers can return the result. */
static inline bool
exchange_pend(struct exchange *ex, const struct pending *pn)
{
	ex->ex_pending_on = pn;
	return false;
}

/* Starts a wait: ex_pending is true until the completion arrives. */
static inline void
exchange_wait(struct exchange *ex)
{
	ex->ex_pending = true;
	ex->ex_waiting = clock_now();
}

/* Ends the wait.  The completion calls this function.  May free the exchange. */
static inline void
exchange_resume(struct exchange *ex)
{
	uint64_t us = clock_now() - ex->ex_waiting;

	ex->ex_pending = false;
	ex->ex_wait += us;
	if (ex->ex_trace != NULL)
		trace_waited(ex, us);
	ex->ex_ops->resumed(ex);
}

/* Returns true while the exchange waits for its password to be verified. */
static inline bool
exchange_verifies(const struct exchange *ex)
{
	return ex->ex_pending && ex->ex_pending_on == &access_pending;
}

/*
 * Cancels an exchange.  Counts and logs it now.  If it is pending, its memory stays until the
 * completion arrives; the buffers that ex_request points into may be freed at once.
 */
void exchange_cancel(struct exchange *);

/*
 * Returns true if the disk is slow but makes progress, so that the exchange may wait for another
 * disk_timeout.  Call when disk_timeout expires.
 */
bool exchange_has_patience(struct exchange *);

/* Counts and logs a request that ends because the disk exceeded disk_timeout. */
void exchange_disk_late(struct exchange *);

/* Counts the bytes sent since the last call. */
void exchange_sent(struct exchange *);

/* Counts, logs and frees an exchange; ignores NULL.  The exchange must not be pending. */
void exchange_free(struct exchange **);

/*
 * Sends 503 because the disk does not respond.  Bypasses ex_response, which the pending operation
 * still uses.
 */
void exchange_503(struct exchange *);

#endif
