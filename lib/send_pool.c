/*
 * send_pool: every sendfile(2) is called on a thread of the pool, whether the data
 * is in memory or not (thesis 2.3.1).  What nginx does with `aio threads'.
 *
 * The loop does not touch the transmission while a thread has it: the thread
 * leaves what came of the call in snd_took and snd_result, which are accounted
 * for when its completion is delivered.  A transmission that is cancelled in
 * between may still send a window.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "os.h"
#include "send_priv.h"

/*
 * The head of an answer goes out with the first bytes of the file, once the first
 * one could be read: until then it may still become another answer.
 */
static int
send_head(const struct pw_send *s, size_t *sent)
{
	char byte;
	ssize_t n;

	n = pread(s->snd_file->fil_fd, &byte, 1, s->snd_off);
	if (n <= 0)
		return n == 0 ? -ESTALE : -errno;
	return os_send(s->snd_sock, s->snd_mem, s->snd_mem_len, true, sent);
}

/* Always 0: what the call said is for account_sent, a full socket is no error. */
static int
pool_run(struct pw_send *s)
{
	size_t len = (size_t)(send_window_end(s, s->snd_off) - s->snd_off),
	       sent = 0;

	s->snd_took = 0;
	s->snd_result = 0;
	if (s->snd_mem_len > 0)
		s->snd_result = send_head(s, &s->snd_took);
	if (s->snd_result == 0 && s->snd_took == s->snd_mem_len) {
		s->snd_result = os_sendfile(
		    s->snd_sock, s->snd_file->fil_fd, s->snd_off, len, &sent);
		s->snd_took += sent;
	}
	return 0;
}

static void
pool_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	off_t off = s->snd_off;

	s->snd_lent = false;
	send_pending_end(s, w->wt_error);
	s->snd_next = account_sent(s, s->snd_result, s->snd_took);
	s->snd_reported = true;
	if (s->snd_off > off)
		send_fetch_end(s, off, s->snd_off);
	s->snd_done(s);
}

static enum pw_send_status
submit(struct pw_send *s)
{
	int error;

	send_fetch_begin(s, send_window_end(s, s->snd_off));
	send_pending_begin(s, pool_done);
	error = send_on_pool(s, pool_run);
	s->snd_lent = error == 0;
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

/*
 * The peer may have read on since the thread found the socket full.  Whoever
 * watches the socket was told so while this was pending, and is not told again.
 */
static enum pw_send_status
reported(const struct pw_send *s)
{
	struct pollfd pfd = {.fd = s->snd_sock, .events = POLLOUT};
	enum pw_send_status status = send_status(s->snd_next);

	if (status == PW_SEND_WANT_WRITE && poll(&pfd, 1, 0) > 0)
		status = PW_SEND_AGAIN;
	return status;
}

enum pw_send_status
send_by_pool(struct pw_send *s)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	if (s->snd_reported)
		status = reported(s);
	else if (s->snd_len == 0)
		status = send_window(s, s->snd_off, send_by_sendfile);
	s->snd_reported = false;
	return status == PW_SEND_AGAIN ? submit(s) : status;
}

const struct pw_send_path send_pool = {
    .path_name = "pool",
    .path_step = send_by_pool,
};
