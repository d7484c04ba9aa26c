/*
 * h2o_like: replaces fd_client.c by HTTP/2 over TLS.  fd_cache.c opens the files, nghttp2 makes the
 * frames, and OpenSSL encrypts and sends them.  Resident bytes are copied into a frame at once; for
 * other bytes a stream waits for pw_fetch, which delays no other stream.  The environment variable
 * CERTIFICATE names a file with the certificate and its key.
 */
#include <sys/queue.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "fd_cache.h"

#define BUFFER 32768 /* bytes */

struct visitor {
	struct client vs_client; /* first member, since it is cast */
	SSL *vs_ssl;
	nghttp2_session *vs_http2;
	LIST_HEAD(, stream) vs_streams;
};

struct stream {
	struct cache_open st_open; /* first member, since it is cast */
	struct pw_fetch st_fetch;
	struct visitor *st_visitor; /* NULL if the stream is closed */
	LIST_ENTRY(stream) st_entry;
	struct pw_file *st_file;
	struct request st_request;
	int32_t st_id;
	int st_error;  /* -errno of a fetch, or 0 */
	bool st_waits; /* true until the library calls back */
};

static SSL_CTX *tls;
static nghttp2_session_callbacks *cb;

static void
stream_free(struct stream *st)
{
	pw_unpin(&st->st_fetch);
	pw_file_unref(&st->st_file);
	free(st);
}

/* Closes a stream.  While the library uses the stream, the callback of the library frees it later. */
static void
stream_close(struct stream *st)
{
	LIST_REMOVE(st, st_entry);
	st->st_visitor = NULL;
	if (!st->st_waits)
		stream_free(st);
}

/* Ends a wait.  Returns false if the stream was closed meanwhile. */
static bool
stream_is_back(struct stream *st)
{
	st->st_waits = false;
	if (st->st_visitor != NULL)
		return true;
	stream_free(st);
	return false;
}

void
client_leave(struct client *c)
{
	struct visitor *v = (struct visitor *)c;

	while (!LIST_EMPTY(&v->vs_streams))
		stream_close(LIST_FIRST(&v->vs_streams));
	nghttp2_session_del(v->vs_http2);
	SSL_free(v->vs_ssl);
	loop_close(c);
}

static void
on_fetched(struct pw_waiter *w)
{
	struct stream *st =
	    (struct stream *)(void *)((char *)w -
				      offsetof(struct stream, st_fetch));

	st->st_error = w->wt_error;
	if (!stream_is_back(st))
		return;
	nghttp2_session_resume_data(st->st_visitor->vs_http2, st->st_id);
	client_run(&st->st_visitor->vs_client);
}

/* Copies the next bytes.  Returns their number, -EAGAIN if they must be fetched, or another -errno. */
static ssize_t
copy(struct stream *st, void *to, size_t len)
{
	const struct pw_fetch *ft = &st->st_fetch;
	off_t off = st->st_request.rq_off;
	size_t at = (size_t)(off - ft->ft_off);
	int error;

	if (ft->ft_want == PW_FETCH_MEMORY && ft->ft_mem != NULL) {
		len = len < ft->ft_have - at ? len : ft->ft_have - at;
		memcpy(to, ft->ft_mem + at, len);
		return (ssize_t)len;
	}
	error = pw_file_copy(st->st_file, off, to, len);
	return error == 0 ? (ssize_t)len : error;
}

static int
fetch(struct stream *st, enum pw_fetch_want want)
{
	struct request *rq = &st->st_request;

	pw_unpin(&st->st_fetch);
	st->st_fetch = (struct pw_fetch){.ft_waiter.wt_done = on_fetched,
	    .ft_file = st->st_file,
	    .ft_off = rq->rq_off,
	    .ft_len = (size_t)(rq->rq_end - rq->rq_off),
	    .ft_want = want,
	    .ft_begun = true};
	return pw_fetch(&st->st_fetch);
}

/*
 * Writes the next bytes into a frame.  Fetches bytes that are not resident.  If the kernel evicts the bytes
 * again at once, or if residency is unknown, as on a network file system, fetches a copy.
 */
static ssize_t
next_data(nghttp2_session *h2, int32_t id, uint8_t *to, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct stream *st = source->ptr;
	struct request *rq = &st->st_request;
	size_t left = (size_t)(rq->rq_end - rq->rq_off);
	ssize_t n = st->st_error;
	int want;

	(void)h2, (void)id, (void)arg;
	len = len < left ? len : left;
	if (n == 0 && len > 0)
		n = copy(st, to, len);
	want = n == -EAGAIN && pw_resident(st->st_file, rq->rq_off, len) < 0
		   ? PW_FETCH_MEMORY
		   : PW_FETCH_PAGES;
	for (; n == -EAGAIN && want <= PW_FETCH_MEMORY; want++) {
		n = fetch(st, (enum pw_fetch_want)want);
		if (n == 0)
			n = copy(st, to, len);
	}
	st->st_waits = n == -EINPROGRESS;
	if (n < 0)
		return st->st_waits ? NGHTTP2_ERR_DEFERRED
				    : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	rq->rq_off += n;
	if (rq->rq_off == rq->rq_end)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (rq->rq_off == st->st_fetch.ft_off + (off_t)st->st_fetch.ft_have)
		pw_unpin(&st->st_fetch);
	return n;
}

/* Submits the response.  Takes ownership of the reference to the file. */
static void
answer(struct stream *st, struct pw_file *file, int error)
{
	struct request *rq = &st->st_request;
	nghttp2_data_provider data = {{.ptr = st}, next_data};
	char head[128], length[24];
	nghttp2_nv fields[] = {
	    {(uint8_t *)":status", (uint8_t *)head + 9, 7, 3, 0},
	    {(uint8_t *)"content-length", (uint8_t *)length, 14, 0, 0}};

	st->st_file = file;
	clients_head(rq, file, error, head); /* "HTTP/1.1 200 ..." */
	fields[1].valuelen = (size_t)snprintf(length, sizeof(length), "%lld",
	    (long long)(rq->rq_end - rq->rq_off));
	nghttp2_submit_response(
	    st->st_visitor->vs_http2, st->st_id, fields, 2, &data);
}

static void
on_open(struct cache_open *co, struct pw_file *file, int error)
{
	struct stream *st = (struct stream *)(void *)co;

	st->st_file = file;
	if (!stream_is_back(st))
		return;
	answer(st, file, error);
	client_run(&st->st_visitor->vs_client);
}

static int
on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct stream *st = calloc(1, sizeof(*st));

	if (st == NULL)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	st->st_visitor = arg;
	st->st_id = frame->hd.stream_id;
	st->st_request.rq_to = -1;
	LIST_INSERT_HEAD(&st->st_visitor->vs_streams, st, st_entry);
	return nghttp2_session_set_stream_user_data(h2, st->st_id, st);
}

static int
on_field(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
    size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	struct stream *st =
	    nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	struct request *rq = &st->st_request;

	(void)name_len, (void)len, (void)flags, (void)arg;
	if (strcmp((const char *)name, ":path") == 0 &&
	    sscanf((const char *)value, "/%1023[^?]", rq->rq_name) != 1)
		strcpy(rq->rq_name, "index.html");
	if (strcmp((const char *)name, "range") == 0)
		sscanf((const char *)value, "bytes=%lld-%lld", &rq->rq_from,
		    &rq->rq_to);
	return 0;
}

static int
on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct stream *st =
	    nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	struct pw_file *file = NULL;
	int error;

	(void)arg;
	if (st == NULL || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	st->st_open.co_name = st->st_request.rq_name;
	st->st_open.co_done = on_open;
	error = cache_open(&st->st_open, &file);
	st->st_waits = error == -EINPROGRESS;
	if (!st->st_waits)
		answer(st, file, error);
	return 0;
}

static int
on_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
	struct stream *st = nghttp2_session_get_stream_user_data(h2, id);

	(void)code, (void)arg;
	if (st != NULL)
		stream_close(st);
	return 0;
}

/* Converts n, the result of SSL_read or SSL_write, to nghttp2's codes. */
static ssize_t
tls_result(const SSL *ssl, int n)
{
	int error = SSL_get_error(ssl, n);

	if (n > 0)
		return n;
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE
		   ? NGHTTP2_ERR_WOULDBLOCK
		   : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static ssize_t
tls_read(nghttp2_session *h2, uint8_t *to, size_t len, int flags, void *arg)
{
	SSL *ssl = ((struct visitor *)arg)->vs_ssl;

	(void)h2, (void)flags;
	return tls_result(ssl, SSL_read(ssl, to, (int)len));
}

/* If the socket is full, nghttp2 passes the same bytes again later, as SSL_write requires. */
static ssize_t
tls_write(
    nghttp2_session *h2, const uint8_t *bytes, size_t len, int flags, void *arg)
{
	SSL *ssl = ((struct visitor *)arg)->vs_ssl;

	(void)h2, (void)flags;
	return tls_result(ssl, SSL_write(ssl, bytes, (int)len));
}

static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *len,
    const unsigned char *in, unsigned in_len, void *arg)
{
	(void)ssl, (void)arg;
	return nghttp2_select_next_protocol(
		   (unsigned char **)(void *)(uintptr_t)out, len, in, in_len) ==
		       1
		   ? SSL_TLSEXT_ERR_OK
		   : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void
prepare(void)
{
	const char *pem = getenv("CERTIFICATE");

	tls = SSL_CTX_new(TLS_server_method());
	if (pem == NULL || SSL_CTX_use_certificate_chain_file(tls, pem) != 1 ||
	    SSL_CTX_use_PrivateKey_file(tls, pem, SSL_FILETYPE_PEM) != 1) {
		fprintf(stderr, "set CERTIFICATE to a PEM file with a "
				"certificate and its key\n");
		exit(1);
	}
	SSL_CTX_set_alpn_select_cb(tls, choose_protocol, NULL);
	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_recv_callback(cb, tls_read);
	nghttp2_session_callbacks_set_send_callback(cb, tls_write);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
}

struct client *
client_accept(int listener)
{
	int sock = clients_accept(listener), on = 1;
	struct visitor *v = sock == -1 ? NULL : calloc(1, sizeof(*v));
	BIO *buffer;

	if (v == NULL)
		return NULL;
	if (tls == NULL)
		prepare();
	v->vs_client.cl_sock = sock;
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	v->vs_ssl = SSL_new(tls);
	SSL_set_fd(v->vs_ssl, sock);
	buffer = BIO_new(BIO_f_buffer()); /* joins small frames */
	BIO_set_write_buffer_size(buffer, BUFFER);
	BIO_up_ref(SSL_get_rbio(v->vs_ssl));
	SSL_set0_wbio(v->vs_ssl, BIO_push(buffer, SSL_get_rbio(v->vs_ssl)));
	SSL_set_accept_state(v->vs_ssl);
	nghttp2_session_server_new(&v->vs_http2, cb, v);
	nghttp2_submit_settings(v->vs_http2, NGHTTP2_FLAG_NONE, NULL, 0);
	return &v->vs_client;
}

void
client_run(struct client *c)
{
	struct visitor *v = (struct visitor *)c;
	struct stream *st;

	ERR_clear_error();
	if (nghttp2_session_recv(v->vs_http2) != 0 ||
	    nghttp2_session_send(v->vs_http2) != 0 ||
	    (!nghttp2_session_want_read(v->vs_http2) &&
		!nghttp2_session_want_write(v->vs_http2))) {
		client_leave(c);
		return;
	}
	BIO_flush(SSL_get_wbio(v->vs_ssl));
	/* The client may read nothing for long, so its windows are not kept. */
	for (st = LIST_FIRST(&v->vs_streams); st != NULL;
	     st = LIST_NEXT(st, st_entry))
		if (!st->st_waits)
			pw_unpin(&st->st_fetch);
}
