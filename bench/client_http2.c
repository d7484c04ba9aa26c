/*
 * client_http2: see client_http2.h.
 */
#include "client_http2.h"
#include "client_tls.h"

#include <nghttp2/nghttp2.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW (15 << 20)
#define STREAM (6 << 20)
#define OUT    (17 << 10) /* any frame, or requests that are due together */

struct http2 {
	nghttp2_session *h_session;
	int h_fd;
	bool h_tls, h_ending;
	unsigned h_busy;
	const char *h_authority;
	http2_end_f *h_end;
	void *h_owner;
	const uint8_t *h_frame; /* the session's, that h_out has no room for */
	size_t h_frame_len;
	size_t h_at, h_len; /* what of h_out was sent, and is in it */
	uint8_t h_out[OUT];
};

static uint8_t buffer[1 << 16]; /* four records of TLS */

static int
on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
    size_t len, const uint8_t *value, size_t value_len, uint8_t flags,
    void *data)
{
	struct http2_stream *hs =
	    nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);

	(void)flags;
	(void)data;
	/* libnghttp2 has looked at it: three digits. */
	if (hs != NULL && len == 7 && memcmp(name, ":status", 7) == 0 &&
	    value_len == 3)
		hs->hs_status = (value[0] - '0') * 100 + (value[1] - '0') * 10 +
				(value[2] - '0');
	return 0;
}

static int
on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes,
    size_t len, void *data)
{
	struct http2_stream *hs = nghttp2_session_get_stream_user_data(ng, id);

	(void)flags;
	(void)bytes;
	(void)data;
	if (hs != NULL)
		*hs->hs_body += len;
	return 0;
}

static int
on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
	struct http2 *h = data;

	(void)ng;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		h->h_ending = true;
	return 0;
}

static void
tell(struct http2 *h, struct http2_stream *hs, enum failure why)
{
	h->h_busy--;
	h->h_end(h->h_owner, hs, why);
}

static int
on_end(nghttp2_session *ng, int32_t id, uint32_t code, void *data)
{
	struct http2_stream *hs = nghttp2_session_get_stream_user_data(ng, id);
	struct http2 *h = data;
	enum failure why = FAILURE_PROTOCOL;

	if (hs == NULL)
		return 0;
	if (code == NGHTTP2_NO_ERROR && hs->hs_status > 0)
		why = FAILURE_NONE;
	else if (code == NGHTTP2_REFUSED_STREAM)
		why = FAILURE_UNSENT;
	tell(h, hs, why);
	return 0;
}

/* A request that is still here after GOAWAY.  Of its end on_end has nothing to tell. */
static int
on_unsent(
    nghttp2_session *ng, const nghttp2_frame *frame, int error, void *data)
{
	struct http2 *h = data;
	struct http2_stream *hs;

	(void)error;
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	hs = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
	if (hs == NULL)
		return 0;
	nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, NULL);
	tell(h, hs, FAILURE_UNSENT);
	return 0;
}

void
http2_start(const struct targets *ts)
{
	if (ts->ts_tls)
		client_tls_http2();
}

static void
begin(struct http2 *h)
{
	static const nghttp2_settings_entry settings[] = {
	    {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM}};
	nghttp2_session_callbacks *calls;

	if (nghttp2_session_callbacks_new(&calls) != 0)
		errx(1, "HTTP/2: no memory");
	nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
	    calls, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_end);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(
	    calls, on_unsent);
	if (nghttp2_session_client_new(&h->h_session, calls, h) != 0 ||
	    nghttp2_submit_settings(h->h_session, NGHTTP2_FLAG_NONE, settings,
		sizeof(settings) / sizeof(settings[0])) != 0 ||
	    nghttp2_session_set_local_window_size(
		h->h_session, NGHTTP2_FLAG_NONE, 0, WINDOW) != 0)
		errx(1, "HTTP/2: no memory");
	nghttp2_session_callbacks_del(calls);
}

struct http2 *
http2_new(int fd, const struct targets *ts, http2_end_f *end, void *owner)
{
	struct http2 *h = calloc(1, sizeof(*h));

	if (h == NULL)
		err(1, NULL);
	h->h_fd = fd;
	h->h_tls = ts->ts_tls;
	h->h_authority = ts->ts_authority;
	h->h_end = end;
	h->h_owner = owner;
	begin(h);
	return h;
}

int
http2_fd(const struct http2 *h)
{
	return h->h_fd;
}

/* The names and values live as long as the targets: libnghttp2 copies them all the same. */
static nghttp2_nv
field(const char *name, const char *value)
{
	nghttp2_nv nv = {.namelen = strlen(name), .valuelen = strlen(value)};

	memcpy(&nv.name, &name, sizeof(name));
	memcpy(&nv.value, &value, sizeof(value));
	return nv;
}

void
http2_ask(struct http2 *h, const struct target *t, struct http2_stream *hs)
{
	nghttp2_nv nvs[5];
	size_t n = 0;

	hs->hs_status = 0;
	nvs[n++] = field(":method", "GET");
	nvs[n++] = field(":scheme", h->h_tls ? "https" : "http");
	nvs[n++] = field(":authority", h->h_authority);
	nvs[n++] = field(":path", t->t_path);
	if (t->t_range != NULL)
		nvs[n++] = field("range", t->t_range);
	if (nghttp2_submit_request(h->h_session, NULL, nvs, n, NULL, hs) < 0)
		errx(1, "HTTP/2: no memory");
	h->h_busy++;
}

enum failure
http2_read(struct http2 *h)
{
	ssize_t n = client_read(h->h_fd, buffer, sizeof(buffer));

	if (n == -1)
		return client_failure();
	if (n == 0)
		return FAILURE_CLOSED;
	return nghttp2_session_mem_recv(h->h_session, buffer, (size_t)n) == n
		   ? FAILURE_NONE
		   : FAILURE_PROTOCOL;
}

/* As many frames as fit; h_out is empty before. */
static int
pack(struct http2 *h)
{
	ssize_t n;

	h->h_at = h->h_len = 0;
	for (;;) {
		if (h->h_frame_len == 0) {
			n = nghttp2_session_mem_send(h->h_session, &h->h_frame);
			if (n < 0)
				return -EPROTO;
			h->h_frame_len = (size_t)n;
		}
		if (h->h_frame_len == 0 || h->h_frame_len > OUT - h->h_len)
			return 0;
		memcpy(h->h_out + h->h_len, h->h_frame, h->h_frame_len);
		h->h_len += h->h_frame_len;
		h->h_frame_len = 0;
	}
}

static enum failure
send_packed(struct http2 *h)
{
	ssize_t n;

	while (h->h_at < h->h_len) {
		n = client_write(
		    h->h_fd, h->h_out + h->h_at, h->h_len - h->h_at);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return FAILURE_AGAIN;
		if (n <= 0)
			return FAILURE_WRITE;
		h->h_at += (size_t)n;
	}
	return FAILURE_NONE;
}

enum failure
http2_write(struct http2 *h)
{
	enum failure why;

	do {
		why = send_packed(h);
		if (why != FAILURE_NONE)
			return why;
		if (pack(h) != 0)
			return FAILURE_PROTOCOL;
	} while (h->h_len > 0);
	return FAILURE_NONE;
}

bool
http2_ending(const struct http2 *h)
{
	return h->h_ending;
}

unsigned
http2_busy(const struct http2 *h)
{
	return h->h_busy;
}

void
http2_leave(struct http2 **hp)
{
	nghttp2_session_del((*hp)->h_session);
	free(*hp);
	*hp = NULL;
}

void
http2_free(struct http2 **hp)
{
	int fd = (*hp)->h_fd;

	http2_leave(hp);
	client_close(fd);
}
