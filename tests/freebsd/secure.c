/*
 * secure: see secure.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "tests/freebsd/secure.h"

struct secure {
	SSL *se_ssl;
	nghttp2_session *se_h2; /* NULL if the protocol is HTTP/1.1 */
};

/* The certificate is not verified: run made it. */
static SSL_CTX *
secure_context(enum http_kind kind)
{
	static SSL_CTX *contexts[HTTP_H2 + 1];
	static const unsigned char h2[] = "\2h2", http[] = "\10http/1.1";
	int version = kind == HTTP_TLS12 ? TLS1_2_VERSION : TLS1_3_VERSION;
	SSL_CTX *ctx = contexts[kind];

	if (ctx != NULL)
		return ctx;
	ctx = contexts[kind] = SSL_CTX_new(TLS_client_method());
	if (ctx == NULL)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	SSL_CTX_set_mode(ctx, SSL_MODE_AUTO_RETRY);
	if (kind == HTTP_H2)
		SSL_CTX_set_alpn_protos(ctx, h2, sizeof(h2) - 1);
	else
		SSL_CTX_set_alpn_protos(ctx, http, sizeof(http) - 1);
	return ctx;
}

/* ------------------------------------------------------------------- HTTP/2 */

static int
secure_on_field(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name, size_t name_len, const uint8_t *value,
    size_t value_len, uint8_t flags, void *arg)
{
	struct http *ht =
	    nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	char text[32];

	(void)flags, (void)arg;
	if (ht == NULL)
		return 0;
	snprintf(
	    text, sizeof(text), "%.*s", (int)value_len, (const char *)value);
	if (name_len == 7 && memcmp(name, ":status", name_len) == 0)
		ht->ht_status = atoi(text);
	if (name_len == 14 && memcmp(name, "content-length", name_len) == 0)
		ht->ht_length = strtoll(text, NULL, 10);
	return 0;
}

static int
secure_on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
    const uint8_t *data, size_t len, void *arg)
{
	struct http *ht = nghttp2_session_get_stream_user_data(session, stream);

	(void)flags, (void)arg;
	if (ht != NULL)
		http_take_body(ht, (const char *)data, len);
	return 0;
}

static int
secure_on_close(
    nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
	struct http *ht = nghttp2_session_get_stream_user_data(session, stream);

	(void)arg;
	if (ht == NULL)
		return 0;
	ht->ht_done = true;
	ht->ht_failed = error != NGHTTP2_NO_ERROR ||
			(ht->ht_length != -1 && ht->ht_got != ht->ht_length);
	return 0;
}

/* The client sends little, so the socket's buffer has room. */
static ssize_t
secure_on_send(nghttp2_session *session, const uint8_t *data, size_t len,
    int flags, void *arg)
{
	ssize_t n = secure_send(arg, data, len);

	(void)session, (void)flags;
	return n == (ssize_t)len ? n : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static nghttp2_session *
secure_h2_new(struct secure *se)
{
	nghttp2_session_callbacks *call;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&call) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_header_callback(call, secure_on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
	    call, secure_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(
	    call, secure_on_close);
	nghttp2_session_callbacks_set_send_callback(call, secure_on_send);
	nghttp2_session_client_new(&session, call, se);
	nghttp2_session_callbacks_del(call);
	if (session != NULL)
		nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
	return session;
}

static nghttp2_nv
secure_field(const char *name, const char *value)
{
	return (nghttp2_nv){
	    .name = (uint8_t *)(uintptr_t)name,
	    .namelen = strlen(name),
	    .value = (uint8_t *)(uintptr_t)value,
	    .valuelen = strlen(value),
	};
}

bool
secure_h2_ask(struct http *ht, const char *path, const char *range)
{
	nghttp2_session *session = ht->ht_secure->se_h2;
	char bytes[80];
	nghttp2_nv nv[] = {secure_field(":method", "GET"),
	    secure_field(":scheme", "https"),
	    secure_field(":authority", "localhost"),
	    secure_field(":path", path), {0}};
	size_t n = 4;

	if (range != NULL) {
		snprintf(bytes, sizeof(bytes), "bytes=%s", range);
		nv[n++] = secure_field("range", bytes);
	}
	return nghttp2_submit_request(session, NULL, nv, n, NULL, ht) > 0 &&
	       nghttp2_session_send(session) == 0;
}

void
secure_h2_take(struct http *ht, const void *data, size_t len)
{
	nghttp2_session *session = ht->ht_secure->se_h2;

	if (nghttp2_session_mem_recv(session, data, len) < 0 ||
	    nghttp2_session_send(session) != 0)
		ht->ht_done = ht->ht_failed = true;
}

/* ---------------------------------------------------------------------- TLS */

/* Returns true if the server chose what the client wants. */
static bool
secure_is(const SSL *ssl, enum http_kind kind)
{
	const unsigned char *alpn;
	unsigned len;

	SSL_get0_alpn_selected(ssl, &alpn, &len);
	return SSL_version(ssl) ==
		   (kind == HTTP_TLS12 ? TLS1_2_VERSION : TLS1_3_VERSION) &&
	       (kind == HTTP_H2) == (len == 2 && memcmp(alpn, "h2", 2) == 0);
}

struct secure *
secure_open(int sock, enum http_kind kind)
{
	struct secure *se = calloc(1, sizeof(*se));
	SSL_CTX *ctx = secure_context(kind);

	if (se != NULL && ctx != NULL)
		se->se_ssl = SSL_new(ctx);
	if (se != NULL && se->se_ssl != NULL &&
	    SSL_set_fd(se->se_ssl, sock) == 1 && SSL_connect(se->se_ssl) == 1 &&
	    secure_is(se->se_ssl, kind)) {
		if (kind != HTTP_H2)
			return se;
		se->se_h2 = secure_h2_new(se);
		if (se->se_h2 != NULL)
			return se;
	}
	secure_close(se);
	return NULL;
}

void
secure_close(struct secure *se)
{
	if (se == NULL)
		return;
	nghttp2_session_del(se->se_h2);
	SSL_free(se->se_ssl);
	free(se);
}

ssize_t
secure_send(struct secure *se, const void *data, size_t len)
{
	return SSL_write(se->se_ssl, data, (int)len);
}

ssize_t
secure_recv(struct secure *se, void *data, size_t len)
{
	int n = SSL_read(se->se_ssl, data, (int)len);

	if (n > 0)
		return n;
	if (SSL_get_error(se->se_ssl, n) == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno =
	    SSL_get_error(se->se_ssl, n) == SSL_ERROR_WANT_READ ? EAGAIN : EIO;
	return -1;
}
