/*
 * session: see session.h.  OpenSSL has a queue of errors for each thread, which must be empty
 * before each call of OpenSSL.  So this file empties the queue after each call that failed.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/util/check.h"
#include "lib/util/clock.h"
#include "server/tls/context_priv.h"
#include "server/tls/kernel.h"
#include "server/tls/key_schedule.h"
#include "server/tls/session.h"

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
tls_session_failure_of(int reason)
{
	/* Alerts of the client are SSL_AD_REASON_OFFSET plus their number. */
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
tls_session_failed(struct tls *tl, int result)
{
	unsigned long error = ERR_peek_error();

	tl->tl_state = TLS_FAILED;
	tl->tl_failure = result == SSL_ERROR_SYSCALL || error == 0
			     ? TLS_FAILURE_CLOSED
			     : tls_session_failure_of(ERR_GET_REASON(error));
	ERR_clear_error();
}

static struct str
tls_session_text_of(const char *text)
{
	return (struct str){text, text == NULL ? 0 : strlen(text)};
}

/*
 * Returns the subject of the client's certificate as in RFC 2253, or NULL if there is none.  The
 * caller frees it with free(3).
 */
static char *
tls_session_subject_of(const SSL *ssl)
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
tls_session_note(struct tls *tl)
{
	const SSL *ssl = tl->tl_ssl;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	tl->tl_name = name == NULL ? NULL : strdup(name);
	tl->tl_log = (struct log_tls){
	    .lt_version = tls_session_text_of(SSL_get_version(ssl)),
	    .lt_cipher = tls_session_text_of(SSL_get_cipher_name(ssl)),
	    .lt_name = tls_session_text_of(tl->tl_name),
	    .lt_session =
		SSL_session_reused(ssl) == 1 ? STR("resumed") : STR("full"),
	    .lt_subject = tls_session_text_of(
		tl->tl_subject = tls_session_subject_of(ssl)),
	    .lt_handshake = clock_now() - tl->tl_began,
	};
}

static bool
tls_session_take_over_writing(struct tls *tl, struct record_material *rm)
{
	if (!record_key_derive(&tl->tl_writes, tl->tl_ssl, tl->tl_records, rm))
		return false;
	/* The kernel cannot make records shorter than usual. */
	tl->tl_kernel = tl->tl_context->tx_ktls &&
			tl->tl_longest == RECORD_PLAIN &&
			tls_kernel_begin(tl->tl_fd, &tl->tl_writes, rm);
	return tl->tl_kernel || record_key_begin(&tl->tl_writes, rm);
}

/*
 * Returns the longest plaintext of a record, in bytes.  A client with little memory may request
 * shorter records (RFC 6066, 4): mode 1 is 512 bytes.
 */
static size_t
tls_session_longest(const SSL *ssl)
{
	unsigned mode =
	    SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl));

	return mode == TLSEXT_max_fragment_length_DISABLED
		   ? RECORD_PLAIN
		   : (size_t)256 << mode;
}

/*
 * Makes tl_reads decrypt the client's records instead of OpenSSL.  In TLS 1.3 the client has
 * not sent anything with this key yet; in TLS 1.2 the client has sent its Finished, maybe in
 * several records.
 */
static bool
tls_session_take_over_reading(struct tls *tl, struct record_material *rm)
{
	if (!record_key_derive(&tl->tl_reads, tl->tl_ssl, 0, rm))
		return false;
	if (!tl->tl_reads.rk_hides)
		tl->tl_reads.rk_number = tl->tl_finished;
	return record_key_begin(&tl->tl_reads, rm);
}

static bool
tls_session_take_over(struct tls *tl)
{
	struct record_material rm;
	bool done = tls_session_take_over_reading(tl, &rm) &&
		    tls_session_take_over_writing(tl, &rm);

	OPENSSL_cleanse(&rm, sizeof(rm));
	return done;
}

static bool
tls_session_chose_http2(const SSL *ssl)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(ssl, &name, &len);
	return len == 2 && memcmp(name, "h2", 2) == 0;
}

static void
tls_session_opened(struct tls *tl)
{
	tl->tl_http2 = tls_session_chose_http2(tl->tl_ssl);
	tl->tl_longest = tls_session_longest(tl->tl_ssl);
	if (!tls_session_take_over(tl)) {
		tl->tl_state = TLS_FAILED;
		tl->tl_failure = TLS_FAILURE_OURS;
		return;
	}
	tls_session_note(tl);
	tl->tl_state = TLS_OPEN;
}

/*
 * Counts the records that OpenSSL sends and receives with the keys that tl_writes and tl_reads take
 * over.  Notes the length of each message, before OpenSSL handles the message.
 */
static void
tls_session_on_message(int writes, int version, int type, const void *data,
    size_t len, SSL *ssl, void *arg)
{
	struct tls *tl = arg;

	(void)version, (void)ssl;
	if (!writes && type == SSL3_RT_HANDSHAKE)
		tl->tl_message = len;
	if (type != SSL3_RT_HEADER)
		return;
	if (!writes &&
	    *(const unsigned char *)data == SSL3_RT_CHANGE_CIPHER_SPEC)
		tl->tl_finished = 0;
	else if (!writes)
		tl->tl_finished++;
	else if (tl->tl_writes.rk_secret_len > 0)
		tl->tl_records++;
}

/* Makes OpenSSL use the BIO of bio.c. */
static bool
tls_session_set_bio(struct tls *tl)
{
	BIO *bio = BIO_new(tl->tl_context->tx_method);

	if (bio == NULL)
		return false;
	BIO_set_data(bio, tl);
	BIO_set_init(bio, 1);
	SSL_set_bio(tl->tl_ssl, bio, bio);
	return true;
}

static bool
tls_session_begin(struct tls *tl)
{
	SSL *ssl = SSL_new(tl->tl_context->tx_sites[0].pl_context);

	tl->tl_ssl = ssl;
	if (ssl == NULL || SSL_set_ex_data(ssl, tls_session_index(), tl) != 1)
		return false;
	SSL_set_accept_state(ssl);
	SSL_set_msg_callback(ssl, tls_session_on_message);
	SSL_set_msg_callback_arg(ssl, tl);
	return tls_session_set_bio(tl);
}

struct tls *
tls_of_waiter(struct pw_waiter *w)
{
	return (struct tls *)(void *)((char *)w -
				      offsetof(struct tls, tl_handshake) -
				      offsetof(struct handshake, hk_waiter));
}

static void
tls_session_step(struct tls *tl)
{
	int result;

	if (tl->tl_ssl == NULL && !tls_session_begin(tl)) {
		tls_session_failed(tl, SSL_ERROR_SSL);
		return;
	}
	key_schedule_store(&tl->tl_writes, &tl->tl_reads);
	result = SSL_do_handshake(tl->tl_ssl);
	key_schedule_store(NULL, NULL);
	if (result == 1) {
		tls_session_opened(tl);
		return;
	}
	result = SSL_get_error(tl->tl_ssl, result);
	if (result == SSL_ERROR_WANT_READ)
		tl->tl_state = TLS_WANT_READ;
	else if (result == SSL_ERROR_WANT_WRITE)
		tl->tl_state = TLS_WANT_WRITE;
	else if (result == SSL_ERROR_WANT_CLIENT_HELLO_CB ||
		 result == SSL_ERROR_WANT_X509_LOOKUP)
		tl->tl_state = TLS_LONG;
	else
		tls_session_failed(tl, result);
	ERR_clear_error();
}

/*
 * Returns true if the client has closed or reset the connection.  Bytes in the socket can still be
 * read.
 */
static bool
tls_session_nothing_follows(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLRDHUP};

	return poll(&pfd, 1, 0) == 1;
}

/*
 * Runs a step.  A client that left before its turn costs no signature.  After the last step, frees
 * OpenSSL's session, as everything that is still needed was copied.
 */
void
tls_step(struct tls *tl)
{
	if ((tl->tl_state == TLS_HELLO || tl->tl_state == TLS_LONG) &&
	    tls_session_nothing_follows(tl->tl_fd)) {
		tl->tl_state = TLS_FAILED;
		tl->tl_failure = TLS_FAILURE_CLOSED;
	} else
		tls_session_step(tl);
	if (tl->tl_state != TLS_OPEN && tl->tl_state != TLS_FAILED)
		return;
	SSL_free(tl->tl_ssl);
	tl->tl_ssl = NULL;
}

void
tls_step_here(struct tls *tl)
{
	tl->tl_brief = true;
	tls_step(tl);
	tl->tl_brief = false;
}

/* Runs a step on a thread of the handshaker: see hk_run. */
static bool
tls_session_run(struct handshake *hk)
{
	struct tls *tl = tls_of_waiter(&hk->hk_waiter);

	tls_step(tl);
	return tl->tl_state != TLS_WANT_READ;
}

/* Returns true if a session of TLS 1.2 is being resumed, which needs no key exchange. */
static bool
tls_session_resumes_12(const SSL *ssl)
{
	return SSL_version(ssl) == TLS1_2_VERSION &&
	       SSL_session_reused(ssl) == 1;
}

/* Returns true if the server has sent all its messages and requests no client certificate. */
bool
tls_step_is_short(const struct tls *tl)
{
	return tl->tl_state == TLS_WANT_READ &&
	       (tl->tl_writes.rk_secret_len > 0 ||
		   tls_session_resumes_12(tl->tl_ssl)) &&
	       SSL_get_verify_mode(tl->tl_ssl) == SSL_VERIFY_NONE;
}

/*
 * Checks the first record before a thread runs a step.  So a client that sends this record byte by
 * byte, sends nothing, or sends plain HTTP costs as little as a client without TLS.  Returns as
 * tls_awaits does.
 */
static int
tls_session_first_record(int fd)
{
	unsigned char head[RECORD_HEADER];
	ssize_t n;
	size_t len;
	int there;

	do
		n = recv(fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n == 0)
		return -EPIPE;
	if (n == -1)
		return errno == EAGAIN ? -EAGAIN : -errno;
	if (head[0] >= 'A' && head[0] <= 'Z')
		return -EPROTO;
	/* OpenSSL sends an alert if the client begins with another record. */
	if (head[0] != SSL3_RT_HANDSHAKE)
		return 0;
	len = record_length(head, (size_t)n);
	if (len == 0)
		return tls_session_nothing_follows(fd) ? -EPIPE : -EAGAIN;
	if (len > RECORD_LONGEST || ioctl(fd, FIONREAD, &there) == -1)
		return 0;
	if ((size_t)there >= len)
		return 0;
	return tls_session_nothing_follows(fd) ? -EPIPE : -EAGAIN;
}

int
tls_awaits(const struct tls *tl)
{
	struct pollfd pfd = {.fd = tl->tl_fd,
	    .events = tl->tl_state == TLS_WANT_WRITE ? POLLOUT : POLLIN};

	if (tl->tl_state == TLS_HELLO)
		return tls_session_first_record(tl->tl_fd);
	if (tl->tl_state == TLS_LONG)
		return 0;
	/* After an error of poll, the step runs and reports it. */
	return poll(&pfd, 1, 0) == 0 ? -EAGAIN : 0;
}

/* --------------------------------------------------- create and destroy */

struct tls *
tls_create(struct tls_context *tx, int fd)
{
	struct tls *tl = calloc(1, sizeof(*tl));

	if (tl == NULL)
		return NULL;
	tls_stream_init(tl);
	tl->tl_reads.rk_reads = true;
	tl->tl_handshake.hk_run = tls_session_run;
	tl->tl_context = tx;
	tl->tl_fd = fd;
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
	record_key_end(&tl->tl_writes);
	record_key_end(&tl->tl_reads);
	SSL_free(tl->tl_ssl);
	ERR_clear_error();
	free(tl->tl_subject);
	free(tl->tl_name);
	free(tl->tl_inbox.ib_mem);
	free(tl->tl_rest);
	free(tl);
}

/* ---------------------------------------------------------------- queries */

bool
tls_covers(const struct tls *tl, const char *host, size_t len)
{
	return identity_covers(
	    tl->tl_context->tx_sites[tl->tl_place].pl_identity, host, len);
}
