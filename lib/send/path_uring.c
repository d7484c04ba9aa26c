/*
 * path_uring: works as nodiskio does, but io_uring fetches in place of a disk thread: by advice,
 * and a linked read of the last byte of each advice.  As in chapter 4 of the thesis, the loop
 * queues a request, and the kernel does the rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/async.h"
#include "lib/send/path.h"

/* Fetches at most ASYNC_STEPS steps of a window.  Has a disk thread fetch if the ring refuses. */
static int
path_uring_fetch(struct pw_send *s, off_t off, size_t len)
{
	size_t step = device_step(file_priv(s->snd_file)->fp_device);
	int error;

	if (send_priv(s)->ss_own == NULL)
		send_priv(s)->ss_own = calloc(1, sizeof(struct async_op));
	if (send_priv(s)->ss_own == NULL)
		return -ENOMEM;
	if (len > ASYNC_STEPS * step) {
		len = ASYNC_STEPS * step;
		send_priv(s)->ss_asked = off + (off_t)len;
	}
	error = async_fetch(s->snd_loop, send_priv(s)->ss_own,
	    &send_priv(s)->ss_waiter, s->snd_file->fil_fd, off, len, step);
	return error == 0 ? 0 : send_fetch_by_pool(s, off, len);
}

static void
path_uring_finish(struct pw_send *s)
{
	free(send_priv(s)->ss_own);
	send_priv(s)->ss_own = NULL;
}

static enum pw_send_status
path_uring_step(struct pw_send *s)
{
	return send_prefetched(s, path_uring_fetch, send_by_sendfile);
}

const struct pw_send_path send_uring = {
    .path_name = "uring",
    .path_probe = async_probe,
    .path_step = path_uring_step,
    .path_finish = path_uring_finish,
    .path_prefetches = true,
};
