/*
 * session: TLS on one connection.  The loop or the threads of handshaker.h run OpenSSL's handshake
 * step by step; nothing else uses the session during a step.  After the handshake record.h handles
 * the records on the loop's thread, and OpenSSL's session is freed.
 *
 * The session makes the records and sends them with as few calls as possible.  If the kernel
 * encrypts, the socket is used like one without TLS, and tls_sink returns NULL.
 *
 * The sink accepts bytes only when it has passed their records to the kernel.  If the socket
 * accepts part of a record, the session keeps the rest.  The caller must then offer the same bytes
 * again, as to SSL_write(3); the sink accepts them once the kept rest is sent.
 */
#ifndef SERVER_TLS_SESSION_H
#define SERVER_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"
#include "server/tls/context.h"
#include "server/log/log.h"
#include "server/tls/handshaker.h"
#include "server/tls/record.h"
#include "server/util/token_bucket.h"

enum tls_state {
	TLS_HELLO,	/* waits for the ClientHello; no step has run yet */
	TLS_WANT_READ,	/* waits for the client's next message */
	TLS_WANT_WRITE, /* waits until the socket accepts bytes */
	TLS_LONG, /* tls_step_here was interrupted; a thread must continue */
	TLS_OPEN,
	TLS_FAILED,
};

/* Reasons why a handshake failed. */
enum tls_failure {
	/* the client sent an alert, for example because it refuses the certificate */
	TLS_FAILURE_ALERT,
	TLS_FAILURE_NONE_SHARED, /* no shared version, cipher, group or protocol */
	TLS_FAILURE_CERTIFICATE, /* the client's certificate is missing or invalid */
	TLS_FAILURE_CLOSED,	 /* the client closed the connection */
	TLS_FAILURE_BROKEN, /* the client's messages were not TLS, or damaged */
	TLS_FAILURE_OURS,   /* memory was short, or an internal error */
	TLS_FAILURES
};

/*
 * Received bytes that the caller has not read: first the rest of a record's plaintext, then
 * encrypted records.
 */
struct tls_inbox {
	unsigned char *ib_mem; /* NULL if empty */
	size_t ib_at;	       /* offset of the first byte that is not read */
	size_t ib_plain;       /* bytes of plaintext */
	size_t ib_raw;	       /* bytes of encrypted records */
};

#define TLS_UPDATE 5 /* length of a KeyUpdate, bytes: RFC 8446, 4.6.3 */

struct ssl_st; /* OpenSSL's type */

struct tls {
	struct pw_sink tl_sink; /* must be first: see tls_stream_tls_of */
	struct handshake tl_handshake;
	void *tl_owner; /* for the caller */
	struct tls_context *tl_context;
	/* NULL before the first and after the last step */
	struct ssl_st *tl_ssl;
	int tl_fd; /* socket of the connection */
	enum tls_state tl_state;
	enum tls_failure tl_failure;
	const struct tls_site *tl_site;
	size_t tl_place;   /* index of the site in tx_sites */
	bool tl_http2;	   /* true if ALPN chose HTTP/2 */
	bool tl_brief;	   /* true during tls_step_here */
	size_t tl_message; /* length of the last handshake message received */
	bool tl_kernel;	   /* true if the kernel encrypts */
	bool tl_told;	   /* true once the server's close_notify was written */
	bool tl_broken;	   /* true if nothing more can be sent */
	bool tl_closed; /* true once the client's close_notify was received */
	uint64_t tl_began; /* time when the handshake began, microseconds */
	/* number of records that OpenSSL sent with the key of tl_writes */
	uint64_t tl_records;
	/* number of records received since the client's ChangeCipherSpec */
	uint64_t tl_finished;
	struct record_key tl_writes;
	struct record_key tl_reads;
	/* data for the access log, set when the session opens; points into the session */
	struct log_tls tl_log;
	char *tl_subject; /* owned text of tl_log */
	char *tl_name;	  /* owned text of tl_log */
	/* fields of receive.c */
	struct tls_inbox tl_inbox;
	unsigned char tl_update[TLS_UPDATE]; /* an incomplete KeyUpdate */
	unsigned char tl_update_len;
	struct token_bucket tl_updates; /* rate limit of KeyUpdates */
	unsigned char tl_idle; /* number of consecutive records without data */
	bool tl_drained; /* true if the last tls_recv emptied the socket */
	/* true if the client requested a new key of the server */
	bool tl_wants_update;
	/* level and cause of a pending alert, or 0 */
	unsigned char tl_alert[2];
	/* fields of stream.c; tl_rest has the records that the socket has not accepted */
	char *tl_rest;
	size_t tl_rest_at;
	size_t tl_rest_len;
	/* plaintext bytes of records in tl_rest, which the sink has not accepted */
	size_t tl_held;
	unsigned tl_chunk; /* maximum number of records per send */
	size_t tl_longest; /* longest plaintext of a record, bytes */
	bool tl_warm;	   /* true once records of a response were sent */
};

/*
 * Creates a session that waits for the ClientHello.  The caller sets the waiter's wt_done.  Returns
 * NULL if memory is short.
 */
struct tls *tls_create(struct tls_context *, int fd);
void tls_destroy(struct tls **);

struct tls *tls_of_waiter(struct pw_waiter *);

/*
 * Returns 0 if the next step of the handshake is due, -EAGAIN if it is not, -EPROTO if the client
 * uses plain HTTP, -EPIPE if the client closed the connection, or another -errno.  Call on the
 * loop's thread.
 */
int tls_awaits(const struct tls *);

/*
 * Returns true if the next step only reads a client's Finished, which takes well below 0.1 ms.  Such
 * a step always runs on the loop, since a switch to another thread and back would cost half of
 * that time.
 */
bool tls_step_is_short(const struct tls *);

/* Runs the next step of the handshake. */
void tls_step(struct tls *);

/*
 * Runs the next step on the loop, if it is short or the first one.  The first step is interrupted
 * (TLS_LONG) before anything that takes more than about 0.3 ms: see context.c.
 */
void tls_step_here(struct tls *);

/* Returns the sink of responses, or NULL if responses go directly to the socket (tl_kernel). */
struct pw_sink *tls_sink(struct tls *);

/*
 * Returns true if the session holds records of bytes that the sink has not accepted.  The session
 * will send these records, so the caller must offer the same bytes again, or close the connection.
 * Returns false without a session (NULL).
 */
static inline bool
tls_holds(const struct tls *tl)
{
	return tl != NULL && tl->tl_held > 0;
}

/* Receives as transport_recv does, after the handshake. */
long tls_recv(struct tls *, void *, size_t room);

/* Returns true if the session knows of no received bytes that can be read now. */
bool tls_is_drained(const struct tls *);

/*
 * Returns true if the session holds received bytes that the caller can read.  A part of a record
 * does not count, because the client may never send the rest.
 */
bool tls_has_input(const struct tls *);

/* Returns true if a part of a record is all that the session holds. */
bool tls_has_part(const struct tls *);

/* Returns the number of bytes in tl_rest. */
size_t tls_unsent(const struct tls *);

/*
 * Sends close_notify.  Returns 0, -EAGAIN if the socket is full (call again), or another -errno if
 * close_notify cannot be sent any more.
 */
int tls_end(struct tls *);

/*
 * Returns true if the session's certificate is for this host, given without a port.  Checks only
 * the first certificate of a site that has several.
 */
bool tls_covers(const struct tls *, const char *host, size_t len);

static inline bool
tls_is_resumed(const struct tls *tl)
{
	return tl->tl_log.lt_session.s_ptr[0] == 'r';
}

#endif
