/*
 * client_tls: see client_tls.h.
 */
#include "client_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define CIPHER "TLS_AES_256_GCM_SHA384"
#define GROUP  "X25519"
#define RECORD 16384 /* bytes of content, at most */

static SSL_CTX *context;
static SSL **sessions; /* by descriptor */
static size_t sessions_n;
static bool keep;
static bool http2;
static SSL_SESSION *ticket;

/* A copy: the connection's end without close_notify spoils its own. */
static int
on_ticket(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	if (keep && ticket == NULL)
		ticket = SSL_SESSION_dup(session);
	return 0;
}

void
client_tls_start(void)
{
	if (context != NULL)
		return;
	/* OpenSSL writes to a socket without MSG_NOSIGNAL. */
	signal(SIGPIPE, SIG_IGN);
	context = SSL_CTX_new(TLS_client_method());
	if (context == NULL ||
	    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(context, CIPHER) != 1 ||
	    SSL_CTX_set1_groups_list(context, GROUP) != 1)
		errx(1, "TLS: %s",
		    ERR_reason_error_string(ERR_peek_last_error()));
	SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_session_cache_mode(
	    context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, on_ticket);
}

void
client_tls_http2(void)
{
	static const unsigned char alpn[] = {2, 'h', '2'};

	client_tls_start();
	if (SSL_CTX_set_alpn_protos(context, alpn, sizeof(alpn)) != 0)
		errx(1, "TLS: no memory");
	http2 = true;
}

static bool
took_http2(const SSL *ssl)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(ssl, &name, &len);
	return len == 2 && memcmp(name, "h2", 2) == 0;
}

static void
make_room(size_t n)
{
	size_t more = sessions_n > 0 ? sessions_n : 64;

	while (more < n)
		more *= 2;
	if (more == sessions_n)
		return;
	sessions = reallocarray(sessions, more, sizeof(SSL *));
	if (sessions == NULL)
		err(1, NULL);
	memset(sessions + sessions_n, 0, (more - sessions_n) * sizeof(SSL *));
	sessions_n = more;
}

/* OpenSSL uses a ticket of TLS 1.3 once: hence a copy for each connection. */
static void
use_ticket(SSL *ssl)
{
	SSL_SESSION *copy = SSL_SESSION_dup(ticket);

	if (copy == NULL || SSL_set_session(ssl, copy) != 1)
		errx(1, "TLS: the ticket cannot be used");
	SSL_SESSION_free(copy);
}

static SSL *
begin(int fd)
{
	SSL *ssl = SSL_new(context);

	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1)
		errx(1, "TLS: no memory");
	if (ticket != NULL)
		use_ticket(ssl);
	make_room((size_t)fd + 1);
	sessions[fd] = ssl;
	return ssl;
}

/* What a call that returned n has come to, as errno. */
static int
reason(const SSL *ssl, int n)
{
	int saved = errno;

	switch (SSL_get_error(ssl, n)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return EAGAIN;
	case SSL_ERROR_SYSCALL:
		return saved != 0 ? saved : ECONNABORTED;
	default:
		return ERR_GET_REASON(ERR_peek_error()) ==
			       SSL_R_UNEXPECTED_EOF_WHILE_READING
			   ? ECONNABORTED
			   : EPROTO;
	}
}

int
client_tls_handshake(int fd)
{
	SSL *ssl = (size_t)fd < sessions_n ? sessions[fd] : NULL;
	int n;

	if (ssl == NULL)
		ssl = begin(fd);
	ERR_clear_error();
	errno = 0;
	/* Its flights are short: the socket always takes them. */
	n = SSL_connect(ssl);
	if (n != 1)
		return reason(ssl, n);
	return http2 && !took_http2(ssl) ? EPROTONOSUPPORT : 0;
}

ssize_t
client_tls_send(int fd, const void *data, size_t len)
{
	int n;

	ERR_clear_error();
	errno = 0;
	n = SSL_write(sessions[fd], data, (int)len);
	if (n > 0)
		return n;
	errno = reason(sessions[fd], n);
	return -1;
}

ssize_t
client_tls_recv(int fd, void *buf, size_t max)
{
	SSL *ssl = sessions[fd];
	size_t got = 0;
	int n;

	do {
		ERR_clear_error();
		errno = 0;
		n = SSL_read(ssl, (char *)buf + got, (int)(max - got));
		if (n > 0)
			got += (size_t)n;
	} while (n > 0 && max - got >= RECORD);
	/* What ended it, a later call tells again. */
	if (got > 0)
		return (ssize_t)got;
	if (SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = reason(ssl, n);
	return -1;
}

bool
client_tls_resumed(int fd)
{
	return SSL_session_reused(sessions[fd]) == 1;
}

void
client_tls_resume(void)
{
	keep = true;
}

bool
client_tls_has_ticket(void)
{
	return ticket != NULL;
}

void
client_tls_forget(int fd)
{
	if ((size_t)fd >= sessions_n || sessions[fd] == NULL)
		return;
	SSL_free(sessions[fd]);
	sessions[fd] = NULL;
}
