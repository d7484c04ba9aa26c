/*
 * stream: sends data on an open session (session.h).
 */
#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/os/os.h"
#include "server/tls/context_priv.h"
#include "server/tls/kernel.h"
#include "server/tls/session.h"

#define FIRST	4096 /* maximum plaintext of a response's first record, bytes */
#define UNASKED 5    /* records that are made whatever space the socket has */
/* maximum size of tl_rest, bytes: gathered records, and messages such as alerts */
#define REST	(TLS_GATHER + 65536)

static struct tls *
tls_stream_tls_of(struct pw_sink *sk)
{
	return (struct tls *)(void *)sk;
}

/* Sends records to the socket.  Returns the bytes that the socket accepted, or -errno. */
static long
tls_stream_give(struct tls *tl, const char *data, size_t len, bool more)
{
	size_t n;
	int error;

	do
		error = os_send(tl->tl_fd, data, len, more, &n);
	while (error == -EINTR);
	if (error == 0 || error == -EAGAIN || error == -ENOBUFS)
		return (long)n;
	return error;
}

/*
 * Sends tl_rest.  Returns 0, -EAGAIN if the socket has not accepted all of it, or another -errno.
 */
static int
tls_stream_give_rest(struct tls *tl, bool more)
{
	long n;

	if (tl->tl_rest_len == 0)
		return 0;
	n = tls_stream_give(
	    tl, tl->tl_rest + tl->tl_rest_at, tl->tl_rest_len, more);
	if (n < 0)
		return (int)n;
	tl->tl_rest_at += (size_t)n;
	tl->tl_rest_len -= (size_t)n;
	if (tl->tl_rest_len > 0)
		return -EAGAIN;
	free(tl->tl_rest);
	tl->tl_rest = NULL;
	tl->tl_rest_at = 0;
	return 0;
}

/* Appends the unsent end of gathered records to tl_rest.  Returns 0 or -errno. */
static int
tls_stream_keep(struct tls *tl, const char *data, size_t len)
{
	char *grown;

	if (len == 0)
		return 0;
	if (tl->tl_rest_len + len > REST)
		return -ENOBUFS;
	grown = malloc(tl->tl_rest_len + len);
	if (grown == NULL)
		return -ENOMEM;
	if (tl->tl_rest_len > 0)
		memcpy(grown, tl->tl_rest + tl->tl_rest_at, tl->tl_rest_len);
	memcpy(grown + tl->tl_rest_len, data, len);
	free(tl->tl_rest);
	tl->tl_rest = grown;
	tl->tl_rest_at = 0;
	tl->tl_rest_len += len;
	return 0;
}

/* Sends a record that is not application data. */
static int
tls_stream_say(struct tls *tl, unsigned char type, const void *data, size_t len)
{
	char *record = tl->tl_context->tx_gather;
	size_t all;
	long n = 0;

	if (tl->tl_kernel)
		return tls_kernel_say(tl->tl_fd, type, data, len);
	all = record_write(
	    &tl->tl_writes, type, data, len, (unsigned char *)record);
	if (all == 0)
		return -EPROTO;
	if (tl->tl_rest_len == 0)
		n = tls_stream_give(tl, record, all, false);
	if (n < 0)
		return (int)n;
	return tls_stream_keep(tl, record + n, all - (size_t)n);
}

/*
 * Sends a KeyUpdate and changes the server's key (RFC 8446, 4.6.3).  Fails if the kernel encrypts,
 * since the kernel would continue with the old key.
 */
static int
tls_stream_say_update(struct tls *tl)
{
	static const unsigned char update[TLS_UPDATE] = {
	    SSL3_MT_KEY_UPDATE, 0, 0, 1, SSL_KEY_UPDATE_NOT_REQUESTED};
	int error = tl->tl_kernel ? -EPROTO
				  : tls_stream_say(tl, SSL3_RT_HANDSHAKE,
					update, sizeof(update));

	tl->tl_wants_update = false;
	return error == 0 && !record_key_update(&tl->tl_writes) ? -EPROTO
								: error;
}

/* Sends an alert even after a failure (RFC 8446, 6.2), because the keys can still be used. */
int
tls_say_what_is_due(struct tls *tl)
{
	int error = 0;

	if (tl->tl_broken)
		return -EPIPE;
	if (tl->tl_wants_update)
		error = tls_stream_say_update(tl);
	if (error == 0 && tl->tl_alert[0] != 0)
		error = tls_stream_say(
		    tl, SSL3_RT_ALERT, tl->tl_alert, sizeof(tl->tl_alert));
	if (error != 0 || tl->tl_alert[0] == SSL3_AL_FATAL)
		tl->tl_broken = true;
	tl->tl_alert[0] = 0;
	/*
	 * Returns -EPIPE for every error, also for -EAGAIN: if the socket is full while the kernel
	 * encrypts, nothing more can be sent.
	 */
	return error == 0 ? 0 : -EPIPE;
}

/*
 * Returns the plaintext length of the next record.  A client cannot read a record before the whole
 * record has arrived.  While the congestion window is small, the first record of a response is
 * small, too, so that the first bytes can be read a round trip earlier.
 */
static size_t
tls_stream_record_size(const struct tls *tl, unsigned before, size_t len)
{
	size_t most = tl->tl_longest;

	if (!tl->tl_warm && before == 0 && most > FIRST)
		most = FIRST;
	return len < most ? len : most;
}

/* Records in tx_gather. */
struct gathered {
	unsigned g_count;	     /* number of records */
	size_t g_plain[TLS_RECORDS]; /* plaintext bytes of each record */
	size_t g_end[TLS_RECORDS];   /* offset of the end of each record */
};

/* Returns the plaintext bytes of the records. */
static size_t
tls_stream_plain(const struct gathered *g)
{
	size_t n = 0;

	for (unsigned i = 0; i < g->g_count; i++)
		n += g->g_plain[i];
	return n;
}

/*
 * Returns the number of records to make.  The session keeps records that the socket does not
 * accept, so there are only many if the socket has space.
 */
static unsigned
tls_stream_most_records(const struct tls *tl, size_t len)
{
	long space;

	if (tl->tl_chunk <= UNASKED || len <= UNASKED * RECORD_PLAIN)
		return tl->tl_chunk;
	space = os_space(tl->tl_fd);
	space -= space / 8; /* for the kernel's own memory of each packet */
	space /= (long)(RECORD_PLAIN + RECORD_OVERHEAD);
	if (space < UNASKED)
		return UNASKED;
	return space < (long)tl->tl_chunk ? (unsigned)space : tl->tl_chunk;
}

/*
 * Encrypts the plaintext into records in tx_gather.  Returns their total length, or 0 if the cipher
 * failed.
 */
static size_t
tls_stream_make_records(
    struct tls *tl, const char *mem, size_t len, struct gathered *g)
{
	unsigned most = tls_stream_most_records(tl, len);
	unsigned char *to = (unsigned char *)tl->tl_context->tx_gather;
	size_t n, made, all = 0;

	g->g_count = 0;
	while (len > 0 && g->g_count < most) {
		n = tls_stream_record_size(tl, g->g_count, len);
		made = record_write(
		    &tl->tl_writes, SSL3_RT_APPLICATION_DATA, mem, n, to + all);
		if (made == 0)
			return 0;
		all += made;
		g->g_plain[g->g_count] = n;
		g->g_end[g->g_count++] = all;
		mem += n;
		len -= n;
	}
	return all;
}

/*
 * Returns the plaintext bytes of the records that lie completely in the n bytes sent.  Sets tl_held
 * to the plaintext bytes of the other records.
 */
static size_t
tls_stream_count_taken(struct tls *tl, const struct gathered *g, size_t n)
{
	size_t taken = 0;

	tl->tl_held = 0;
	for (unsigned i = 0; i < g->g_count; i++)
		if (g->g_end[i] <= n)
			taken += g->g_plain[i];
		else
			tl->tl_held += g->g_plain[i];
	return taken;
}

/*
 * Adapts the number of records per call: twice as many if the socket accepted all bytes, one record
 * if not, so that the session keeps less.
 */
static void
tls_stream_fit_chunk(struct tls *tl, const struct gathered *g, bool whole)
{
	tl->tl_warm = true;
	if (!whole)
		tl->tl_chunk = 1;
	else if (g->g_count == tl->tl_chunk)
		tl->tl_chunk = 2 * tl->tl_chunk < TLS_RECORDS ? 2 * tl->tl_chunk
							      : TLS_RECORDS;
}

static int
tls_stream_send_records(
    struct tls *tl, const char *mem, size_t len, bool more, size_t *taken)
{
	const char *records = tl->tl_context->tx_gather;
	struct gathered g;
	size_t all = tls_stream_make_records(tl, mem, len, &g);
	long n = all == 0 ? -EPROTO
			  : tls_stream_give(tl, records, all,
				more || tls_stream_plain(&g) < len);
	int error =
	    n < 0 ? (int)n : tls_stream_keep(tl, records + n, all - (size_t)n);

	if (error != 0) {
		tl->tl_broken = true;
		return error;
	}
	tls_stream_fit_chunk(tl, &g, (size_t)n == all);
	*taken += tls_stream_count_taken(tl, &g, (size_t)n);
	return 0;
}

/* Accepts plaintext whose records were kept and are sent now.  Returns the number of bytes. */
static size_t
tls_stream_take_held(struct tls *tl, size_t len)
{
	size_t n = tl->tl_held < len ? tl->tl_held : len;

	tl->tl_held -= n;
	return n;
}

static int
tls_stream_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct tls *tl = tls_stream_tls_of(sk);
	int error;

	*taken = 0;
	if (tl->tl_broken)
		return -EPIPE;
	error = tls_stream_give_rest(tl, more);
	if (error != 0)
		return error;
	*taken = tls_stream_take_held(tl, len);
	if (*taken == len || tl->tl_held > 0)
		return 0;
	if (record_key_is_worn(&tl->tl_writes))
		error = tls_stream_say_update(tl);
	while (error == 0 && *taken < len && tl->tl_held == 0)
		error = tls_stream_send_records(
		    tl, mem + *taken, len - *taken, more, taken);
	return error == 0 && *taken == 0 ? -EAGAIN : error;
}

/* Returns 0, since records are copies, and need no page of the page cache any more. */
static long
tls_stream_unacked(struct pw_sink *sk)
{
	(void)sk;
	return 0;
}

static const struct pw_sink_ops sink_ops = {
    .take = tls_stream_take, .unacked = tls_stream_unacked};

void
tls_stream_init(struct tls *tl)
{
	tl->tl_sink.sk_ops = &sink_ops;
	tl->tl_chunk = 1;
	tl->tl_longest = RECORD_PLAIN;
}

struct pw_sink *
tls_sink(struct tls *tl)
{
	return tl->tl_kernel ? NULL : &tl->tl_sink;
}

size_t
tls_unsent(const struct tls *tl)
{
	return tl->tl_rest_len;
}

int
tls_end(struct tls *tl)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL3_AD_CLOSE_NOTIFY};
	int error = 0;

	if (tl->tl_broken || tl->tl_state != TLS_OPEN)
		return -EPIPE;
	if (!tl->tl_told)
		error = tls_stream_say(
		    tl, SSL3_RT_ALERT, close_notify, sizeof(close_notify));
	tl->tl_told = error != -EAGAIN;
	return error == 0 ? tls_stream_give_rest(tl, false) : error;
}
