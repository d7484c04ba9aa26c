/*
 * http: see http.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/freebsd/http.h"
#include "tests/freebsd/secure.h"

#define PORT	 8080
#define TLS_PORT 8443

static enum http_kind chosen;

void
http_use(enum http_kind kind)
{
	chosen = kind;
}

double
http_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The handshake waits. */
static bool
http_connect(struct http *ht)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
	    .sin_port = htons(ht->ht_kind == HTTP_PLAIN ? PORT : TLS_PORT)};

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ht->ht_sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ht->ht_sock != -1 &&
	    connect(ht->ht_sock, (struct sockaddr *)(void *)&sin,
		sizeof(sin)) == 0 &&
	    (ht->ht_kind == HTTP_PLAIN ||
		(ht->ht_secure = secure_open(ht->ht_sock, ht->ht_kind)) !=
		    NULL) &&
	    fcntl(ht->ht_sock, F_SETFL, O_NONBLOCK) == 0)
		return true;
	http_close(ht);
	return false;
}

bool
http_open(struct http *ht, double patience)
{
	double end = http_now() + patience;

	memset(ht, 0, sizeof(*ht));
	ht->ht_kind = chosen;
	while (!http_connect(ht)) {
		if (http_now() > end)
			return false;
		usleep(100000);
	}
	return true;
}

void
http_close(struct http *ht)
{
	secure_close(ht->ht_secure);
	ht->ht_secure = NULL;
	if (ht->ht_sock != -1)
		close(ht->ht_sock);
	ht->ht_sock = -1;
}

/* Returns false if the request could not be sent. */
static bool
http_send(struct http *ht, const char *path, const char *range)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
	    "GET %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s\r\n", path,
	    range == NULL ? "" : "Range: bytes=", range == NULL ? "" : range,
	    range == NULL ? "" : "\r\n");

	if (ht->ht_kind == HTTP_H2)
		return secure_h2_ask(ht, path, range);
	return (ht->ht_secure == NULL
		       ? send(ht->ht_sock, text, (size_t)n, MSG_NOSIGNAL)
		       : secure_send(ht->ht_secure, text, (size_t)n)) == n;
}

void
http_ask(struct http *ht, const char *path, const char *range)
{
	ht->ht_status = 0;
	ht->ht_length = -1;
	ht->ht_got = 0;
	ht->ht_hash = HTTP_HASH;
	ht->ht_done = ht->ht_failed = false;
	ht->ht_head_len = 0;
	ht->ht_begun = http_now();
	if (!http_send(ht, path, range))
		ht->ht_done = ht->ht_failed = true;
}

static uint64_t
http_hash(uint64_t hash, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash =
		    (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Takes bytes of the head.  Returns how many. */
static size_t
http_take_head(struct http *ht, const char *data, size_t len)
{
	const char *field;
	size_t i;

	for (i = 0; i < len && ht->ht_status == 0; i++) {
		if (ht->ht_head_len + 1 == sizeof(ht->ht_head)) {
			ht->ht_failed = true;
			return len;
		}
		ht->ht_head[ht->ht_head_len++] = data[i];
		ht->ht_head[ht->ht_head_len] = '\0';
		if (data[i] != '\n' || strstr(ht->ht_head, "\r\n\r\n") == NULL)
			continue;
		ht->ht_status = atoi(ht->ht_head + strlen("HTTP/1.1 "));
		field = strcasestr(ht->ht_head, "\r\ncontent-length:");
		if (field != NULL)
			ht->ht_length =
			    strtoll(strchr(field, ':') + 1, NULL, 10);
	}
	return i;
}

void
http_take_body(struct http *ht, const char *data, size_t len)
{
	ht->ht_hash = http_hash(ht->ht_hash, data, len);
	ht->ht_got += (off_t)len;
}

/* Takes bytes of an HTTP/1.1 response. */
static void
http_take(struct http *ht, const char *data, size_t len)
{
	size_t head = http_take_head(ht, data, len);

	http_take_body(ht, data + head, len - head);
	if (ht->ht_status != 0 && ht->ht_got >= ht->ht_length)
		ht->ht_done = true;
	if (ht->ht_failed || (ht->ht_done && ht->ht_got > ht->ht_length))
		ht->ht_done = ht->ht_failed = true;
}

void
http_pull(struct http *ht)
{
	static char data[128 << 10];
	ssize_t n = ht->ht_secure == NULL
			? recv(ht->ht_sock, data, sizeof(data), 0)
			: secure_recv(ht->ht_secure, data, sizeof(data));

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		ht->ht_done = ht->ht_failed = true;
		return;
	}
	if (ht->ht_kind == HTTP_H2)
		secure_h2_take(ht, data, (size_t)n);
	else
		http_take(ht, data, (size_t)n);
}

bool
http_await(struct http *ht, double patience)
{
	struct pollfd pfd = {.fd = ht->ht_sock, .events = POLLIN};
	double end = http_now() + patience;

	while (!ht->ht_done && http_now() < end)
		if (poll(&pfd, 1, 100) == 1)
			http_pull(ht);
	return ht->ht_done && !ht->ht_failed;
}

/* Returns true if the body is the ht_got bytes of the file from `off` on. */
static bool
http_is_of(const struct http *ht, const char *file, off_t off)
{
	static char data[128 << 10];
	uint64_t hash = HTTP_HASH;
	off_t end = off + ht->ht_got;
	ssize_t n = 0;
	size_t most;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return false;
	for (; off < end; off += n) {
		most = end - off < (off_t)sizeof(data) ? (size_t)(end - off)
						       : sizeof(data);
		n = pread(fd, data, most, off);
		if (n <= 0)
			break;
		hash = http_hash(hash, data, (size_t)n);
	}
	close(fd);
	return off == end && hash == ht->ht_hash;
}

bool
http_is_file(
    const struct http *ht, int status, const char *file, off_t off, off_t len)
{
	return ht->ht_done && !ht->ht_failed && ht->ht_status == status &&
	       ht->ht_got == len && http_is_of(ht, file, off);
}

bool
http_is_aborted(const struct http *ht, const char *file)
{
	return ht->ht_failed && (ht->ht_status == 200 || ht->ht_got == 0) &&
	       http_is_of(ht, file, 0);
}
