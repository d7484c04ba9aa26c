/*
 * session: TLS on one connection.  The handshake is OpenSSL's and runs on the threads of
 * handshaker.h, step by step, and nothing else uses the session meanwhile; what comes after it is
 * done here (record.h), on the loop's thread: OpenSSL's session is gone by then.
 *
 * Records are made here and sent with as few calls as possible; or by the kernel, where
 * it encrypts: then the socket is used like one without TLS, and tls_sink is NULL.
 *
 * What a sink takes has been given to the kernel, like what a socket takes.  Of records
 * that the socket did not take whole the session keeps the rest; the same bytes are to be
 * offered again, as to SSL_write(3), and count as taken once the rest has gone.
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
	TLS_HELLO,	/* nothing was computed yet */
	TLS_WANT_READ,	/* the client's next message */
	TLS_WANT_WRITE, /* room in the socket */
	TLS_OPEN,
	TLS_FAILED,
};

/* Why a handshake has failed. */
enum tls_failure {
	TLS_FAILURE_ALERT, /* the client has refused: our certificate, say */
	TLS_FAILURE_NONE_SHARED, /* no version, cipher, group or protocol of ours */
	TLS_FAILURE_CERTIFICATE, /* the client's */
	TLS_FAILURE_CLOSED,	 /* the client has gone */
	TLS_FAILURE_BROKEN,	 /* its messages were not TLS, or damaged */
	TLS_FAILURE_OURS,	 /* no memory, or a fault */
	TLS_FAILURES
};

/* What has come and was not taken: the rest of a record's plaintext, and records behind it. */
struct tls_inbox {
	unsigned char *ib_mem; /* NULL: nothing */
	size_t ib_at;
	size_t ib_plain;
	size_t ib_raw;
};

#define TLS_UPDATE 5 /* bytes of KeyUpdate: RFC 8446, 4.6.3 */

struct ssl_st; /* OpenSSL's */

struct tls {
	struct pw_sink tl_sink; /* first: found by it */
	struct handshake tl_handshake;
	void *tl_owner; /* the caller's */
	struct tls_context *tl_context;
	struct ssl_st
	    *tl_ssl; /* NULL before the first step, and after the last one */
	int tl_fd;   /* the connection's */
	enum tls_state tl_state;
	enum tls_failure tl_failure;
	const struct tls_site *tl_site;
	size_t tl_place;   /* of the site in its context */
	bool tl_http2;	   /* what ALPN has chosen; else HTTP/1 */
	bool tl_kernel;	   /* the kernel encrypts */
	bool tl_told;	   /* our close_notify is made */
	bool tl_broken;	   /* nothing more can be sent */
	bool tl_closed;	   /* the client's close_notify has come */
	uint64_t tl_began; /* of the handshake, microseconds */
	uint64_t
	    tl_records; /* that OpenSSL sent with the key of the next one */
	uint64_t tl_finished; /* records since the client's ChangeCipherSpec */
	struct record_key tl_writes;
	struct record_key tl_reads;
	struct log_tls
	    tl_log;	  /* once it is open; its texts are the session's */
	char *tl_subject; /* of tl_log */
	char *tl_name;	  /* of tl_log */
	/* receive.c */
	struct tls_inbox tl_inbox;
	unsigned char tl_update[TLS_UPDATE]; /* that has not come as a whole */
	unsigned char tl_update_len;
	struct token_bucket tl_updates; /* KeyUpdates that may come */
	unsigned char tl_idle;		/* records in a row without data */
	bool tl_drained;		/* the last call emptied the socket */
	bool tl_wants_update;		/* the client wants a new key of ours */
	unsigned char tl_alert[2];	/* that is due: level, cause; or 0 */
	/* stream.c: records that the socket had no room for ... */
	char *tl_rest;
	size_t tl_rest_at;
	size_t tl_rest_len;
	size_t tl_held;	   /* ... and how much of them is not taken yet */
	unsigned tl_chunk; /* records of the next call */
	size_t tl_longest; /* bytes of plaintext in a record, at most */
	bool tl_warm;	   /* something was sent before */
};

/* A step is due: its waiter's wt_done is set by the caller.  NULL: no memory. */
struct tls *tls_create(struct tls_context *, int fd);
void tls_destroy(struct tls **);

struct tls *tls_of_waiter(struct pw_waiter *);

/*
 * Is the next step of the handshake due?  The loop's thread.  -EAGAIN: not yet; -EPROTO: the
 * client speaks plain HTTP; -EPIPE: its end.
 */
int tls_awaits(const struct tls *);

/*
 * The next step takes well below 0.1 ms: a client's Finished, of TLS 1.3.  Then it may be made on the
 * loop: the way to another thread and back would cost a third of it.
 */
bool tls_step_is_short(const struct tls *);
void tls_step(struct tls *);

/* Where answers go, or NULL: the socket. */
struct pw_sink *tls_sink(struct tls *);

/* As transport_recv, after the handshake. */
long tls_recv(struct tls *, void *, size_t room);

/* Nothing that has come can be read now, as far as is known. */
bool tls_is_drained(const struct tls *);

/* Something was received, and not read yet. */
bool tls_has_input(const struct tls *);

/* Bytes of records that the kernel was not given yet. */
size_t tls_unsent(const struct tls *);

/*
 * Says that no more follows (close_notify).  0, or -EAGAIN: the socket is full, call again;
 * other errors: it cannot be said any more.
 */
int tls_end(struct tls *);

/*
 * Whether the certificate that it was opened with is for this host, without a port; the first
 * one of a name, if it has several.
 */
bool tls_covers(const struct tls *, const char *host, size_t len);

static inline bool
tls_is_resumed(const struct tls *tl)
{
	return tl->tl_log.lt_session.s_ptr[0] == 'r';
}

#endif
