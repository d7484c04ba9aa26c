/*
 * client: see client.h.  The answers are those of a static file server:
 * Content-Length or close, no trailers, no pipelining.
 */
#include "client.h"
#include "client_tls.h"

#include <sys/resource.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX 4096 /* always fits into an empty socket buffer */
#define SEGMENT	    1460 /* loopback's 64 KiB would not pass a small window */
#define SOURCES	    200	 /* 127.0.0.2 and so on */

volatile sig_atomic_t client_stopped;

static char buffer[1 << 16];
static bool over_tls; /* the one server that all of it is about */

uint64_t
client_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static void
on_signal(int sig)
{
	(void)sig;
	client_stopped = 1;
}

void
client_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

double
client_number(const char *option, const char *text, double min, double max)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end != '\0' || !(n >= min && n <= max))
		errx(2, "--%s %s: not a number from %.15g to %.15g", option,
		    text, min, max);
	return n;
}

void
client_descriptors(unsigned n)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		err(1, "getrlimit");
	if (rl.rlim_cur >= n)
		return;
	rl.rlim_cur = n;
	if (rl.rlim_max < n)
		rl.rlim_max = n;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		errx(1,
		    "%u descriptors are needed, the limit (ulimit -Hn) "
		    "is lower",
		    n);
}

static void
resolve(struct targets *ts)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
	char host[sizeof(ts->ts_authority)], *name = host, *port;
	int error;

	memcpy(host, ts->ts_authority, sizeof(host));
	port = strrchr(host, ':');
	if (port != NULL && strchr(port, ']') == NULL)
		*port++ = '\0';
	else
		port = NULL;
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		name++;
	}
	if (port == NULL)
		port = ts->ts_tls ? "443" : "80";
	error = getaddrinfo(name, port, &hints, &ai);
	if (error != 0)
		errx(2, "%s: %s", ts->ts_authority, gai_strerror(error));
	memcpy(&ts->ts_addr, ai->ai_addr, ai->ai_addrlen);
	ts->ts_addrlen = ai->ai_addrlen;
	freeaddrinfo(ai);
}

/* Length of "http://" or "https://", 0: neither. */
static size_t
scheme_len(const char *text)
{
	if (strncmp(text, "http://", 7) == 0)
		return 7;
	return strncmp(text, "https://", 8) == 0 ? 8 : 0;
}

static void
set_server(struct targets *ts, const char *authority, size_t len, bool tls)
{
	memcpy(ts->ts_authority, authority, len);
	ts->ts_tls = over_tls = tls;
	if (tls)
		client_tls_start();
	resolve(ts);
}

/* The path of a URL. */
static const char *
take_authority(struct targets *ts, const char *url)
{
	size_t known = strlen(ts->ts_authority), scheme = scheme_len(url);
	const char *authority = url + scheme;
	size_t len = strcspn(authority, "/");
	bool tls = scheme == 8;

	if (len == 0 || len >= sizeof(ts->ts_authority))
		errx(2, "%s: what host?", url);
	if (known == 0)
		set_server(ts, authority, len, tls);
	else if (known != len || memcmp(ts->ts_authority, authority, len) != 0)
		errx(2, "%s: another server than %s", url, ts->ts_authority);
	else if (ts->ts_tls != tls)
		errx(2, "%s: another scheme than before", url);
	return authority[len] == '/' ? authority + len : "/";
}

void
targets_add(struct targets *ts, const char *text)
{
	const char *path = text, *range;
	struct target *t;
	int len, said = 0;

	if (scheme_len(text) > 0)
		path = take_authority(ts, text);
	if (path[0] != '/' || ts->ts_authority[0] == '\0' ||
	    strpbrk(path, " \t\r\n") != NULL)
		errx(2, "%s: not a http:// URL (or https) nor a path of one",
		    text);
	/* Powers of two. */
	if ((ts->ts_n & (ts->ts_n - 1)) == 0)
		ts->ts_list = reallocarray(
		    ts->ts_list, ts->ts_n > 0 ? ts->ts_n * 2 : 1, sizeof(*t));
	if (ts->ts_list == NULL)
		err(1, NULL);
	t = &ts->ts_list[ts->ts_n++];
	range = strchr(path, '#');
	t->t_path = strndup(path, strcspn(path, "#"));
	t->t_range = NULL;
	if (range != NULL)
		said = asprintf(&t->t_range, "bytes=%s", range + 1);
	len =
	    asprintf(&t->t_request, "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n",
		t->t_path, ts->ts_authority, range != NULL ? "Range: " : "",
		range != NULL ? t->t_range : "", range != NULL ? "\r\n" : "");
	if (t->t_path == NULL || said == -1 || len == -1)
		err(1, NULL);
	if (len > REQUEST_MAX)
		errx(2, "%s: too long", text);
	t->t_len = (size_t)len;
}

void
targets_load(struct targets *ts, const char *url, const char *file)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f;

	if (file == NULL && url == NULL)
		errx(2, "what URL?");
	if (file == NULL) {
		targets_add(ts, url);
		return;
	}
	if (url != NULL && scheme_len(url) > 0)
		take_authority(ts, url);
	f = fopen(file, "re");
	if (f == NULL)
		err(2, "%s", file);
	while (getline(&line, &size, f) != -1) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] != '\0')
			targets_add(ts, line);
	}
	free(line);
	fclose(f);
	if (ts->ts_n == 0)
		errx(2, "%s: no targets", file);
}

/* splitmix64: the same order on every host. */
size_t
targets_pick(struct targets *ts)
{
	uint64_t z = (ts->ts_random += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (size_t)((z ^ (z >> 31)) % ts->ts_n);
}

size_t
targets_next(struct targets *ts)
{
	size_t turn = ts->ts_turn;

	ts->ts_turn = (turn + 1) % ts->ts_n;
	return turn;
}

void
targets_free(struct targets *ts)
{
	for (size_t i = 0; i < ts->ts_n; i++) {
		free(ts->ts_list[i].t_path);
		free(ts->ts_list[i].t_range);
		free(ts->ts_list[i].t_request);
	}
	free(ts->ts_list);
	ts->ts_list = NULL;
	ts->ts_n = 0;
}

static int
bind_source(int fd, unsigned source)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + source)};
	int one = 1;

	/* Else bind() takes a port that no other destination can use. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&sin, sizeof(sin));
}

int
client_connect(const struct targets *ts, int rcvbuf, unsigned source)
{
	int fd, saved, one = 1, mss = SEGMENT;

	fd = socket(ts->ts_addr.ss_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (rcvbuf > 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss));
	}
	if (source > 0 && bind_source(fd, source) == -1)
		goto fail;
	if (connect(fd, (const struct sockaddr *)&ts->ts_addr,
		ts->ts_addrlen) == 0 ||
	    errno == EINPROGRESS)
		return fd;
fail:
	saved = errno;
	close(fd);
	return -saved;
}

static bool
on_loopback(const struct targets *ts)
{
	struct sockaddr_in sin;

	memcpy(&sin, &ts->ts_addr, sizeof(sin));
	return sin.sin_family == AF_INET &&
	       ntohl(sin.sin_addr.s_addr) >> 24 == 127;
}

int
client_connect_from(const struct targets *ts, int rcvbuf, unsigned *source)
{
	int fd;

	if (!on_loopback(ts))
		return client_connect(ts, rcvbuf, 0);
	for (;;) {
		fd = client_connect(ts, rcvbuf, *source);
		if (fd != -EADDRNOTAVAIL || *source > SOURCES)
			return fd;
		*source += *source == 0 ? 2 : 1;
	}
}

int
client_connected(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		return errno;
	return error != 0 || !over_tls ? error : client_tls_handshake(fd);
}

bool
client_kept(int fd)
{
	char c;

	return over_tls && client_tls_recv(fd, &c, 1) == -1 && errno == EAGAIN;
}

void
client_forget(int fd)
{
	if (over_tls)
		client_tls_forget(fd);
}

void
client_close(int fd)
{
	client_forget(fd);
	close(fd);
}

ssize_t
client_write(int fd, const void *data, size_t len)
{
	return over_tls ? client_tls_send(fd, data, len)
			: send(fd, data, len, MSG_NOSIGNAL);
}

ssize_t
client_read(int fd, void *buf, size_t max)
{
	return over_tls ? client_tls_recv(fd, buf, max) : recv(fd, buf, max, 0);
}

enum failure
client_send(int fd, const struct target *t, struct response *r)
{
	ssize_t n;

	response_init(r);
	n = client_write(fd, t->t_request, t->t_len);
	return n == (ssize_t)t->t_len ? FAILURE_NONE : FAILURE_WRITE;
}

static enum failure
at_eof(struct response *r)
{
	if (r->r_state != RESPONSE_BODY || r->r_length != -1)
		return FAILURE_CLOSED;
	r->r_state = RESPONSE_DONE;
	return FAILURE_NONE;
}

enum failure
client_failure(void)
{
	switch (errno) {
	case EAGAIN:
	case EINTR:
		return FAILURE_AGAIN;
	case EPROTO:
		return FAILURE_PROTOCOL;
	case ECONNABORTED:
		return FAILURE_CLOSED;
	default:
		return FAILURE_READ;
	}
}

enum failure
client_recv(
    int fd, struct response *r, size_t max, bool discard, struct chunk *ch)
{
	bool body = r->r_state == RESPONSE_BODY;
	ssize_t n, head;

	*ch = (struct chunk){.ch_offset = r->r_got};
	if (max > sizeof(buffer))
		max = sizeof(buffer);
	n = over_tls ? client_tls_recv(fd, buffer, max)
		     : recv(fd, buffer, max, body && discard ? MSG_TRUNC : 0);
	if (n == -1)
		return client_failure();
	if (n == 0)
		return at_eof(r);
	head = body ? 0 : response_head(r, buffer, (size_t)n);
	if (head < 0)
		return FAILURE_PROTOCOL;
	ch->ch_read = (size_t)n;
	ch->ch_len = (size_t)(n - head);
	ch->ch_body = body && discard ? NULL : buffer + head;
	r->r_got += n - head;
	if (r->r_length != -1 && r->r_got > r->r_length)
		return FAILURE_PROTOCOL;
	if (r->r_state == RESPONSE_BODY && r->r_got == r->r_length)
		r->r_state = RESPONSE_DONE;
	return FAILURE_NONE;
}

void
response_init(struct response *r)
{
	r->r_state = RESPONSE_HEAD;
	r->r_status = 0;
	r->r_close = false;
	r->r_length = -1;
	r->r_got = 0;
	r->r_line_len = 0;
}

static int
status_line(struct response *r)
{
	int minor, status;

	if (sscanf(r->r_line, "HTTP/1.%1d %3d", &minor, &status) != 2 ||
	    status < 100)
		return -EBADMSG;
	r->r_status = status;
	r->r_close = minor == 0;
	return 0;
}

static int
field_line(struct response *r)
{
	char *value = strchr(r->r_line, ':'), *end;

	if (value == NULL)
		return -EBADMSG;
	*value++ = '\0';
	value += strspn(value, " \t");
	if (strcasecmp(r->r_line, "Transfer-Encoding") == 0)
		return -EBADMSG;
	if (strcasecmp(r->r_line, "Connection") == 0)
		r->r_close =
		    strcasestr(value, "close") != NULL ||
		    (r->r_close && strcasestr(value, "keep-alive") == NULL);
	if (strcasecmp(r->r_line, "Content-Length") != 0)
		return 0;
	errno = 0;
	r->r_length = strtoll(value, &end, 10);
	if (end == value || errno != 0 || r->r_length < 0)
		return -EBADMSG;
	return 0;
}

static void
head_end(struct response *r)
{
	if (r->r_status < 200) {
		response_init(r);
		return;
	}
	if (r->r_status == 204 || r->r_status == 304)
		r->r_length = 0;
	if (r->r_length == -1)
		r->r_close = true;
	r->r_state = r->r_length == 0 ? RESPONSE_DONE : RESPONSE_BODY;
}

static int
head_line(struct response *r)
{
	size_t len = r->r_line_len;

	if (len > 0 && r->r_line[len - 1] == '\r')
		len--;
	r->r_line[len] = '\0';
	r->r_line_len = 0;
	if (r->r_status == 0)
		return status_line(r);
	if (len > 0)
		return field_line(r);
	head_end(r);
	return 0;
}

ssize_t
response_head(struct response *r, const char *data, size_t len)
{
	size_t i;

	for (i = 0; i < len && r->r_state == RESPONSE_HEAD; i++) {
		if (data[i] != '\n') {
			if (r->r_line_len < sizeof(r->r_line) - 1)
				r->r_line[r->r_line_len++] = data[i];
		} else if (head_line(r) != 0) {
			return -EBADMSG;
		}
	}
	return (ssize_t)i;
}

void
tally_print(FILE *f, const struct tally *ta)
{
	static const char *const names[FAILURES] = {
	    [FAILURE_CONNECT] = "connect",
	    [FAILURE_WRITE] = "write",
	    [FAILURE_READ] = "read",
	    [FAILURE_CLOSED] = "closed",
	    [FAILURE_PROTOCOL] = "protocol",
	    [FAILURE_TIMEOUT] = "timeout",
	    [FAILURE_UNANSWERED] = "unanswered",
	    [FAILURE_UNSENT] = "unsent",
	    [FAILURE_VERIFY] = "verify",
	};
	const char *comma = "";

	fprintf(f, "\"errors\": {");
	for (int i = FAILURE_CONNECT; i < FAILURES; i++) {
		if (ta->ta_failures[i] == 0)
			continue;
		fprintf(f, "%s\"%s\": %" PRIu64, comma, names[i],
		    ta->ta_failures[i]);
		comma = ", ";
	}
	fprintf(f, "}, \"statuses\": {");
	comma = "";
	for (int i = 0; i < 1000; i++) {
		if (ta->ta_statuses[i] == 0)
			continue;
		fprintf(f, "%s\"%d\": %" PRIu64, comma, i, ta->ta_statuses[i]);
		comma = ", ";
	}
	fprintf(f, "}");
}
