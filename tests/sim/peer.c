/*
 * peer: clients of the server, which speak HTTP/1 (http-parser reads the responses) or HTTP/2
 * (nghttp2), and what they do wrong: read slowly or never, open windows late, reset and shut down.
 */
#include <http_parser.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/answer.h"

#define ANSWERS 24
#define FIELD	96

enum windows { WINDOWS_OPEN, WINDOWS_SMALL, WINDOWS_LATE, WINDOWS_ZERO };

struct peer {
	unsigned pe_number, pe_requests;
	enum reader pe_reader;
	struct tcp_sock *pe_sock; /* NULL while not connected */
	bool pe_gone, pe_http2, pe_reading, pe_shut, pe_told, pe_paused;
	uint64_t pe_read, pe_resets_at, pe_could_read;
	struct answer pe_answers[ANSWERS]; /* to the requests of this batch */
	unsigned pe_first, pe_count;	   /* the first that is due: HTTP/1 */
	unsigned pe_batches;		   /* of this connection */
	char *pe_rest;			   /* bytes to send later */
	size_t pe_rest_len;

	http_parser pe_parser;
	char pe_name[FIELD], pe_value[FIELD];

	nghttp2_session *pe_session;
	enum windows pe_windows;
};

static struct peer peers[CLIENTS_MAX];
static void peer_speak(void *);
static void peer_queued(void *);

/* --------------------------------------------------------------- the connection */

/* Returns true if something may end this connection's responses early that is no fault of the server. */
static bool
peer_is_excused(const struct peer *pe)
{
	return served_ends() || served_limits() || pe->pe_shut ||
	       pe->pe_reader != READ_FAST || pe->pe_windows > WINDOWS_SMALL ||
	       has_fault(FAULT_MEMORY) || has_fault(FAULT_THREADS);
}

/* Ends the answers of a connection, and connects again later if requests are left. */
static void
peer_leave(struct peer *pe, const char *why)
{
	struct answer *an;
	unsigned i;

	if (pe->pe_sock == NULL)
		return;
	story("client %u leaves: %s", pe->pe_number,
	    why == NULL ? "by itself" : why);
	for (i = 0; i < pe->pe_count; i++) {
		an = &pe->pe_answers[i];
		if (!an->an_due)
			continue;
		if (peer_is_excused(pe) ||
		    (an->an_status == 0 && (pe->pe_told || pe->pe_batches > 1)))
			why = NULL;
		answer_end(an, false, why);
	}
	pe->pe_first = pe->pe_count = pe->pe_batches = 0;
	net_leave(pe->pe_sock);
	pe->pe_sock = NULL;
	nghttp2_session_del(pe->pe_session);
	pe->pe_session = NULL;
	free(pe->pe_rest);
	pe->pe_rest = NULL;
	pe->pe_gone = pe->pe_requests == 0;
	if (!pe->pe_gone)
		world_at(world_now + world_between(0, SECOND), peer_speak, pe);
}

static void
peer_send_rest(void *arg)
{
	struct peer *pe = arg;

	pe->pe_paused = false;
	if (pe->pe_sock == NULL || pe->pe_rest == NULL)
		return;
	story("client %u sends %zu bytes more", pe->pe_number, pe->pe_rest_len);
	net_write(pe->pe_sock, pe->pe_rest, pe->pe_rest_len);
	free(pe->pe_rest);
	pe->pe_rest = NULL;
}

/* Sends bytes, now and then a part of them later. */
static void
peer_send(struct peer *pe, const char *mem, size_t len)
{
	size_t now = len;

	if (pe->pe_rest != NULL)
		now = 0;
	else if (world_once_in(8))
		now = world_below((unsigned)len);
	if (now > 0)
		net_write(pe->pe_sock, mem, now);
	if (now == len)
		return;
	if (pe->pe_rest == NULL) {
		pe->pe_rest_len = 0;
		pe->pe_paused = true;
		world_at(world_now + world_between(US, 300 * MS),
		    peer_send_rest, pe);
	}
	pe->pe_rest = realloc(pe->pe_rest, pe->pe_rest_len + len - now);
	memcpy(pe->pe_rest + pe->pe_rest_len, mem + now, len - now);
	pe->pe_rest_len += len - now;
}

/* ----------------------------------------------------------------------- HTTP/1 */

static struct answer *
peer_answer(http_parser *hp)
{
	struct peer *pe = hp->data;

	if (pe->pe_first == pe->pe_count)
		world_fail("client %u gets a response that it did not ask for",
		    pe->pe_number);
	return &pe->pe_answers[pe->pe_first];
}

static void
peer_append(char *to, const char *mem, size_t len)
{
	size_t at = strlen(to);

	if (at + len < FIELD)
		memcpy(to + at, mem, len), to[at + len] = '\0';
}

static void
peer_take_field(http_parser *hp)
{
	struct peer *pe = hp->data;

	if (pe->pe_name[0] != '\0')
		answer_field(peer_answer(hp), pe->pe_name, pe->pe_value);
	pe->pe_name[0] = pe->pe_value[0] = '\0';
}

static int
peer_on_name(http_parser *hp, const char *mem, size_t len)
{
	struct peer *pe = hp->data;

	if (pe->pe_value[0] != '\0')
		peer_take_field(hp);
	peer_append(pe->pe_name, mem, len);
	return 0;
}

static int
peer_on_value(http_parser *hp, const char *mem, size_t len)
{
	peer_append(((struct peer *)hp->data)->pe_value, mem, len);
	return 0;
}

static int
peer_on_head(http_parser *hp)
{
	peer_take_field(hp);
	answer_head(peer_answer(hp), hp->status_code);
	return peer_answer(hp)->an_no_body;
}

static int
peer_on_body(http_parser *hp, const char *mem, size_t len)
{
	answer_body(peer_answer(hp), mem, len);
	return 0;
}

static int
peer_on_end(http_parser *hp)
{
	struct peer *pe = hp->data;

	answer_end(peer_answer(hp), true, NULL);
	pe->pe_first++;
	pe->pe_told = pe->pe_told || !http_should_keep_alive(hp);
	return 0;
}

static const http_parser_settings peer_settings = {
    .on_header_field = peer_on_name,
    .on_header_value = peer_on_value,
    .on_headers_complete = peer_on_head,
    .on_body = peer_on_body,
    .on_message_complete = peer_on_end,
};

static void
peer_ask_http1(struct peer *pe, const struct answer *an)
{
	char text[256];
	int n;

	n = snprintf(text, sizeof(text),
	    "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s%s%s\r\n",
	    an->an_no_body ? "HEAD" : "GET", an->an_path, an->an_host,
	    an->an_range[0] != '\0' ? "Range: " : "", an->an_range,
	    an->an_range[0] != '\0' ? "\r\n" : "",
	    an->an_match[0] != '\0' ? "If-None-Match: " : "", an->an_match,
	    an->an_match[0] != '\0' ? "\r\n" : "");
	peer_send(pe, text, (size_t)n);
}

/* ----------------------------------------------------------------------- HTTP/2 */

static struct answer *
peer_stream(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

static int
peer_on_header(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name, size_t name_len, const uint8_t *value,
    size_t value_len, uint8_t flags, void *arg)
{
	struct answer *an = peer_stream(session, frame->hd.stream_id);

	(void)name_len, (void)value_len, (void)flags, (void)arg;
	if (an == NULL)
		return 0;
	if (strcmp((const char *)name, ":status") == 0)
		an->an_status = (unsigned)atoi((const char *)value);
	else
		answer_field(an, (const char *)name, (const char *)value);
	return 0;
}

static int
peer_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct answer *an = peer_stream(session, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_HEADERS && an != NULL)
		answer_head(an, an->an_status);
	if (frame->hd.type == NGHTTP2_GOAWAY)
		((struct peer *)arg)->pe_told = true;
	return 0;
}

static int
peer_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *mem, size_t len, void *arg)
{
	struct peer *pe = arg;
	struct answer *an = peer_stream(session, id);

	(void)flags;
	if (an == NULL)
		return 0;
	answer_body(an, (const char *)mem, len);
	if (has_fault(FAULT_RESETS) && world_once_in(200))
		nghttp2_submit_rst_stream(
		    session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	nghttp2_session_consume_connection(session, len);
	an->an_owed += len;
	if (pe->pe_windows != WINDOWS_LATE || world_once_in(2)) {
		nghttp2_session_consume_stream(session, id, an->an_owed);
		an->an_owed = 0;
	}
	return 0;
}

static int
peer_on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	struct peer *pe = arg;
	struct answer *an = peer_stream(session, id);

	if (an == NULL)
		return 0;
	answer_end(an, error == 0,
	    error == NGHTTP2_CANCEL || error == NGHTTP2_REFUSED_STREAM ||
		    peer_is_excused(pe)
		? NULL
		: nghttp2_http2_strerror(error));
	return 0;
}

static void
peer_flush(struct peer *pe)
{
	const uint8_t *mem;
	ssize_t n;

	while (pe->pe_sock != NULL &&
	       (n = nghttp2_session_mem_send(pe->pe_session, &mem)) > 0)
		peer_send(pe, (const char *)mem, (size_t)n);
}

static void
peer_set_window(struct peer *pe, uint32_t bytes)
{
	const nghttp2_settings_entry se = {
	    NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes};

	pe->pe_could_read = world_now;
	nghttp2_submit_settings(pe->pe_session, NGHTTP2_FLAG_NONE, &se, 1);
}

/* Opens windows late. */
static void
peer_open_windows(void *arg)
{
	struct peer *pe = arg;
	struct answer *an;
	unsigned i;

	if (pe->pe_gone)
		return;
	world_at(
	    world_now + world_between(MS, 2 * SECOND), peer_open_windows, pe);
	if (pe->pe_session == NULL)
		return;
	for (i = 0; i < pe->pe_count; i++) {
		an = &pe->pe_answers[i];
		if (an->an_due && an->an_owed > 0)
			nghttp2_session_consume_stream(
			    pe->pe_session, an->an_stream, an->an_owed);
		an->an_owed = 0;
	}
	if (pe->pe_windows == WINDOWS_ZERO)
		peer_set_window(
		    pe, world_once_in(3) ? 0 : 1 + world_below(100000));
	pe->pe_could_read = world_now;
	peer_flush(pe);
}

static void
peer_begin_http2(struct peer *pe)
{
	nghttp2_session_callbacks *cb;
	nghttp2_option *option;

	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_header_callback(cb, peer_on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, peer_on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
	    cb, peer_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(
	    cb, peer_on_close);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_client_new2(&pe->pe_session, cb, pe, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(cb);
	peer_set_window(pe, pe->pe_windows == WINDOWS_ZERO ? 0
			    : pe->pe_windows == WINDOWS_SMALL
				? 1 + world_below(3000)
				: 65535U << world_below(8));
}

#define NV(n, v)                                                      \
	(nghttp2_nv)                                                  \
	{                                                             \
		(uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), \
		    strlen(n), strlen(v), 0                           \
	}

static void
peer_ask_http2(struct peer *pe, struct answer *an)
{
	nghttp2_nv nv[6] = {NV(":method", an->an_no_body ? "HEAD" : "GET"),
	    NV(":scheme", "http"), NV(":authority", an->an_host),
	    NV(":path", an->an_path)};
	size_t n = 4;

	if (an->an_range[0] != '\0')
		nv[n++] = NV("range", an->an_range);
	if (an->an_match[0] != '\0')
		nv[n++] = NV("if-none-match", an->an_match);
	an->an_stream =
	    nghttp2_submit_request(pe->pe_session, NULL, nv, n, NULL, an);
	if (an->an_stream < 0)
		world_fail("the simulator cannot make a stream");
}

/* ------------------------------------------------------------------------- steps */

static bool
peer_is_due(const struct peer *pe)
{
	unsigned i;

	for (i = 0; i < pe->pe_count; i++)
		if (pe->pe_answers[i].an_due)
			return true;
	return false;
}

/* Has all responses: asks again, waits for the server to close, or leaves. */
static void
peer_next(struct peer *pe)
{
	pe->pe_first = pe->pe_count = 0;
	if (pe->pe_requests > 0 && !pe->pe_told)
		world_at(
		    world_now +
			(world_once_in(2) ? world_between(0, 3 * SECOND) : 0),
		    peer_speak, pe);
	else if (pe->pe_told || world_once_in(3))
		return;
	else if (world_once_in(2))
		peer_leave(pe, NULL);
	else
		net_shut(pe->pe_sock);
}

static bool
peer_feed(struct peer *pe, const char *mem, size_t len)
{
	if (!pe->pe_http2)
		return http_parser_execute(
			   &pe->pe_parser, &peer_settings, mem, len) == len;
	if (nghttp2_session_mem_recv(
		pe->pe_session, (const uint8_t *)mem, len) != (ssize_t)len)
		return false;
	peer_flush(pe);
	return true;
}

/* Receives up to `most` bytes.  Returns false if the connection has ended. */
static bool
peer_receive(struct peer *pe, size_t most)
{
	static char mem[16384];
	size_t n;

	while (most > 0 && !pe->pe_sock->so_reset &&
	       (n = net_read(pe->pe_sock, mem,
		    most < sizeof(mem) ? most : sizeof(mem))) > 0) {
		if (!peer_feed(pe, mem, n))
			world_fail("client %u got bytes that are not HTTP",
			    pe->pe_number);
		most -= n;
		pe->pe_read += n;
	}
	if (pe->pe_read >= pe->pe_resets_at) {
		pe->pe_resets_at = NEVER;
		covered("client   leaves");
		peer_leave(pe, NULL);
		return false;
	}
	if (!net_ended(pe->pe_sock))
		return true;
	if (!pe->pe_http2 && !pe->pe_sock->so_reset)
		peer_feed(pe, NULL, 0);
	peer_leave(pe, pe->pe_sock->so_reset
			   ? "the server resets the connection"
			   : "the server closes the connection");
	return false;
}

static void
peer_read(void *arg)
{
	struct peer *pe = arg;
	bool was_due = peer_is_due(pe);

	pe->pe_reading = false;
	if (pe->pe_sock == NULL)
		return;
	if (pe->pe_reader == READ_NEVER) {
		pe->pe_requests = 0;
		peer_leave(pe, NULL);
		return;
	}
	pe->pe_could_read = world_now;
	if (!peer_receive(pe,
		pe->pe_reader == READ_SLOW ? world_below(65536) + 1 : SIZE_MAX))
		return;
	if (was_due && !peer_is_due(pe))
		peer_next(pe);
	else if (pe->pe_sock->so_wire != NULL && pe->pe_sock->so_queued > 0)
		peer_queued(pe);
}

static void
peer_queued(void *arg)
{
	static const uint64_t most[READERS] = {
	    500 * US, 200 * MS, 2 * SECOND, 15 * SECOND, 60 * SECOND};
	struct peer *pe = arg;

	if (pe->pe_reading)
		return;
	pe->pe_reading = true;
	world_at(world_now + world_between(
				 most[pe->pe_reader] / 20, most[pe->pe_reader]),
	    peer_read, pe);
}

static void
peer_memory(void *arg, const char *mem, size_t len)
{
	net_keep(((struct peer *)arg)->pe_sock, mem, len);
}

static void
peer_page(
    void *arg, const struct inode *in, off_t off, size_t len, uint32_t version)
{
	net_keep(((struct peer *)arg)->pe_sock,
	    inode_bytes(in, off / PAGE, version) + off % PAGE, len);
}

static void
peer_writable(void *arg)
{
	if (((struct peer *)arg)->pe_sock != NULL)
		net_writable(((struct peer *)arg)->pe_sock);
}

static const struct sock_end peer_end = {
    .se_memory = peer_memory,
    .se_page = peer_page,
    .se_queued = peer_queued,
    .se_writable = peer_writable,
};

static bool
peer_connect(struct peer *pe)
{
	pe->pe_sock = net_connect(&peer_end, pe,
	    world_once_in(2) ? 4 << 20 : (unsigned)world_between(8192, 300000));
	pe->pe_told = pe->pe_shut = false;
	if (pe->pe_sock == NULL) {
		pe->pe_gone = served_ends();
		if (!pe->pe_gone)
			world_at(world_now + 100 * MS, peer_speak, pe);
		return false;
	}
	http_parser_init(&pe->pe_parser, HTTP_RESPONSE);
	pe->pe_parser.data = pe;
	if (pe->pe_http2)
		peer_begin_http2(pe);
	return true;
}

/* Sends a batch of requests, and connects before if there is no connection. */
static void
peer_speak(void *arg)
{
	struct peer *pe = arg;
	unsigned n = 1 + world_below(pe->pe_http2 ? ANSWERS : 4);

	if (pe->pe_told && pe->pe_sock != NULL && pe->pe_count == 0) {
		peer_leave(pe, NULL);
		return;
	}
	if (pe->pe_gone || pe->pe_count > 0 ||
	    (pe->pe_sock == NULL && !peer_connect(pe)))
		return;
	if (n > pe->pe_requests)
		n = pe->pe_requests;
	pe->pe_requests -= n;
	pe->pe_batches++;
	pe->pe_first = 0;
	for (pe->pe_count = 0; pe->pe_count < n && pe->pe_sock != NULL;
	     pe->pe_count++) {
		answer_ask(&pe->pe_answers[pe->pe_count], pe->pe_number);
		if (pe->pe_http2)
			peer_ask_http2(pe, &pe->pe_answers[pe->pe_count]);
		else
			peer_ask_http1(pe, &pe->pe_answers[pe->pe_count]);
	}
	if (pe->pe_http2)
		peer_flush(pe);
	story("client %u sends %u requests by HTTP/%u", pe->pe_number, n,
	    pe->pe_http2 ? 2 : 1);
	if (!pe->pe_paused && world_once_in(12)) {
		pe->pe_shut = true;
		for (n = 0; n < pe->pe_count; n++)
			pe->pe_answers[n].an_shut = true;
		net_shut(pe->pe_sock);
	}
}

void
peers_draw(void)
{
	struct peer *pe;
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++) {
		pe = &peers[i];
		*pe = (struct peer){.pe_number = i,
		    .pe_requests = 1 + world_below(8 * plan.pl_requests),
		    .pe_reader = (enum reader)world_one_of(plan.pl_readers, 3),
		    .pe_http2 = world_once_in(2),
		    .pe_resets_at = NEVER};
		if (has_fault(FAULT_STALLS) && world_once_in(3))
			pe->pe_reader =
			    world_once_in(2) ? READ_STALLS : READ_NEVER;
		if (has_fault(FAULT_RESETS) && world_once_in(3))
			pe->pe_resets_at = world_between(0, 4 << 20);
		if (pe->pe_http2)
			pe->pe_windows = (enum windows)world_below(
			    has_fault(FAULT_STALLS) ? 4 : 2);
		world_at(
		    world_now + world_between(0, 5 * SECOND), peer_speak, pe);
		if (pe->pe_windows > WINDOWS_SMALL)
			world_at(world_now, peer_open_windows, pe);
	}
}

void
peers_check(void)
{
	const struct peer *pe;
	unsigned i, j;

	for (i = 0; i < plan.pl_clients && !served_limits(); i++) {
		pe = &peers[i];
		if (pe->pe_sock == NULL || pe->pe_reading || pe->pe_paused)
			continue;
		for (j = pe->pe_first; j < pe->pe_count; j++) {
			if (pe->pe_answers[j].an_due)
				answer_check(&pe->pe_answers[j],
				    pe->pe_could_read,
				    pe->pe_http2 ? "HTTP/2" : "HTTP/1");
			if (!pe->pe_http2)
				break;
		}
	}
}

void
peers_leave(void)
{
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++) {
		peers[i].pe_requests = 0;
		if (peers[i].pe_sock == NULL)
			peers[i].pe_gone = true;
		peer_leave(&peers[i], NULL);
	}
}

bool
peers_all_gone(void)
{
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++)
		if (!peers[i].pe_gone)
			return false;
	return true;
}
