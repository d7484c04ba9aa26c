/*
 * bio: lets OpenSSL use the socket during the handshake.  Bytes that follow the client's last
 * message stay in the inbox, since they begin the first request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/os/os.h"
#include "server/tls/context_priv.h"
#include "server/tls/session.h"

#define INBOX 4096 /* maximum bytes per read: a ClientHello has 300 to 2000 */

/*
 * Returns true if the next bytes to send are a ticket, and more bytes from the client wait.  These
 * begin a request, so one segment can carry ticket and response.
 */
static bool
tls_bio_response_follows(const struct tls *tl)
{
	return tl->tl_writes.rk_secret_len > 0 && tl->tl_inbox.ib_raw > 0 &&
	       !tl->tl_context->tx_ktls;
}

static int
bio_write(BIO *bio, const char *data, int len)
{
	const struct tls *tl = BIO_get_data(bio);
	bool more = tls_bio_response_follows(tl);
	size_t n;
	int error;

	BIO_clear_retry_flags(bio);
	do
		error = os_send(tl->tl_fd, data, (size_t)len, more, &n);
	while (error == -EINTR);
	/* OpenSSL would send again what a full socket accepted. */
	if (error == 0 || n > 0)
		return (int)n;
	if (error == -EAGAIN || error == -ENOBUFS)
		BIO_set_retry_write(bio);
	return -1;
}

/* Reads into the inbox.  Returns the bytes read, 0 if the client has closed, or -1 with errno. */
static ssize_t
tls_bio_fill(struct tls *tl)
{
	struct tls_inbox *ib = &tl->tl_inbox;
	ssize_t n;

	if (ib->ib_mem == NULL)
		ib->ib_mem = malloc(INBOX);
	if (ib->ib_mem == NULL) {
		errno = ENOMEM;
		return -1;
	}
	do
		n = recv(tl->tl_fd, ib->ib_mem, INBOX, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	ib->ib_at = 0;
	ib->ib_raw = n > 0 ? (size_t)n : 0;
	return n;
}

/*
 * Reads from the inbox, which saves system calls: OpenSSL reads a header and then the rest of a
 * record.
 */
static int
bio_read(BIO *bio, char *to, int room)
{
	struct tls *tl = BIO_get_data(bio);
	struct tls_inbox *ib = &tl->tl_inbox;
	ssize_t n = 1;

	BIO_clear_retry_flags(bio);
	if (ib->ib_raw == 0)
		n = tls_bio_fill(tl);
	if (n == -1 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	if (n > 0) {
		n = ib->ib_raw < (size_t)room ? (ssize_t)ib->ib_raw : room;
		memcpy(to, ib->ib_mem + ib->ib_at, (size_t)n);
		ib->ib_at += (size_t)n;
		ib->ib_raw -= (size_t)n;
	}
	if (ib->ib_raw == 0) {
		free(ib->ib_mem);
		ib->ib_mem = NULL;
	}
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
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return method;
}
