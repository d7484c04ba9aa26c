/*
 * h2o_like: replaces fd_client.c by HTTP/2 over TLS.  fd_cache.c opens the files, nghttp2 makes the
 * frames, and OpenSSL encrypts them from memory that the library lends.  A stream that waits for a
 * disk delays no other stream.  The environment variable CERTIFICATE names a file with the
 * certificate and its key.
 */
#include <sys/queue.h>
#include <sys/socket.h>

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "fd_cache.h"

struct visitor {
	struct client vs_client; /* first member, since it is cast */
	SSL *vs_ssl;		 /* reads from and writes to memory */
	nghttp2_session *vs_http2;
	LIST_HEAD(, stream) vs_streams;
	char vs_out[16 << 10]; /* encrypted bytes for the socket */
	int vs_len, vs_sent;   /* bytes of vs_out, and those that were sent */
};

struct stream {
	struct cache_open st_open; /* first member, since it is cast */
	struct pw_fetch st_fetch;
	LIST_ENTRY(stream) st_entry;
	struct visitor *st_visitor;
	struct pw_file *st_file;
	struct request st_request;
	int32_t st_id;
	int st_error;		   /* -errno of a fetch */
	bool st_waits, st_is_over; /* st_waits until the library calls back */
};

/*
 * Frees the stream.  While the library uses the stream, the callback of the library does that
 * later.
 */
static void
stream_leave(struct stream *st)
{
	st->st_is_over = true;
	if (st->st_waits)
		return;
	pw_unpin(&st->st_fetch);
	pw_file_unref(&st->st_file);
	LIST_REMOVE(st, st_entry);
	free(st);
}

void
client_leave(struct client *c)
{
	struct visitor *v = (struct visitor *)c;
	struct stream *st, *next;

	if (c->cl_state != CLIENT_GONE) {
		c->cl_state = CLIENT_GONE;
		nghttp2_session_del(v->vs_http2);
		SSL_free(v->vs_ssl);
		close(c->cl_sock);
		c->cl_sock = -1;
	}
	for (st = LIST_FIRST(&v->vs_streams); st != NULL; st = next) {
		next = LIST_NEXT(st, st_entry);
		stream_leave(st);
	}
	if (LIST_EMPTY(&v->vs_streams))
		loop_close(c);
}

/* Continues with the client after a wait of the stream. */
static void
go_on(struct stream *st)
{
	struct client *c = &st->st_visitor->vs_client;

	if (st->st_is_over)
		stream_leave(st);
	if (c->cl_state == CLIENT_GONE)
		client_leave(c);
	else
		client_run(c);
}

static void
on_fetched(struct pw_waiter *w)
{
	struct stream *st =
	    (struct stream *)(void *)((char *)w -
				      offsetof(struct stream, st_fetch));

	st->st_waits = false;
	st->st_error = w->wt_error;
	if (!st->st_is_over)
		nghttp2_session_resume_data(
		    st->st_visitor->vs_http2, st->st_id);
	go_on(st);
}

/* Borrows the window of the next byte.  Returns the number of bytes that send_data will send. */
static ssize_t
next_data(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct stream *st = source->ptr;
	struct request *rq = &st->st_request;
	struct pw_fetch *ft = &st->st_fetch;
	size_t left = (size_t)(rq->rq_end - rq->rq_off), have;

	(void)h2, (void)id, (void)buf, (void)arg;
	if (ft->ft_mem == NULL && left > 0 && st->st_error == 0) {
		*ft = (struct pw_fetch){.ft_waiter.wt_done = on_fetched,
		    .ft_file = st->st_file,
		    .ft_off = rq->rq_off,
		    .ft_len = left,
		    .ft_want = PW_FETCH_MEMORY,
		    .ft_cache = PW_CACHE_AUTO,
		    .ft_begun = true};
		st->st_error = pw_fetch(ft);
		st->st_waits = st->st_error == -EINPROGRESS;
	}
	if (st->st_waits)
		return NGHTTP2_ERR_DEFERRED;
	if (st->st_error != 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	have = left > 0 ? ft->ft_have - (size_t)(rq->rq_off - ft->ft_off) : 0;
	len = len < have ? len : have;
	*flags = NGHTTP2_DATA_FLAG_NO_COPY |
		 (len == left ? NGHTTP2_DATA_FLAG_EOF : 0);
	return (ssize_t)len;
}

static int
send_data(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head,
    size_t len, nghttp2_data_source *source, void *arg)
{
	struct visitor *v = arg;
	struct stream *st = source->ptr;
	struct pw_fetch *ft = &st->st_fetch;
	off_t *off = &st->st_request.rq_off;

	(void)h2, (void)frame;
	SSL_write(v->vs_ssl, head, 9);
	if (len > 0)
		SSL_write(
		    v->vs_ssl, ft->ft_mem + (*off - ft->ft_off), (int)len);
	*off += (off_t)len;
	if (*off == ft->ft_off + (off_t)ft->ft_have)
		pw_unpin(ft);
	return NGHTTP2_ERR_PAUSE; /* so no more is encrypted than the socket accepts */
}

static ssize_t
send_frame(
    nghttp2_session *h2, const uint8_t *bytes, size_t len, int flags, void *arg)
{
	(void)h2, (void)flags;
	return SSL_write(((struct visitor *)arg)->vs_ssl, bytes, (int)len);
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

	st->st_waits = false;
	st->st_file = file;
	if (!st->st_is_over)
		answer(st, file, error);
	go_on(st);
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
		stream_leave(st);
	return 0;
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

static SSL_CTX *tls;
static nghttp2_session_callbacks *callbacks;

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
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_send_callback(callbacks, send_frame);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
	nghttp2_session_callbacks_set_on_begin_headers_callback(
	    callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(
	    callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(
	    callbacks, on_close);
}

struct client *
client_accept(int listener)
{
	int sock = clients_accept(listener);
	struct visitor *v = sock == -1 ? NULL : calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	if (tls == NULL)
		prepare();
	v->vs_client.cl_sock = sock;
	v->vs_ssl = SSL_new(tls);
	SSL_set_bio(v->vs_ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_accept_state(v->vs_ssl);
	nghttp2_session_server_new(&v->vs_http2, callbacks, v);
	nghttp2_submit_settings(v->vs_http2, NGHTTP2_FLAG_NONE, NULL, 0);
	return &v->vs_client;
}

/* Reads all that the client sent.  Returns false if it has left. */
static bool
receive(struct visitor *v)
{
	uint8_t bytes[4096];
	ssize_t n;
	int got;

	while ((n = recv(v->vs_client.cl_sock, bytes, sizeof(bytes), 0)) > 0) {
		BIO_write(SSL_get_rbio(v->vs_ssl), bytes, (int)n);
		while ((got = SSL_read(v->vs_ssl, bytes, sizeof(bytes))) > 0)
			if (nghttp2_session_mem_recv(
				v->vs_http2, bytes, (size_t)got) < 0)
				return false;
		if (SSL_get_error(v->vs_ssl, got) != SSL_ERROR_WANT_READ)
			return false;
	}
	return n == -1 && errno == EAGAIN;
}

/* Encrypts the next frames if all that was encrypted is sent.  Returns false if there is nothing to send. */
static bool
fill(struct visitor *v)
{
	BIO *out = SSL_get_wbio(v->vs_ssl);

	if (v->vs_sent == v->vs_len) {
		if (BIO_pending(out) == 0 && SSL_is_init_finished(v->vs_ssl))
			nghttp2_session_send(v->vs_http2);
		v->vs_sent = 0;
		v->vs_len = BIO_read(out, v->vs_out, sizeof(v->vs_out));
		v->vs_len = v->vs_len > 0 ? v->vs_len : 0;
	}
	return v->vs_len > 0;
}

void
client_run(struct client *c)
{
	struct visitor *v = (struct visitor *)c;
	struct stream *st;
	bool stays = receive(v);
	ssize_t n;

	while (stays && fill(v)) {
		n = send(c->cl_sock, v->vs_out + v->vs_sent,
		    (size_t)(v->vs_len - v->vs_sent), 0);
		if (n == -1 && errno == EAGAIN)
			break;
		stays = n > 0;
		v->vs_sent += (int)n;
	}
	if (!stays)
		client_leave(c);
	else /* bytes that are not encrypted yet are borrowed again */
		LIST_FOREACH(st, &v->vs_streams, st_entry)
	if (!st->st_waits)
		pw_unpin(&st->st_fetch);
}
