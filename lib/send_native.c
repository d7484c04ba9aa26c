/*
 * send_native: FreeBSD's asynchronous sendfile(2) (thesis chapter 4): the head and the
 * file in one call that does not wait for a file's data.  The kernel puts pages that it is
 * still reading into the socket's queue, and sends them when they are there; nobody
 * is told, and nothing is asked before.
 *
 * Pages that somebody else is having read are all that it would wait for, and says
 * EBUSY instead (SF_NODISKIO).  They come when that read ends: a thread of the pool
 * waits for it.
 *
 * Not every file system has it: the others' files are sent by the pool.
 */
#include <errno.h>

#include "loop.h"
#include "os.h"
#include "resident.h"
#include "send_priv.h"

/* Of what follows the share: as much as other paths would have fetched ahead. */
static size_t
readahead(struct pw_send *s)
{
	if (s->snd_readahead == 0 || s->snd_len <= (off_t)s->snd_share)
		return 0;
	send_window_choose(s);
	return s->snd_window;
}

static int
native_call(struct pw_send *s, size_t len, size_t *sent)
{
	struct os_native on = {
	    .on_mem = s->snd_mem,
	    .on_mem_len = s->snd_mem_len,
	    .on_readahead = readahead(s),
	    .on_nocache = send_drops(s),
	};

	s->snd_result = os_native_send(
	    s->snd_sock, s->snd_file->fil_fd, s->snd_off, len, &on, sent);
	return s->snd_result;
}

static void
busy_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	send_pending_end(s, w->wt_error);
	s->snd_done(s);
}

static enum pw_send_status
await_pages(struct pw_send *s)
{
	off_t end = send_share_end(s);
	int error;

	loop_count(s->snd_loop, COUNTED_MISSED);
	send_pending_begin(s, busy_done);
	error = send_fetch_by_pool(s, s->snd_off, (size_t)(end - s->snd_off));
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

static enum pw_send_status
native_step(struct pw_send *s)
{
	enum pw_send_status status;

	if (s->snd_file != NULL && !resident_native(s->snd_file))
		return send_by_pool(s);
	s->snd_result = 0;
	status = send_window(s, s->snd_off + s->snd_len, native_call);
	if (status == PW_SEND_AGAIN && s->snd_result == -EBUSY)
		return await_pages(s);
	return status;
}

const struct pw_send_path send_native = {
    .path_name = "native",
    .path_probe = os_native_probe,
    .path_step = native_step,
    .path_takes_memory = true,
};
