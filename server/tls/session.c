/*
 * session: see session.h.  OpenSSL's queue of errors is the thread's, and is empty between two
 * of its calls here: each that fails empties it.
 */
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/util/check.h"
#include "lib/util/clock.h"
#include "server/tls/context_priv.h"
#include "server/tls/session.h"

#define STEPS	64     /* of a handshake: one that trickles ends */
#define FIRST	4096   /* bytes of the first record of an answer: below */
#define REST	262144 /* bytes that may be kept, at most */
#define HEADER	5      /* of a record */
#define LONGEST (TLS_RECORD + 2048) /* bytes of a record: RFC 5246, 6.2.3 */

static struct tls *
tls_of(struct pw_sink *sk)
{
	return (struct tls *)(void *)sk;
}

int
tls_session_index(void)
{
	static int place = -1;

	if (place == -1)
		place = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	return place;
}

/* ---------------------------------------------------------- the handshake */

static enum tls_failure
failure_of(int reason)
{
	/* Alerts of the client: SSL_AD_REASON_OFFSET and the number. */
	if (reason >= SSL_AD_REASON_OFFSET)
		return TLS_FAILURE_ALERT;
	switch (reason) {
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_APPLICATION_PROTOCOL:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_VERSION_TOO_LOW:
		return TLS_FAILURE_NONE_SHARED;
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return TLS_FAILURE_CERTIFICATE;
	case SSL_R_UNEXPECTED_EOF_WHILE_READING:
		return TLS_FAILURE_CLOSED;
	case ERR_R_MALLOC_FAILURE:
	case ERR_R_INTERNAL_ERROR:
		return TLS_FAILURE_OURS;
	default:
		return TLS_FAILURE_BROKEN;
	}
}

static void
failed(struct tls *tl, int result)
{
	unsigned long error = ERR_peek_error();

	tl->tl_state = TLS_FAILED;
	tl->tl_failure = result == SSL_ERROR_SYSCALL || error == 0
			     ? TLS_FAILURE_CLOSED
			     : failure_of(ERR_GET_REASON(error));
	ERR_clear_error();
}

/* From now on records are gathered; alerts and answers to them, too. */
static bool
gather_records(struct tls *tl)
{
	BIO *bio = BIO_new(tl->tl_context->tx_method);

	if (bio == NULL)
		return false;
	BIO_set_data(bio, tl);
	BIO_set_init(bio, 1);
	SSL_set_bio(tl->tl_ssl, bio, bio);
	return true;
}

static struct str
text_of(const char *text)
{
	return (struct str){text, text == NULL ? 0 : strlen(text)};
}

/* As RFC 2253 writes it; free(3) is its end.  NULL: it has shown no certificate. */
static char *
subject_of(const SSL *ssl)
{
	X509 *cert = SSL_get0_peer_certificate(ssl);
	BIO *bio = cert == NULL ? NULL : BIO_new(BIO_s_mem());
	char *text = NULL;
	int n;

	if (bio == NULL)
		return NULL;
	n = X509_NAME_print_ex(
	    bio, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253);
	if (n > 0)
		text = calloc(1, (size_t)n + 1);
	if (text != NULL)
		BIO_read(bio, text, n);
	BIO_free(bio);
	return text;
}

static void
note(struct tls *tl)
{
	const SSL *ssl = tl->tl_ssl;

	tl->tl_log = (struct log_tls){
	    .lt_version = text_of(SSL_get_version(ssl)),
	    .lt_cipher = text_of(SSL_get_cipher_name(ssl)),
	    .lt_name =
		text_of(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)),
	    .lt_session =
		SSL_session_reused(ssl) == 1 ? STR("resumed") : STR("full"),
	    .lt_subject = text_of(tl->tl_subject = subject_of(ssl)),
	    .lt_handshake = clock_now() - tl->tl_began,
	};
}

static void
opened(struct tls *tl)
{
	tl->tl_kernel = BIO_get_ktls_send(SSL_get_wbio(tl->tl_ssl)) != 0;
	SSL_set_read_ahead(tl->tl_ssl, 1);
	if (!tl->tl_kernel && !gather_records(tl)) {
		tl->tl_state = TLS_FAILED;
		tl->tl_failure = TLS_FAILURE_OURS;
		return;
	}
	note(tl);
	tl->tl_state = TLS_OPEN;
}

static bool
begin(struct tls *tl)
{
	SSL *ssl = SSL_new(tl->tl_context->tx_contexts[0]);
	BIO *bio = ssl == NULL ? NULL : BIO_new_socket(tl->tl_fd, BIO_NOCLOSE);

	tl->tl_ssl = ssl;
	if (bio == NULL || SSL_set_ex_data(ssl, tls_session_index(), tl) != 1) {
		BIO_free(bio);
		return false;
	}
	SSL_set_bio(ssl, bio, bio);
	SSL_set_accept_state(ssl);
	return true;
}

struct tls *
tls_of_waiter(struct pw_waiter *w)
{
	return (struct tls *)(void *)((char *)w -
				      offsetof(struct tls, tl_handshake) -
				      offsetof(struct handshake, hk_waiter));
}

/* On a thread of the handshaker. */
static int
step(struct handshake *hk)
{
	struct tls *tl = tls_of_waiter(&hk->hk_waiter);
	int result;

	ERR_clear_error();
	if ((tl->tl_ssl == NULL && !begin(tl)) || ++tl->tl_steps > STEPS) {
		failed(tl, SSL_ERROR_SSL);
		return 0;
	}
	result = SSL_do_handshake(tl->tl_ssl);
	if (result == 1) {
		opened(tl);
		return 0;
	}
	result = SSL_get_error(tl->tl_ssl, result);
	if (result == SSL_ERROR_WANT_READ)
		tl->tl_state = TLS_WANT_READ;
	else if (result == SSL_ERROR_WANT_WRITE)
		tl->tl_state = TLS_WANT_WRITE;
	else
		failed(tl, result);
	return 0;
}

/*
 * The first message is looked at before a thread is: a client that sends it byte by byte, or
 * none, or plain HTTP, costs no more than one without TLS.
 */
static int
first_record(int fd)
{
	unsigned char head[HEADER];
	ssize_t n = recv(fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
	size_t len;
	int there;

	if (n == 0)
		return -EPIPE;
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
	if (head[0] >= 'A' && head[0] <= 'Z')
		return -EPROTO;
	/* OpenSSL says what is wrong with it. */
	if (head[0] != SSL3_RT_HANDSHAKE)
		return 0;
	if (n < HEADER)
		return -EAGAIN;
	len = HEADER + ((size_t)head[3] << 8 | head[4]);
	if (len > LONGEST || ioctl(fd, FIONREAD, &there) == -1)
		return 0;
	return (size_t)there >= len ? 0 : -EAGAIN;
}

int
tls_awaits(const struct tls *tl)
{
	struct pollfd pfd = {.fd = tl->tl_fd,
	    .events = tl->tl_state == TLS_WANT_WRITE ? POLLOUT : POLLIN};

	if (tl->tl_state == TLS_HELLO)
		return first_record(tl->tl_fd);
	return poll(&pfd, 1, 0) == 1 ? 0 : -EAGAIN;
}

/* ---------------------------------------------------------------- sending */

/* Each call is one record. */
static int
gather_write(BIO *bio, const char *data, int len)
{
	struct tls *tl = BIO_get_data(bio);
	struct tls_context *tx = tl->tl_context;

	BIO_clear_retry_flags(bio);
	if (len <= 0 || (size_t)len > sizeof(tx->tx_gather) - tx->tx_gathered)
		return -1;
	memcpy(tx->tx_gather + tx->tx_gathered, data, (size_t)len);
	tx->tx_gathered += (size_t)len;
	return len;
}

static int
socket_read(BIO *bio, char *to, int room)
{
	struct tls *tl = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	do
		n = recv(tl->tl_fd, to, (size_t)room, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	tl->tl_drained = n < room;
	if (n == -1 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	return (int)n;
}

static long
bio_ctrl(BIO *bio, int cmd, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return cmd == BIO_CTRL_FLUSH;
}

BIO_METHOD *
tls_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(
	    BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "connection");

	if (method == NULL)
		return NULL;
	BIO_meth_set_write(method, gather_write);
	BIO_meth_set_read(method, socket_read);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return method;
}

/* Bytes that the socket took, or -errno. */
static long
give(struct tls *tl, const char *data, size_t len, bool more)
{
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
	ssize_t n;

	do
		n = send(tl->tl_fd, data, len, flags);
	while (n == -1 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS
		   ? 0
		   : -errno;
}

/* 0, or -EAGAIN: some of it is left. */
static int
give_rest(struct tls *tl, bool more)
{
	long n;

	if (tl->tl_rest_len == 0)
		return 0;
	n = give(tl, tl->tl_rest + tl->tl_rest_at, tl->tl_rest_len, more);
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

/* The end of what was gathered, behind what is kept already. */
static int
keep(struct tls *tl, const char *data, size_t len)
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

/* What OpenSSL wrote of its own accord: alerts, answers to key updates. */
static int
give_gathered(struct tls *tl)
{
	struct tls_context *tx = tl->tl_context;
	size_t len = tx->tx_gathered;
	long n = 0;

	tx->tx_gathered = 0;
	if (len == 0)
		return 0;
	if (tl->tl_rest_len == 0)
		n = give(tl, tx->tx_gather, len, false);
	if (n < 0)
		return (int)n;
	return keep(tl, tx->tx_gather + n, len - (size_t)n);
}

/*
 * A client can read nothing of a record before it has all of it.  While its congestion window is
 * small the first one of an answer is too, so that what it begins with comes a round trip
 * earlier.
 */
static size_t
record(const struct tls *tl, size_t len)
{
	size_t most =
	    tl->tl_warm || tl->tl_context->tx_gathered > 0 ? TLS_RECORD : FIRST;

	return len < most ? len : most;
}

/* Bytes of plaintext in each record that was gathered, and where it ends. */
struct gathered {
	unsigned g_count;
	size_t g_plain[TLS_RECORDS + 1];
	size_t g_end[TLS_RECORDS + 1];
};

static int
make_records(struct tls *tl, const char *mem, size_t len, struct gathered *g)
{
	struct tls_context *tx = tl->tl_context;
	size_t n, done;

	g->g_count = 0;
	tx->tx_gathered = 0;
	while (len > 0 && g->g_count < tl->tl_share) {
		n = record(tl, len);
		if (SSL_write_ex(tl->tl_ssl, mem, n, &done) != 1) {
			ERR_clear_error();
			tx->tx_gathered = 0;
			tl->tl_broken = true;
			return -EPROTO;
		}
		g->g_plain[g->g_count] = done;
		g->g_end[g->g_count++] = tx->tx_gathered;
		mem += done;
		len -= done;
	}
	return 0;
}

/* Of n bytes that went out whole records count; the rest of the plaintext is held. */
static size_t
count_taken(struct tls *tl, const struct gathered *g, size_t n)
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

/* One that takes all gets more with a call; of one that does not less has to be kept. */
static void
fit_share(struct tls *tl, const struct gathered *g, bool whole)
{
	tl->tl_warm = true;
	if (!whole)
		tl->tl_share = 1;
	else if (g->g_count == tl->tl_share && tl->tl_share < TLS_RECORDS)
		tl->tl_share *= 2;
}

static int
send_records(
    struct tls *tl, const char *mem, size_t len, bool more, size_t *taken)
{
	struct tls_context *tx = tl->tl_context;
	struct gathered g;
	size_t all;
	long n;
	int error = make_records(tl, mem, len, &g);

	if (error != 0)
		return error;
	all = tx->tx_gathered;
	n = give(tl, tx->tx_gather, all, more);
	tx->tx_gathered = 0;
	if (n >= 0)
		error = keep(tl, tx->tx_gather + n, all - (size_t)n);
	else
		error = (int)n;
	if (error != 0) {
		tl->tl_broken = true;
		return error;
	}
	fit_share(tl, &g, (size_t)n == all);
	*taken += count_taken(tl, &g, (size_t)n);
	return 0;
}

/* What was held has gone. */
static size_t
take_held(struct tls *tl, size_t len)
{
	size_t n = tl->tl_held < len ? tl->tl_held : len;

	tl->tl_held -= n;
	return n;
}

static int
take(struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct tls *tl = tls_of(sk);
	int error;

	*taken = 0;
	if (tl->tl_broken)
		return -EPIPE;
	error = give_rest(tl, more);
	if (error != 0)
		return error;
	*taken = take_held(tl, len);
	if (*taken == len || tl->tl_held > 0)
		return 0;
	error = send_records(tl, mem + *taken, len - *taken, more, taken);
	return error == 0 && *taken == 0 ? -EAGAIN : error;
}

/* It is copied: nothing of the page cache is needed any more. */
static long
unacked(struct pw_sink *sk)
{
	(void)sk;
	return 0;
}

static const struct pw_sink_ops sink_ops = {.take = take, .unacked = unacked};

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
	int error;

	if (tl->tl_broken || tl->tl_state != TLS_OPEN)
		return -EPIPE;
	if (!tl->tl_told) {
		tl->tl_told = true;
		(void)SSL_shutdown(tl->tl_ssl);
		ERR_clear_error();
		error = tl->tl_kernel ? 0 : give_gathered(tl);
		if (error != 0)
			return error;
	}
	return give_rest(tl, false);
}

/* -------------------------------------------------------------- receiving */

/* After our close_notify, or an alert, nothing that comes is of interest. */
static long
discard(struct tls *tl, void *to, size_t room)
{
	ssize_t n;

	do
		n = recv(tl->tl_fd, to, room, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : n;
}

static long
nothing(struct tls *tl, int result)
{
	int error = SSL_get_error(tl->tl_ssl, result);
	int cause = errno;

	ERR_clear_error();
	switch (error) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		tl->tl_broken = true;
		return cause != 0 ? -cause : -ECONNRESET;
	default:
		tl->tl_broken = true;
		return -EPROTO;
	}
}

long
tls_recv(struct tls *tl, void *to, size_t room)
{
	long result;
	int n, error = 0;

	if (tl->tl_told || tl->tl_state != TLS_OPEN)
		return discard(tl, to, room);
	errno = 0;
	tl->tl_context->tx_gathered = 0;
	n = SSL_read(tl->tl_ssl, to, room < INT32_MAX ? (int)room : INT32_MAX);
	result = n > 0 ? n : nothing(tl, n);
	if (!tl->tl_kernel)
		error = give_gathered(tl);
	return error == 0 || result > 0 ? result : error;
}

bool
tls_is_drained(const struct tls *tl)
{
	return tl->tl_drained && SSL_has_pending(tl->tl_ssl) == 0;
}

bool
tls_has_input(const struct tls *tl)
{
	return tl->tl_ssl != NULL && SSL_has_pending(tl->tl_ssl) == 1;
}

/* -------------------------------------------------------- begin and end */

struct tls *
tls_create(struct tls_context *tx, int fd)
{
	struct tls *tl = calloc(1, sizeof(*tl));

	if (tl == NULL)
		return NULL;
	tl->tl_sink.sk_ops = &sink_ops;
	tl->tl_handshake.hk_run = step;
	tl->tl_context = tx;
	tl->tl_fd = fd;
	tl->tl_share = 1;
	tl->tl_began = clock_now();
	return tl;
}

void
tls_destroy(struct tls **tlp)
{
	struct tls *tl = *tlp;

	if (tl == NULL)
		return;
	*tlp = NULL;
	SSL_free(tl->tl_ssl);
	ERR_clear_error();
	free(tl->tl_subject);
	free(tl->tl_rest);
	free(tl);
}

/* -------------------------------------------------------------- questions */

bool
tls_covers(const struct tls *tl, const char *host, size_t len)
{
	return identity_covers(
	    tl->tl_context->tx_identities[tl->tl_place], host, len);
}
