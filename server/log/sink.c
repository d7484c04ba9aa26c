/*
 * sink: writes lines to files that may be full, slow, gone, or blocking.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/log/open.h"
#include "server/log/sink.h"

static bool
log_sink_is_shared(int fd)
{
	struct stat st;

	return fstat(fd, &st) == -1 || !S_ISREG(st.st_mode);
}

int
sink_open_path(struct sink *sk, const char *path)
{
	sk->sk_path = strdup(path);
	if (sk->sk_path == NULL)
		return -ENOMEM;
	sk->sk_fd = log_file_open(path);
	if (sk->sk_fd < 0)
		return sk->sk_fd;
	sk->sk_shared = log_sink_is_shared(sk->sk_fd);
	sk->sk_ours = !sk->sk_shared;
	return 0;
}

/*
 * Opens the file again, with O_NONBLOCK.  The flag on `fd` itself would also apply to the shell and
 * to the server's stderr, which share the open file.  Fails for pipes and terminals of another
 * user.
 */
static int
log_sink_open_again(int fd)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* FreeBSD duplicates the descriptor instead, and ignores O_CLOEXEC. */
	if (again != -1)
		fcntl(again, F_SETFD, FD_CLOEXEC);
	return again;
}

int
sink_open_fd(struct sink *sk, const char *path, int fd)
{
	struct stat st;
	bool waits;

	if (fstat(fd, &st) == -1)
		return -errno;
	sk->sk_path = strdup(path);
	if (sk->sk_path == NULL)
		return -ENOMEM;
	waits = S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode);
	sk->sk_socket = S_ISSOCK(st.st_mode);
	sk->sk_shared = !S_ISREG(st.st_mode);
	if (waits)
		sk->sk_fd = log_sink_open_again(fd);
	if (sk->sk_fd == -1)
		sk->sk_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (sk->sk_fd == -1)
		return -errno;
	sk->sk_blocking =
	    waits && (fcntl(sk->sk_fd, F_GETFL) & O_NONBLOCK) == 0;
	return 0;
}

void
sink_close(struct sink *sk)
{
	if (sk->sk_fd >= 0)
		close(sk->sk_fd);
	sk->sk_fd = -1;
	free(sk->sk_path);
	sk->sk_path = NULL;
}

/*
 * Returns the number of bytes to write at once, at most PIPE_BUF: a longer write(2) may
 * block even after poll(2).
 */
static size_t
log_sink_whole_lines(const char *p, size_t len)
{
	const char *end;

	if (len <= PIPE_BUF)
		return len;
	end = memrchr(p, '\n', PIPE_BUF);
	return end == NULL ? PIPE_BUF : (size_t)(end - p) + 1;
}

static ssize_t
sink_write_once(const struct sink *sk, const char *p, size_t len)
{
	struct pollfd pfd = {.fd = sk->sk_fd, .events = POLLOUT};
	ssize_t n;

	if (sk->sk_blocking && poll(&pfd, 1, 0) < 1)
		return -EAGAIN;
	if (sk->sk_shared)
		len = log_sink_whole_lines(p, len);
	do {
		if (sk->sk_socket)
			n = send(
			    sk->sk_fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			n = write(sk->sk_fd, p, len);
	} while (n == -1 && errno == EINTR);
	if (n == -1)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	return n > 0 ? n : -EIO;
}

static ssize_t
sink_write(struct sink *sk, const char *p, size_t len)
{
	ssize_t n;

	if (sk->sk_torn) {
		n = sink_write_once(sk, "\n", 1);
		if (n < 0)
			return n;
		sk->sk_torn = false;
	}
	return sink_write_once(sk, p, len);
}

static size_t
log_sink_line_len(const char *p, size_t len)
{
	const char *nl = memchr(p, '\n', len);

	return nl == NULL ? len : (size_t)(nl - p) + 1;
}

/*
 * Truncates the file before the incomplete line, unless another process has appended to the file.
 * Another process could append a line between the two calls only if the full disk got free space at
 * that moment.
 */
static bool
log_sink_cut_back(const struct sink *sk)
{
	struct stat st;
	off_t end;

	if (!sk->sk_ours)
		return false;
	end = lseek(sk->sk_fd, 0, SEEK_CUR);
	if (fstat(sk->sk_fd, &st) == -1 || st.st_size != end ||
	    end < (off_t)sk->sk_begun)
		return false;
	return ftruncate(sk->sk_fd, end - (off_t)sk->sk_begun) == 0;
}

static void
log_sink_note_begun(struct sink *sk, const char *p, size_t len)
{
	const char *nl = memrchr(p, '\n', len);

	if (nl == NULL)
		sk->sk_begun += len;
	else
		sk->sk_begun = (size_t)(p + len - nl) - 1;
}

static void
sink_drop_some(struct sink *sk, struct ring *rg, size_t len, int error)
{
	const char *p;
	size_t there, n;

	p = ring_peek(rg, &there);
	for (there = len; there > 0; there -= n, p += n) {
		n = log_sink_line_len(p, there);
		sk->sk_dropped++;
	}
	ring_consume(rg, len);
	sk->sk_error = error;
	if (sk->sk_begun > 0)
		sk->sk_torn = !log_sink_cut_back(sk);
	sk->sk_begun = 0;
}

bool
sink_put(struct sink *sk, struct ring *rg)
{
	const char *p;
	size_t len;
	ssize_t n;

	p = ring_peek(rg, &len);
	if (sk->sk_begun > 0)
		len = log_sink_line_len(p, len);
	sk->sk_full = false;
	while (len > 0) {
		n = sink_write(sk, p, len);
		if (n == -EAGAIN) {
			sk->sk_full = true;
			return false;
		}
		if (n < 0) {
			sink_drop_some(sk, rg, len, (int)-n);
			return true;
		}
		log_sink_note_begun(sk, p, (size_t)n);
		ring_consume(rg, (size_t)n);
		p += n;
		len -= (size_t)n;
	}
	return true;
}

void
sink_drop(struct sink *sk, struct ring *rg)
{
	size_t len;

	ring_peek(rg, &len);
	sink_drop_some(sk, rg, len, 0);
}

void
sink_write_fd(int fd, const char *p, size_t len)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	ssize_t n;

	/* A pipe that is ready accepts PIPE_BUF bytes, blocking or not. */
	while (len > 0 && poll(&pfd, 1, 1000) != 0) {
		n = write(fd, p, len < PIPE_BUF ? len : PIPE_BUF);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
			return;
		}
	}
}
