/*
 * server/http2/session.h: a client that keeps the rules, breaks them, or leaves, and a second, naive
 * reader of what comes out.
 * Input: "WINDOW PIECE\n" (its first windows; bytes that are received at once), and actions: a byte for
 * what it is, a byte for its stream or size, and for RAW as many bytes as that says.  Until the first
 * thing that is not allowed: every frame that comes out is one that may come then, no window is
 * exceeded, each byte is the right one; and in the end, with windows that are wide open, each
 * stream that was begun has ended.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "fuzz.h"
#include "lib/util/clock.h"
#include "server/conf/conf.h"
#include "server/content/autoindex_cache.h"
#include "server/content/response_cache.h"
#include "server/http/range.h"
#include "server/http2/session.h"
#include "server/worker/worker.h"

#define STREAMS 32
#define ACTIONS 200
#define BIG	100000
#define WIDE	(1 << 20)
#define MOST	16384

enum action { OPEN, UPDATE, RESET, WINDOW, PING, BODY, RUN, RAW, ACTIONS_END };

static const struct {
	const char *path;
	long size; /* -1: an error's page */
} targets[] = {{"/small", 5}, {"/big", BIG}, {"/none", -1}, {"/empty", 0}};

/* What the naive reader knows of a stream. */
struct naive {
	bool nv_begun, nv_open; /* open: the client may send a body */
	bool nv_head, nv_ended;
	unsigned nv_target;
	int64_t nv_window;
	long nv_got;
};

static struct worker worker;
static char dir[] = "/tmp/pagewise-fuzz.XXXXXX";
static struct naive streams[STREAMS];
static int64_t window, first_window;
static bool strict, settled, gone;
static struct h2 *session;
static size_t piece;
static char frames[2 * MOST];
static size_t frames_len;

/* ---------------------------------------------------------------- the server */

static char
byte_of(long at)
{
	return (char)(at * 7 + at / 251);
}

static void
make_file(const char *name, long size)
{
	char path[64];
	FILE *fp;

	snprintf(path, sizeof(path), "%s%s", dir, name);
	fp = fopen(path, "w");
	CHECK(fp != NULL);
	for (long i = 0; i < size; i++)
		CHECK(putc((unsigned char)byte_of(i), fp) != EOF);
	CHECK(fclose(fp) == 0);
}

static void
remove_files(void)
{
	char path[64];

	for (size_t i = 0; i < COUNT(targets); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, targets[i].path);
		unlink(path);
	}
	rmdir(dir);
}

static void
prepare(void)
{
	static struct pw_root *roots[1];
	char *argv[] = {"pagewise", "--root", dir, NULL};
	struct pw_pool_conf pool_conf = {1, 0};
	struct service *svc = &worker.wk_service;
	struct pw_pool *pool;
	struct conf *conf;
	struct log *lg;

	if (svc->svc_conf != NULL)
		return;
	CHECK(mkdtemp(dir) != NULL);
	atexit(remove_files);
	for (size_t i = 0; i < COUNT(targets); i++)
		if (targets[i].size >= 0)
			make_file(targets[i].path, targets[i].size);
	CHECK(conf_load(3, argv, NULL, &conf) == CONF_RUN);
	CHECK(log_create(NULL, LOG_COMBINED, 1, &lg, &(bool){false}) == 0);
	CHECK(pw_pool_create(&pool_conf, &pool) == 0);
	CHECK(pw_loop_create(pool, NULL, &svc->svc_loop) == 0);
	CHECK(pw_root_open(dir, &roots[0]) == 0);
	svc->svc_conf = conf;
	svc->svc_log = log_writer(lg, 0);
	svc->svc_roots = roots;
	svc->svc_listings = autoindex_cache_create(AUTOINDEX_CACHE_ALIVE);
	svc->svc_ranges = calloc(RANGE_MOST, sizeof(*svc->svc_ranges));
	svc->svc_responses = response_cache_create((size_t)1 << 16);
	sched_init(&worker.wk_sched);
	worker.wk_sched.sc_timeouts[TIMER_SEND] = 1000000;
	worker.wk_sched.sc_timeouts[TIMER_DISK] = 1000000;
}

static void
on_turn(void *arg)
{
	(void)arg;
}

/* ------------------------------------------------------------ the naive reader */

static uint32_t
number(const unsigned char *p, int bytes)
{
	uint32_t n = 0;

	while (bytes-- > 0)
		n = n << 8 | *p++;
	return n;
}

static struct naive *
of_id(uint32_t id)
{
	return id % 2 == 1 && id / 2 < STREAMS && streams[id / 2].nv_begun
		   ? &streams[id / 2]
		   : NULL;
}

static void
read_data(struct naive *nv, const unsigned char *p, uint32_t len)
{
	long size;

	if (!strict)
		return;
	CHECK(nv != NULL && nv->nv_head && !nv->nv_ended);
	size = targets[nv->nv_target].size;
	window -= len;
	nv->nv_window -= len;
	CHECK(len == 0 || (window >= 0 && nv->nv_window >= 0));
	for (uint32_t i = 0; size >= 0 && i < len; i++)
		CHECK((char)p[i] == byte_of(nv->nv_got + (long)i));
	nv->nv_got += (long)len;
}

static void
read_frame(unsigned type, unsigned flags, uint32_t id, const unsigned char *p,
    uint32_t len)
{
	struct naive *nv = of_id(id);

	CHECK(settled || type == NGHTTP2_SETTINGS);
	settled = true;
	switch (type) {
	case NGHTTP2_HEADERS:
		CHECK(!strict || (nv != NULL && !nv->nv_head && !nv->nv_ended));
		if (nv != NULL)
			nv->nv_head = true;
		break;
	case NGHTTP2_DATA:
		read_data(nv, p, len);
		break;
	case NGHTTP2_RST_STREAM:
		CHECK(len == 4);
		/* A body that goes on when all was answered is all that we reset here. */
		CHECK(!strict ||
		      (nv != NULL && number(p, 4) == NGHTTP2_NO_ERROR));
		if (nv != NULL)
			nv->nv_ended = true;
		return;
	case NGHTTP2_GOAWAY:
		gone = true;
		CHECK(!strict);
		return;
	default:
		return;
	}
	if (nv == NULL || (flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return;
	nv->nv_ended = true;
	CHECK(!strict || targets[nv->nv_target].size < 0 ||
	      nv->nv_got == targets[nv->nv_target].size);
}

static void
read_frames(const char *data, size_t len)
{
	const unsigned char *p;
	uint32_t size;
	size_t at = 0;

	CHECK(frames_len + len <= sizeof(frames) + len);
	while (len > 0 || at > 0) {
		size_t n = sizeof(frames) - frames_len;

		n = n < len ? n : len;
		memcpy(frames + frames_len, data, n);
		frames_len += n;
		data += n;
		len -= n;
		for (at = 0; frames_len - at >= H2_FRAME_HEAD; at += size) {
			p = (const unsigned char *)frames + at;
			size = number(p, 3);
			CHECK(size <= MOST);
			size += H2_FRAME_HEAD;
			if (frames_len - at < size)
				break;
			read_frame(p[3], p[4], number(p + 5, 4) & INT32_MAX,
			    p + H2_FRAME_HEAD, size - H2_FRAME_HEAD);
		}
		memmove(frames, frames + at, frames_len - at);
		frames_len -= at;
		if (len == 0)
			break;
	}
}

/* ------------------------------------------------------------------ the client */

static void
wait_for_disk(void)
{
	struct pw_loop *lp = worker.wk_service.svc_loop;
	struct pollfd pfd = {.fd = pw_loop_fd(lp), .events = POLLIN};

	while (pw_loop_pending(lp) > 0) {
		CHECK(poll(&pfd, 1, 10000) == 1);
		pw_loop_drain(lp);
	}
}

/* Its turns, until it has nothing to do. */
static void
run(void)
{
	static char out[3 * H2_FRAME];
	size_t n;
	bool more = true;

	while (more) {
		more = h2_run(session);
		n = h2_gather(session, out, sizeof(out));
		CHECK(n <= sizeof(out));
		read_frames(out, n);
		wait_for_disk();
		more |= n > 0 || !TAILQ_EMPTY(&session->h2_due);
#ifdef PW_DEBUG
		h2_check(session);
#endif
	}
	CHECK(h2_is_over(session) || !h2_wants_room(session));
}

static void
send_bytes(const void *data, size_t len)
{
	const char *p = data;
	size_t n, taken;

	for (; len > 0 && !h2_is_over(session); p += taken, len -= taken) {
		n = piece < len ? piece : len;
		if (!h2_receive(session, p, n, &taken))
			strict = false;
		if (taken == n)
			continue;
		/* The session has read enough requests, or holds enough heads. */
		run();
		h2_begin_slice(session);
		CHECK(!h2_is_laden(session));
	}
}

static void
put(unsigned char *p, uint32_t n, int bytes)
{
	while (bytes-- > 0)
		*p++ = (unsigned char)(n >> 8 * bytes);
}

static void
send_frame(
    unsigned type, unsigned flags, uint32_t id, const void *payload, size_t len)
{
	unsigned char frame[256];

	put(frame, (uint32_t)len, 3);
	frame[3] = (unsigned char)type;
	frame[4] = (unsigned char)flags;
	put(frame + 5, id, 4);
	memcpy(frame + H2_FRAME_HEAD, payload, len);
	send_bytes(frame, H2_FRAME_HEAD + len);
}

static size_t
field(char *to, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);

	to[0] = 0;
	to[1] = (char)n;
	memcpy(to + 2, name, n);
	to[2 + n] = (char)v;
	memcpy(to + 3 + n, value, v);
	return 3 + n + v;
}

/* The next stream; what: its target, and whether a body follows. */
static void
open_stream(unsigned what)
{
	static const char *const methods[] = {"GET", "GET", "GET", "POST"};
	struct naive *nv = streams;
	char block[200];
	size_t len;

	while (nv < streams + STREAMS && nv->nv_begun)
		nv++;
	if (nv == streams + STREAMS)
		return;
	*nv = (struct naive){.nv_begun = true,
	    .nv_open = what & 8,
	    .nv_target = what % COUNT(targets),
	    .nv_window = first_window};
	if (what & 16)
		nv->nv_target = 2;
	len = field(block, ":method", methods[what & 16 ? 3 : 0]);
	len += field(block + len, ":scheme", "http");
	len += field(block + len, ":authority", "x");
	len += field(block + len, ":path", targets[nv->nv_target].path);
	if (what & 32)
		len += field(
		    block + len, "priority", what & 64 ? "u=1" : "u=5, i");
	send_frame(NGHTTP2_HEADERS,
	    NGHTTP2_FLAG_END_HEADERS |
		(nv->nv_open ? 0 : NGHTTP2_FLAG_END_STREAM),
	    (uint32_t)(nv - streams) * 2 + 1, block, len);
}

static void
update(unsigned what)
{
	static const uint32_t by[] = {1, 5, 1000, 16375, 65535, 9, 100, 40000};
	struct naive *nv = of_id(what / 8 * 2 + 1);
	unsigned char number[4];

	if (nv == NULL) {
		window += by[what % 8];
		put(number, by[what % 8], 4);
		send_frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number, 4);
		return;
	}
	nv->nv_window += by[what % 8];
	put(number, by[what % 8], 4);
	send_frame(NGHTTP2_WINDOW_UPDATE, 0, what / 8 * 2 + 1, number, 4);
}

/* What came of it before does not matter any more. */
static void
reset(unsigned what)
{
	struct naive *nv = of_id(what % STREAMS * 2 + 1);

	if (nv == NULL || nv->nv_ended)
		return;
	nv->nv_ended = true;
	send_frame(
	    NGHTTP2_RST_STREAM, 0, what % STREAMS * 2 + 1, "\0\0\0\10", 4);
}

static void
set_window(unsigned what)
{
	static const int sizes[] = {0, 1, 100, 20000, 65535, 3, 70000, 16384};
	unsigned char payload[6] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE};
	int64_t more = sizes[what % 8] - first_window;

	first_window += more;
	for (int i = 0; i < STREAMS; i++)
		streams[i].nv_window += more;
	put(payload + 2, (uint32_t)first_window, 4);
	send_frame(NGHTTP2_SETTINGS, 0, 0, payload, sizeof(payload));
}

static void
body(unsigned what)
{
	struct naive *nv = of_id(what % STREAMS * 2 + 1);
	char data[100] = {0};
	bool end = what & 32;

	if (nv == NULL || !nv->nv_open || nv->nv_ended)
		return;
	nv->nv_open = !end;
	send_frame(NGHTTP2_DATA, end ? NGHTTP2_FLAG_END_STREAM : 0,
	    what % STREAMS * 2 + 1, data, what / 64 * 33);
}

static void
act(struct str *in)
{
	unsigned what = (unsigned char)in->s_ptr[0] % ACTIONS_END;
	unsigned n = (unsigned char)in->s_ptr[1];

	in->s_ptr += 2;
	in->s_len -= 2;
	switch ((enum action)what) {
	case OPEN:
		open_stream(n);
		break;
	case UPDATE:
		update(n);
		break;
	case RESET:
		reset(n);
		break;
	case WINDOW:
		set_window(n);
		break;
	case PING:
		send_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
		break;
	case BODY:
		body(n);
		break;
	case RUN:
		run();
		break;
	case RAW:
		n = n < in->s_len ? n : (unsigned)in->s_len;
		strict = strict && n == 0;
		send_bytes(in->s_ptr, n);
		in->s_ptr += n;
		in->s_len -= n;
		break;
	case ACTIONS_END:
		break;
	}
}

/* Nothing is held up for ever. */
static void
end_well(void)
{
	unsigned char wide[4];

	run();
	for (uint32_t i = 0; i < STREAMS; i++)
		if (streams[i].nv_begun && !streams[i].nv_ended) {
			put(wide, WIDE, 4);
			window += WIDE;
			streams[i].nv_window += WIDE;
			send_frame(NGHTTP2_WINDOW_UPDATE, 0, 0, wide, 4);
			send_frame(
			    NGHTTP2_WINDOW_UPDATE, 0, 2 * i + 1, wide, 4);
		}
	run();
	for (int i = 0; i < STREAMS; i++)
		CHECK(!strict || !streams[i].nv_begun || streams[i].nv_ended);
	CHECK(!strict || !gone);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct h2_owner owner = {.ho_wake = on_turn,
	    .ho_worker = &worker,
	    .ho_peer = &(const struct sockaddr){.sa_family = AF_UNIX},
	    .ho_bucket = &(struct token_bucket){0},
	    .ho_fd = -1};
	struct str in = fuzz_input(data, size);
	struct str line = fuzz_line(&in);
	int n;

	prepare();
	memset(streams, 0, sizeof(streams));
	frames_len = 0;
	window = first_window = 65535;
	strict = true;
	settled = gone = false;
	session = h2_create(&owner);
	CHECK(session != NULL);
	n = (int)fuzz_number(&line, 4);
	piece = fuzz_size(&line, 1000, 1, 20000);
	send_bytes(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
	set_window((unsigned)n);
	for (n = 0; n < ACTIONS && in.s_len >= 2 && !gone; n++)
		act(&in);
	end_well();
	h2_stop(session);
	wait_for_disk();
	CHECK(!h2_waits(session) && session->h2_count == 0);
	h2_destroy(&session);
	return 0;
}
