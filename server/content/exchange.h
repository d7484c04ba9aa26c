/*
 * exchange: a request and its response, and how they are counted and logged.  It knows the sources of
 * its response, and of its connection only struct exchange_ops.  A connection of HTTP/1 has one
 * exchange at a time, from the end of a request's head to the end of its response; an idle connection
 * has none, which keeps it small.  The worker's thread only.
 *
 *	exchange_create; then the owner fills ex_request
 *	exchange_respond: the response is ready; or the disk is pending:
 *	    exchange_wait, and after ex_ops->resumed exchange_continue
 *	exchange_refuse: the response is ready
 *	response_step, until it is done; it may wait in the same way
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
#include "server/content/verifier.h"
#include "server/http/request.h"
#include "server/util/sockaddr_text.h"

struct sockaddr;
struct tls;
struct token_bucket;

/* Callbacks from an exchange to its connection. */
struct exchange_ops {
	/*
	 * Called when the completion arrives.  It may be one of thousands, so the owner continues the
	 * exchange later.  May free the exchange.
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
	 * Reserves memory beyond what each response takes, until the exchange is freed.  Returns false
	 * if the connection's responses hold too much of it.  NULL if reserving always succeeds.
	 */
	bool (*reserve)(struct exchange *, size_t bytes);
};

/*
 * A wait of an exchange.  The code that begins a wait registers it with exchange_pend; the
 * completion calls exchange_resume.
 */
struct pending {
	/*
	 * Continues after the completion, as exchange_continue does.  NULL if response_step continues.
	 */
	bool (*resume)(struct exchange *);

	/*
	 * Cancels the wait: the result is no longer needed.  The completion arrives all the same.  NULL
	 * if there is nothing to do.
	 */
	void (*cancel)(struct exchange *);

	/* Returns true if the disk is slow but makes progress.  NULL if that is unknown. */
	bool (*slow)(struct exchange *);

	const char *name; /* for messages: what did not respond */
	const char *cure; /* for messages: the remedy */
};

#define PENDING_DISK .name = "the disk", .cure = "look for disk errors (dmesg)"

/* How fast the client takes the response (min_rate.c), in bytes and microseconds. */
struct pace {
	bool pc_begun;
	uint64_t pc_since; /* when the socket became full; 0 if it is not */
	uint64_t pc_full;  /* full before that, in this period */
	int64_t pc_begin;  /* bytes taken at the start of the period */
	int64_t pc_last;   /* bytes taken when TIMER_SEND was set */
};

struct exchange {
	const struct exchange_ops *ex_ops;
	void *ex_owner; /* the connection, for ex_ops */
	struct service *ex_service;
	const struct sockaddr *ex_peer; /* owner's address, or &ex_client */
	union sockaddr_any ex_client;	/* client that a trusted proxy names */
	int ex_sock;			/* the owner's; see pw_send */
	struct pw_sink *ex_sink;	/* the owner's; see pw_send */
	const struct tls *ex_tls;	/* the owner's; NULL without TLS */
	uint64_t ex_rate; /* the client's rate, bytes/s, or 0; see pw_send */

	bool ex_head_apart; /* the owner sends the head: response_head_given */

	bool ex_proxied; /* a trusted proxy sent the request; set by owner */
	bool ex_no_site; /* no site is named, so no site's fields are sent */
	int ex_refusal;	 /* status to refuse with, or 0 */
	bool ex_open;	 /* not counted and logged yet */
	bool ex_pending; /* true until the completion arrives */
	const struct pending *ex_pending_on; /* current or last wait */
	bool ex_held; /* waits for reserve instead; the owner continues it */
	bool ex_cancelled;   /* exchange_cancel was called */
	unsigned ex_looks;   /* disk_timeout periods granted to a slow disk */
	uint64_t ex_since;   /* when the head was complete, microseconds */
	time_t ex_time;	     /* head's arrival, seconds since the epoch */
	uint64_t ex_wait;    /* microseconds of finished waits for a disk */
	uint64_t ex_waiting; /* start of the current wait, microseconds */
	uint64_t ex_counted; /* sent bytes already in the statistics */
	size_t ex_503;	     /* bytes of the 503 for a hung disk, or 0 */
	size_t ex_503_body;  /* bytes of that 503's body */

	struct request ex_request;
	struct target ex_target;
	/* memory of ex_target; after exchange_settle, of the texts for the log */
	struct buf ex_path;
	bool ex_settled;     /* see exchange_settle */
	bool ex_unlogged;    /* settled, and the log gets no line */
	struct buf ex_user;  /* user name of Basic credentials, for the log */
	bool ex_paced;	     /* true if a rate limit applies; see pace.h */
	uint64_t ex_allowed; /* bytes taken from the buckets */
	uint64_t ex_not_before; /* earliest time to send, microseconds */
	struct token_bucket *ex_bucket; /* the connection's; set by owner */
	struct client_buckets ex_client_rate; /* used with client_rate */
	struct verify ex_verify;
	struct lookup ex_lookup;
	struct response ex_response;
	struct pace ex_pace;

	SLIST_ENTRY(exchange) ex_free; /* link in xl_free */
};

/* Returns NULL if memory is short. */
struct exchange *exchange_create(
    struct service *, const struct exchange_ops *, void *owner);

/*
 * Makes the response to ex_request.  Returns true if it is ready to be sent.  Returns false if the
 * caller must call exchange_wait and later exchange_continue, or if ex_held is set.  refusal is 0,
 * or the status of a response that needs no file, such as 413, to a client that access control
 * admits.
 */
bool exchange_respond(struct exchange *, int refusal);

/*
 * Makes the error response to a malformed request.  Its site, with its rules about addresses and
 * rates, is that of rq_target and rq_texts.qt_host as far as they are known, else that of SNI.
 * Without either, the rules of the first site apply, with the fields of the top level.
 */
void exchange_refuse(struct exchange *, int status);

/*
 * Refuses input that precedes a request, whose target and host are unknown, with this text in place
 * of an error page.
 */
void exchange_refuse_text(struct exchange *, int status, struct str text);

/* Continues after the completion.  Returns as exchange_respond does. */
bool exchange_continue(struct exchange *);

/*
 * Call when the response is chosen and may wait long for its client.  Keeps what the log and
 * messages need of the request, at most `most` bytes of it, and releases the rest: ex_request and
 * ex_target no longer point into the owner's memory, which may be freed.  Returns the bytes kept.
 * Fails with -ENOMEM, with nothing changed, if memory is short.
 */
long exchange_settle(struct exchange *, size_t most);

static inline bool
exchange_reserve(struct exchange *ex, size_t bytes)
{
	return ex->ex_ops->reserve == NULL || ex->ex_ops->reserve(ex, bytes);
}

/*
 * Reads the client that the fields of a request name, if one of trusted_proxies sent it; see
 * client_address.  Returns false if they name none.
 */
bool exchange_named(
    const struct conf *, const struct request *, union sockaddr_any *);

/* Sets ex_client if the exchange's own request names a client. */
void exchange_name_client(struct exchange *);

/* Sets the client that a trusted proxy names; AF_UNSPEC, if it names none, changes nothing. */
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

/* Registers the wait.  Returns false, so that a function can end with it. */
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

/* Ends the wait; the completion calls it.  May free the exchange. */
static inline void
exchange_resume(struct exchange *ex)
{
	ex->ex_pending = false;
	ex->ex_wait += clock_now() - ex->ex_waiting;
	ex->ex_ops->resumed(ex);
}

/* Returns true while its password is being verified, or waits to be. */
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
 * Call when disk_timeout expires.  Returns true if the disk is only slow, and the exchange may wait
 * for another disk_timeout.
 */
bool exchange_has_patience(struct exchange *);

/* Counts and logs a request that ends because the disk exceeded disk_timeout. */
void exchange_disk_late(struct exchange *);

/* Counts the bytes sent since the last call. */
void exchange_sent(struct exchange *);

/* Counts, logs and frees an exchange; ignores NULL.  Nothing may be pending. */
void exchange_free(struct exchange **);

/*
 * Sends 503 because the disk does not respond.  Bypasses ex_response, which the pending operation
 * still uses.
 */
void exchange_503(struct exchange *);

#endif
