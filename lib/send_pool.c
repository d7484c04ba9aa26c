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
#include <stdlib.h>
#include <unistd.h>

#include "os.h"
#include "send_priv.h"

struct pool_send {
	struct job ps_job; /* first: freed as one */
	struct pw_send *ps_send;
};

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
pool_run(struct job *job)
{
	struct pw_send *s = ((struct pool_send *)job)->ps_send;
	size_t len = (size_t)(send_window_end(s) - s->snd_off), sent = 0;

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

/* What was in memory before counts as brought in, too: nobody has asked. */
static void
pool_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	off_t off = s->snd_off;

	send_pending_end(s, w->wt_error);
	s->snd_next = account_sent(s, s->snd_result, s->snd_took);
	s->snd_reported = true;
	if (s->snd_off > off)
		send_brought_in(s, off, s->snd_off);
	s->snd_done(s);
}

static enum pw_send_status
submit(struct pw_send *s)
{
	struct pool_send *ps = calloc(1, sizeof(*ps));
	int error;

	if (ps == NULL)
		return send_pending_fail(s, -ENOMEM);
	ps->ps_job.job_run = pool_run;
	ps->ps_send = s;
	send_drop_acknowledged(s);
	send_pending_begin(s, pool_done);
	error = pool_submit(s->snd_file->fil_device, &ps->ps_job, send_admit(s),
	    s->snd_loop, &s->snd_waiter);
	if (error == 0)
		return PW_SEND_PENDING;
	free(ps);
	return send_pending_fail(s, error);
}

enum pw_send_status
send_by_pool(struct pw_send *s)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	if (s->snd_reported)
		status = send_status(s->snd_next);
	else if (s->snd_len == 0)
		status = send_memory(s);
	s->snd_reported = false;
	return status == PW_SEND_AGAIN ? submit(s) : status;
}

const struct pw_send_path send_pool = {
    .path_name = "pool",
    .path_step = send_by_pool,
};
