/*
 * path_pool: calls every sendfile(2) on a disk thread, whether the data is resident or
 * not (thesis 2.3.1), as nginx does with `aio threads'.
 *
 * While the job is queued or running, the loop changes only snd_error and ss_lent of
 * the transmission.  The disk thread stores the result of the call in ss_took and
 * ss_result, for which the loop accounts when the completion is delivered.
 *
 * The thread claims the socket before it sends.  Until then pw_send_take_back succeeds;
 * afterwards a cancelled transmission may still send a window.  Before a head, the thread
 * first reads one byte of the file, so that a read error can still become an error
 * response.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/disk/completion.h"
#include "lib/disk/reclaim.h"
#include "lib/file/file.h"
#include "lib/os/os.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

static bool
pool_path_take(struct pw_send *s, int state)
{
	int out = LENT_OUT;

	return __atomic_compare_exchange_n(&send_priv(s)->ss_lent, &out, state,
	    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Reads the first byte before the head is sent, so that the caller can still send an error response if
 * the read fails.
 */
static int
pool_path_read_first(const struct pw_send *s)
{
	char byte;
	ssize_t n;

	n = pread(s->snd_file->fil_fd, &byte, 1, s->snd_off);
	if (n <= 0)
		return n == 0 ? -ESTALE : -errno;
	return 0;
}

static off_t
pool_path_end(const struct pw_send *s)
{
	off_t end = send_window_end(s, s->snd_off);

	return s->snd_off +
	       (off_t)send_limited(s, (uint64_t)(end - s->snd_off));
}

/* Reads up to SEND_TAIL bytes at off and sends them, as send_copied does. */
static int
pool_path_copy_rest(
    const struct pw_send *s, off_t off, size_t len, size_t *sent)
{
	char data[SEND_TAIL];
	ssize_t n = pread(s->snd_file->fil_fd, data,
	    len < sizeof(data) ? len : sizeof(data), off);
	bool last = off + n == s->snd_off + s->snd_len;
	int error;

	if (n <= 0)
		return n == 0 ? -ESTALE : -errno;
	error = last ? file_check(s->snd_file, s->snd_grows) : 0;
	return error != 0 ? error
			  : os_send(s->snd_sock, data, (size_t)n,
				s->snd_more || !last, sent);
}

static int
pool_path_send_file(struct pw_send *s, size_t len)
{
	size_t pages = send_before_tail(s, len), sent = 0, done;
	int error = 0;

	if (pages > 0)
		error = os_sendfile(
		    s->snd_sock, s->snd_file->fil_fd, s->snd_off, pages, &sent);
	if (send_is_refused(s, error))
		pages = 0, error = 0;
	for (; error == 0 && sent >= pages && sent < len; sent += done) {
		done = 0;
		error = pool_path_copy_rest(
		    s, s->snd_off + (off_t)sent, len - sent, &done);
	}
	send_priv(s)->ss_took += sent;
	return error;
}

static int
pool_path_send_both(struct pw_send *s, size_t len)
{
	int error = 0;

	if (s->snd_mem_len > 0)
		error = os_send(s->snd_sock, s->snd_mem, s->snd_mem_len, true,
		    &send_priv(s)->ss_took);
	if (error != 0 || send_priv(s)->ss_took < s->snd_mem_len)
		return error;
	return pool_path_send_file(s, len);
}

/* Sends on a disk thread, and stores the result in ss_result.  Returns 0, since a full socket is no error. */
static int
pool_path_run(struct pw_send *s)
{
	size_t len = (size_t)(pool_path_end(s) - s->snd_off);
	int error = 0;

	reclaim_expect(pool_reclaim(s->snd_loop->lp_pool));
	send_priv(s)->ss_took = 0;
	if (s->snd_mem_len > 0)
		error = pool_path_read_first(s);
	if (error == 0)
		error = pool_path_take(s, LENT_CLAIMED)
			    ? pool_path_send_both(s, len)
			    : -ECANCELED;
	send_priv(s)->ss_result = error;
	return 0;
}

static void
pool_path_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	off_t off = s->snd_off;

	__atomic_store_n(&send_priv(s)->ss_lent, LENT_NOT, __ATOMIC_SEQ_CST);
	send_pending_end(s, w->wt_error);
	send_priv(s)->ss_next =
	    account_sent(s, send_priv(s)->ss_result, send_priv(s)->ss_took);
	send_priv(s)->ss_result = 0;
	send_priv(s)->ss_reported = true;
	if (s->snd_off > off)
		send_fetch_end(s, off, s->snd_off);
	s->snd_done(s);
}

static enum pw_send_status
pool_path_submit(struct pw_send *s)
{
	int error;

	send_fetch_begin(s, pool_path_end(s));
	send_pending_begin(s, pool_path_done);
	__atomic_store_n(&send_priv(s)->ss_lent, LENT_OUT, __ATOMIC_SEQ_CST);
	error = send_on_pool(s, JOB_LONG, pool_path_run);
	if (error == 0)
		return PW_SEND_PENDING;
	__atomic_store_n(&send_priv(s)->ss_lent, LENT_NOT, __ATOMIC_SEQ_CST);
	return send_pending_fail(s, error);
}

/*
 * Returns PW_SEND_WANT_WRITE only if the socket is still full.  The peer may have read since the
 * thread filled the socket; an edge-triggered event loop then had its event while the transmission
 * was pending, and gets no further event.
 */
static enum pw_send_status
pool_path_report(struct pw_send *s)
{
	struct pollfd pfd = {.fd = s->snd_sock, .events = POLLOUT};
	enum pw_send_status status = send_status(send_priv(s)->ss_next);
	int n;

	send_priv(s)->ss_reported = false;
	if (status != PW_SEND_WANT_WRITE)
		return status;
	do
		n = poll(&pfd, 1, 0);
	while (n == -1 && errno == EINTR);
	return n == 0 ? PW_SEND_WANT_WRITE : PW_SEND_AGAIN;
}

/* Sends memory from the loop, since there is no file, and so no device whose threads could send it. */
static enum pw_send_status
pool_path_send_memory(struct pw_send *s)
{
	return send_window(s, s->snd_off, send_by_sendfile);
}

static enum pw_send_status
pool_path_step(struct pw_send *s)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	if (send_priv(s)->ss_reported)
		status = pool_path_report(s);
	if (status != PW_SEND_AGAIN)
		return status;
	return s->snd_len > 0 ? pool_path_submit(s) : pool_path_send_memory(s);
}

const struct pw_send_path send_pool = {
    .path_name = "pool",
    .path_step = pool_path_step,
    .path_queues = true,
};
