/*
 * A sink that passes data to OpenSSL.  A transmission with this sink in snd_sink needs no snd_sock.
 */
#include <errno.h>
#include <pagewise.h>

/* As in <openssl/ssl.h>. */
typedef struct ssl_st SSL;
int SSL_write_ex(SSL *, const void *, size_t, size_t *);
int SSL_get_error(const SSL *, int);

struct tls_sink {
	struct pw_sink sink; /* first member, since it is cast */
	SSL *
	    ssl; /* with SSL_MODE_ENABLE_PARTIAL_WRITE and SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER */
};

static int
take(struct pw_sink *sink, const char *data, size_t len, bool more,
    size_t *taken)
{
	SSL *ssl = ((struct tls_sink *)sink)->ssl;
	int n = SSL_write_ex(ssl, data, len, taken);

	(void)more; /* OpenSSL sends each record at once */
	if (n == 1)
		return 0;
	/* 3 is SSL_ERROR_WANT_WRITE. */
	return SSL_get_error(ssl, n) == 3 ? -EAGAIN : -EIO;
}

/* Returns 0, since OpenSSL copies the bytes that it accepts. */
static long
unacked(struct pw_sink *sink)
{
	(void)sink;
	return 0;
}

static const struct pw_sink_ops tls_ops = {.take = take, .unacked = unacked};

void
tls_sink_init(struct tls_sink *ts, SSL *ssl)
{
	ts->sink.sk_ops = &tls_ops;
	ts->ssl = ssl;
}
