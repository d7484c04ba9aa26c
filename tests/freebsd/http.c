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

#define PORT 8080

double
http_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int
http_connect(void)
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET, .sin_port = htons(PORT)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (sock != -1 &&
	    connect(sock, (struct sockaddr *)(void *)&sin, sizeof(sin)) == 0 &&
	    fcntl(sock, F_SETFL, O_NONBLOCK) == 0)
		return sock;
	if (sock != -1)
		close(sock);
	return -1;
}

bool
http_open(struct http *ht, double patience)
{
	double end = http_now() + patience;

	memset(ht, 0, sizeof(*ht));
	while ((ht->ht_sock = http_connect()) == -1 && http_now() < end)
		usleep(100000);
	return ht->ht_sock != -1;
}

void
http_close(struct http *ht)
{
	if (ht->ht_sock != -1)
		close(ht->ht_sock);
	ht->ht_sock = -1;
}

void
http_ask(struct http *ht, const char *path, const char *range)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
	    "GET %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s\r\n", path,
	    range == NULL ? "" : "Range: bytes=", range == NULL ? "" : range,
	    range == NULL ? "" : "\r\n");

	ht->ht_status = 0;
	ht->ht_length = -1;
	ht->ht_got = 0;
	ht->ht_hash = HTTP_HASH;
	ht->ht_done = ht->ht_failed = false;
	ht->ht_head_len = 0;
	ht->ht_begun = http_now();
	if (send(ht->ht_sock, text, (size_t)n, MSG_NOSIGNAL) != n)
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
http_pull(struct http *ht)
{
	static char data[128 << 10];
	ssize_t n = recv(ht->ht_sock, data, sizeof(data), 0);
	size_t head;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		ht->ht_done = ht->ht_failed = true;
		return;
	}
	head = http_take_head(ht, data, (size_t)n);
	ht->ht_hash = http_hash(ht->ht_hash, data + head, (size_t)n - head);
	ht->ht_got += (off_t)((size_t)n - head);
	if (ht->ht_status != 0 && ht->ht_got >= ht->ht_length)
		ht->ht_done = true;
	if (ht->ht_failed || (ht->ht_done && ht->ht_got > ht->ht_length))
		ht->ht_done = ht->ht_failed = true;
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
