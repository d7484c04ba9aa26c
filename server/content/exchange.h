/*
 * exchange: a request with its response.  An exchange makes, counts and logs the response.  An
 * exchange reaches its connection only through struct exchange_ops.  An HTTP/1 connection has one
 * exchange at a time: from the end of a request's head to the end of its response.  An idle
 * connection has no exchange, and so needs little memory.  Runs on the worker's thread.
 *
 * The owner calls these functions in this order:
 *
 *	exchange_create; afterwards the owner fills in ex_request
 *	exchange_respond or exchange_refuse; if exchange_respond returns false:
 *	    exchange_wait, and exchange_continue after ex_ops->resumed
 *	response_step until the response is done; after PW_SEND_PENDING: exchange_wait, and
 *	    response_step again after ex_ops->resumed
 *	exchange_free; during a wait, exchange_cancel, then exchange_free after ex_ops->resumed
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
#include "server/util/client_key.h"
#include "server/util/sockaddr_text.h"

struct sockaddr;
struct tls;
struct token_bucket;

struct exchange_ops {
	/*
	 * Handles the completion of a wait.  Thousands of completions may arrive at once, so the
	 * owner must continue the exchange later.  May free the exchange.
	 */
	void (*resumed)(struct exchange *);

	/*
	 * Returns true if the connection must close after this response; the response then has
	 * Connection: close.
	 */
	bool (*last)(const struct exchange *);

	/*
	 * Sends these bytes now, and leaves ex_response unchanged.  Returns false if the socket
	 * does not accept all of them; the other bytes are lost.
	 */
	bool (*send_now)(struct exchange *, const char *, size_t len);

	/*
	 * Returns the number of bytes that may be fetched for the client (pw_send_reach).  NULL if
	 * the owner has no flow control of its own.
	 */
	uint64_t (*reach)(const struct exchange *);

	/*
	 * Reserves memory, until the exchange is freed, for a response that needs much memory.
	 * Returns false if the responses of this connection already use too much.  NULL if the
	 * owner has no limit.
	 */
	bool (*reserve)(struct exchange *, size_t bytes);
};

/*
 * Kind of a wait.  The code that starts a wait passes its kind to exchange_pend.  The completion
 * calls exchange_resume.
 */
struct pending {
	/*
	 * Continues the exchange after the completion.  Returns as exchange_respond does.  NULL if
	 * response_step continues the exchange.
	 */
	bool (*resume)(struct exchange *);

	/*
	 * Cancels the wait because the result is not needed.  The completion still arrives.  NULL
	 * if the wait cannot be cancelled.
	 */
	void (*cancel)(struct exchange *);

	/* Lets other clients go first, since this one has closed its side.  May be NULL. */
	void (*defer)(struct exchange *);

	/* Returns true if the disk is slow but makes progress.  NULL if this is unknown. */
	bool (*slow)(struct exchange *);

	const char *name; /* name of the slow device or thread, for messages */
	const char *cure; /* remedy, for messages */
};

/* what to do about a file system that does not respond */
#define DISK_CURE                                                         \
	"look for disk errors (dmesg), or at the server or program of a " \
	"network or FUSE file system"
#define PENDING_DISK .name = "the disk", .cure = DISK_CURE

#define DISK_LOOKS 2 /* checks for progress in each disk_timeout */

/*
 * State for measuring how fast the client accepts the response (server/conn/min_rate.c), in bytes
 * and microseconds.
 */
struct pace {
	bool pc_begun;
	uint64_t pc_since; /* time when the socket became full, or 0 */
	/* time with a full socket in this period, up to pc_since */
	uint64_t pc_full;
	int64_t pc_begin; /* bytes acknowledged at the start of the period */
	int64_t pc_last;  /* bytes acknowledged at the start of TIMER_SEND */
};

struct exchange {
	const struct exchange_ops *ex_ops;
	void *ex_owner; /* connection or stream, for ex_ops */
	struct service *ex_service;
	/* client's address, in the memory of the owner or in ex_client */
	const struct sockaddr *ex_peer;
	union sockaddr_any ex_client; /* client named by a trusted proxy */
	int ex_sock;		      /* owner's socket; see pw_send */
	struct pw_sink *ex_sink;      /* owner's sink; see pw_send */
	const struct tls *ex_tls;     /* owner's TLS session, or NULL */
	uint64_t ex_rate; /* client's last throughput, bytes/s; 0 if unknown */

	/* true if the owner sends the head: see response_head_given */
	bool ex_head_apart;

	bool ex_proxied; /* true if a trusted proxy sent the request */
	/* true if the request names no site; the response then omits the site's fields */
	bool ex_no_site;
	int ex_refusal;	 /* status of the refusal, or 0 */
	bool ex_open;	 /* true until the exchange is counted and logged */
	bool ex_pending; /* true while a completion is pending */
	bool ex_paced;	 /* true if a rate limit applies: see pace.h */
	/* kind of the current or of the last wait */
	const struct pending *ex_pending_on;
	bool ex_held;	   /* true while ex_ops->reserve refuses memory */
	bool ex_cancelled; /* true if exchange_cancel was called */
	unsigned ex_looks; /* calls of exchange_has_patience in this wait */
	uint64_t ex_since; /* time when the head was complete, microseconds */
	time_t ex_time;	   /* head's arrival, seconds since the epoch */
	/* total time of completed waits for a disk, microseconds */
	uint64_t ex_wait;
	uint64_t ex_waiting; /* start of the current wait, microseconds */
	uint64_t ex_counted; /* sent bytes that the statistics include */
	size_t ex_503;	     /* bytes of the 503 after a disk timeout, or 0 */
	size_t ex_503_body;  /* bytes of the body of this 503 */

	struct request ex_request;
	struct target ex_target;
	/* memory for ex_target; after exchange_settle, for the texts of the log */
	struct buf ex_path;
	bool ex_settled; /* true if exchange_settle was called */
	/* true if ex_settled is set and the log omits the request */
	bool ex_unlogged;
	struct buf ex_user;  /* user name of Basic credentials, for the log */
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

/* Creates an exchange for the connection or stream `owner`.  Returns NULL if memory is short. */
struct exchange *exchange_create(
    struct service *, const struct exchange_ops *, void *owner);

/*
 * Makes the response to ex_request.  Returns true if the response is ready to be sent.  Otherwise
 * the caller calls exchange_wait, and exchange_continue after the completion; if ex_held is set,
 * the caller calls only exchange_continue, when other responses have freed memory.  `refusal` is 0,
 * or a status, such as 413, that an admitted client gets instead of a file.
 */
bool exchange_respond(struct exchange *, int refusal);

/*
 * Makes the error response to a malformed request.  The site determines which rules about addresses
 * and rates apply: the site that rq_target or qt_host names, or else the site that SNI names.  If
 * neither names a site, the rules of the first site apply, but the response has the fields of the
 * top level.
 */
void exchange_refuse(struct exchange *, int status);

/*
 * Makes the error response to input without a request head.  Target and host are unknown.  `text`
 * replaces the error page.
 */
void exchange_refuse_text(struct exchange *, int status, struct str text);

/* Continues the exchange after the completion.  Returns as exchange_respond does. */
bool exchange_continue(struct exchange *);

/*
 * Frees the memory of the request, except at most `most` bytes for the log and for messages.
 * Afterwards the owner may free the memory that ex_request and ex_target pointed into.  Call when
 * the response is chosen and may wait long for its client.  Returns the number of bytes kept.
 * Fails with -ENOMEM, and changes nothing, if memory is short.
 */
long exchange_settle(struct exchange *, size_t most);

static inline bool
exchange_reserve(struct exchange *ex, size_t bytes)
{
	return ex->ex_ops->reserve == NULL || ex->ex_ops->reserve(ex, bytes);
}

/*
 * Reads the client's address from the fields that a trusted proxy sets: see the key client_address.
 * Returns false if the fields name no client.
 */
bool exchange_named(
    const struct conf *, const struct request *, union sockaddr_any *);

/* Sets ex_client if the request names a client. */
void exchange_name_client(struct exchange *);

/*
 * Sets the client that a trusted proxy named.  Does nothing if the address family is AF_UNSPEC,
 * because the proxy named no client.
 */
static inline void
exchange_asked_for(struct exchange *ex, const union sockaddr_any *client)
{
	if (client->sa.sa_family == AF_UNSPEC)
		return;
	ex->ex_client = *client;
	ex->ex_peer = &ex->ex_client.sa;
}

/* Returns the address of the client for the log, limits and rules. */
static inline const struct sockaddr *
exchange_client(const struct exchange *ex)
{
	return ex->ex_peer;
}

/* Returns the number of the connection and its client for the library: see plc_client. */
static inline unsigned
exchange_client_number(const struct exchange *ex)
{
	uint64_t key = client_key(exchange_client(ex));
	/* Each connection has a bucket. */
	unsigned connection = client_number((uintptr_t)ex->ex_bucket);

	/* Connections of a Unix socket belong to many clients. */
	return key == 0 ? connection
			: (client_number(key) & ~0xfffU) | connection >> 20;
}

/* Registers the kind of a wait.  Always returns false, so that callers can return the result. */
static inline bool
exchange_pend(struct exchange *ex, const struct pending *pn)
{
	ex->ex_pending_on = pn;
	return false;
}

/* Starts a wait: sets ex_pending until the completion arrives. */
static inline void
exchange_wait(struct exchange *ex)
{
	ex->ex_pending = true;
	ex->ex_looks = 0;
	ex->ex_waiting = clock_now();
}

/* Ends a wait.  The completion calls this function.  May free the exchange. */
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

/* Returns true while the exchange waits for a password thread. */
static inline bool
exchange_verifies(const struct exchange *ex)
{
	return ex->ex_pending && ex->ex_pending_on == &access_pending;
}

/*
 * Cancels an exchange: counts and logs it now.  If a completion is pending, the exchange stays in
 * memory until the completion arrives.  The buffers that ex_request points into may be freed at
 * once.
 */
void exchange_cancel(struct exchange *);

/* Lets other clients go first, if the exchange is pending.  Call when the client has closed its side. */
static inline void
exchange_defer(struct exchange *ex)
{
	if (ex->ex_pending && ex->ex_pending_on->defer != NULL)
		ex->ex_pending_on->defer(ex);
}

/*
 * Returns true if the exchange may wait for another 1/DISK_LOOKS of disk_timeout: disk_timeout has
 * not passed since the wait began, or the disk has made progress since the last call and ten times
 * disk_timeout have not passed.  Call after each 1/DISK_LOOKS of disk_timeout.
 */
bool exchange_has_patience(struct exchange *);

/*
 * Counts an expired disk_timeout, and logs, at most once a minute, the request and the device or
 * thread that it waited for.  Call before the exchange is cancelled.
 */
void exchange_disk_late(struct exchange *);

/* Adds the bytes sent since the last call to sta_sent. */
void exchange_sent(struct exchange *);

/*
 * Counts, logs and frees an exchange.  Does nothing if the exchange is NULL.  No completion may be
 * pending.
 */
void exchange_free(struct exchange **);

/*
 * Sends 503 because the disk does not respond.  Does not change ex_response, because the pending
 * operation still uses it.
 */
void exchange_503(struct exchange *);

#endif
