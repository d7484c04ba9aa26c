/*
 * session: TLS on one connection.  OpenSSL's handshake runs on the threads of
 * handshaker.h, step by step, and nothing else uses the session meanwhile.  After it, record.h
 * handles the records on the loop's thread; OpenSSL's session is freed by then.
 *
 * Records are made here and sent with as few calls as possible; or by the kernel, if
 * it encrypts: then the socket is used like one without TLS, and tls_sink is NULL.
 *
 * Bytes that a sink takes were given to the kernel, like bytes that a socket accepts.  The session
 * keeps the rest of records that the socket did not accept whole; the caller must offer the same
 * bytes again, as to SSL_write(3), and they count as taken once the rest is sent.
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
	TLS_HELLO,	/* nothing is computed yet */
	TLS_WANT_READ,	/* waits for the client's next message */
	TLS_WANT_WRITE, /* waits for room in the socket */
	TLS_OPEN,
	TLS_FAILED,
};

/* Reasons why a handshake failed. */
enum tls_failure {
	TLS_FAILURE_ALERT, /* client's alert: it refuses our certificate, say */
	TLS_FAILURE_NONE_SHARED, /* no shared version, cipher, group or protocol */
	TLS_FAILURE_CERTIFICATE, /* the client's certificate */
	TLS_FAILURE_CLOSED,	 /* the client has closed */
	TLS_FAILURE_BROKEN,	 /* its messages were not TLS, or damaged */
	TLS_FAILURE_OURS,	 /* memory is short, or an internal error */
	TLS_FAILURES
};

/* Received bytes that were not read: the rest of a record's plaintext, and the records behind it. */
struct tls_inbox {
	unsigned char *ib_mem; /* NULL if empty */
	size_t ib_at;
	size_t ib_plain;
	size_t ib_raw;
};

#define TLS_UPDATE 5 /* bytes of KeyUpdate: RFC 8446, 4.6.3 */

struct ssl_st; /* OpenSSL's type */

struct tls {
	struct pw_sink tl_sink; /* must be first: see tls_stream_tls_of */
	struct handshake tl_handshake;
	void *tl_owner; /* for the caller */
	struct tls_context *tl_context;
	struct ssl_st *tl_ssl; /* NULL before the first, after the last step */
	int tl_fd;	       /* socket of the connection */
	enum tls_state tl_state;
	enum tls_failure tl_failure;
	const struct tls_site *tl_site;
	size_t tl_place;     /* index of the site in its context */
	bool tl_http2;	     /* ALPN has chosen HTTP/2; else HTTP/1 */
	bool tl_kernel;	     /* the kernel encrypts */
	bool tl_told;	     /* our close_notify was made */
	bool tl_broken;	     /* nothing more can be sent */
	bool tl_closed;	     /* the client's close_notify was received */
	uint64_t tl_began;   /* begin of the handshake, microseconds */
	uint64_t tl_records; /* records that OpenSSL sent with tl_writes' key */
	uint64_t tl_finished; /* records since the client's ChangeCipherSpec */
	struct record_key tl_writes;
	struct record_key tl_reads;
	struct log_tls tl_log; /* set once open; points into the session */
	char *tl_subject;      /* owned text of tl_log */
	char *tl_name;	       /* owned text of tl_log */
	/* receive.c */
	struct tls_inbox tl_inbox;
	unsigned char tl_update[TLS_UPDATE]; /* an incomplete KeyUpdate */
	unsigned char tl_update_len;
	struct token_bucket tl_updates; /* rate limit of KeyUpdates */
	unsigned char tl_idle;		/* records in a row without data */
	bool tl_drained;		/* the last call emptied the socket */
	bool tl_wants_update;		/* the client wants a new key of ours */
	unsigned char tl_alert[2];	/* pending alert: level, cause; or 0 */
	/* stream.c: the rest of records that the socket had no room for */
	char *tl_rest;
	size_t tl_rest_at;
	size_t tl_rest_len;
	size_t tl_held;	   /* plaintext bytes in tl_rest, not taken yet */
	unsigned tl_chunk; /* records for the next call */
	size_t tl_longest; /* longest plaintext of a record, bytes */
	bool tl_warm;	   /* something was sent already */
};

/*
 * Creates a session whose first step is due.  The caller sets the waiter's wt_done.  Returns NULL if
 * memory is short.
 */
struct tls *tls_create(struct tls_context *, int fd);
void tls_destroy(struct tls **);

struct tls *tls_of_waiter(struct pw_waiter *);

/*
 * Returns 0 if the next step of the handshake is due, -EAGAIN if it is not, -EPROTO if the client
 * uses plain HTTP, or -EPIPE at the client's end.  For the loop's thread.
 */
int tls_awaits(const struct tls *);

/*
 * Returns true if the next step takes well below 0.1 ms: it reads a client's Finished of TLS 1.3.
 * Then it may run on the loop: the way to another thread and back would cost a third of it.
 */
bool tls_step_is_short(const struct tls *);
void tls_step(struct tls *);

/* Returns the sink of responses, or NULL if they go to the socket. */
struct pw_sink *tls_sink(struct tls *);

/* Receives as transport_recv does, after the handshake. */
long tls_recv(struct tls *, void *, size_t room);

/* Returns true if no received bytes can be read now, as far as is known. */
bool tls_is_drained(const struct tls *);

/* Returns true if bytes were received and not read yet. */
bool tls_has_input(const struct tls *);

/* Returns the bytes of records that were not given to the kernel yet. */
size_t tls_unsent(const struct tls *);

/*
 * Sends close_notify.  Returns 0, -EAGAIN if the socket is full (call again), or another -errno if
 * close_notify cannot be sent any more.
 */
int tls_end(struct tls *);

/*
 * Returns true if the session's certificate is for this host, given without a port.  Checks the first
 * certificate of a name that has several.
 */
bool tls_covers(const struct tls *, const char *host, size_t len);

static inline bool
tls_is_resumed(const struct tls *tl)
{
	return tl->tl_log.lt_session.s_ptr[0] == 'r';
}

#endif
