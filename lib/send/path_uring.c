/*
 * path_uring: works as nodiskio does, but io_uring fetches in place of a disk thread: by advice,
 * and a linked read of the last byte of each advice.  As in chapter 4 of the thesis, the loop
 * queues a request, and the kernel does the rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/async.h"
#include "lib/file/residency.h"
#include "lib/send/path.h"

struct uring_fetch {
	/* first member, as path_uring_done casts its address */
	struct pw_waiter uf_waiter;
	struct async_op uf_op;
	struct pw_send *uf_send;
};

static void
path_uring_done(struct pw_waiter *w)
{
	struct pw_waiter *to =
	    &send_priv(((struct uring_fetch *)w)->uf_send)->ss_waiter;

	to->wt_error = w->wt_error;
	free(w);
	to->wt_done(to);
}

/* Fetches at most ASYNC_STEPS steps of a window.  Has a disk thread fetch if the ring refuses, or to make copies. */
static int
path_uring_fetch(struct pw_send *s, off_t off, size_t len)
{
	size_t step = device_step(file_priv(s->snd_file)->fp_device);
	struct uring_fetch *uf;

	if (!residency_can_ask(s->snd_file))
		return send_fetch_by_pool(s, off, len);
	uf = calloc(1, sizeof(*uf));
	if (uf == NULL)
		return -ENOMEM;
	if (len > ASYNC_STEPS * step) {
		len = ASYNC_STEPS * step;
		send_priv(s)->ss_asked = off + (off_t)len;
	}
	uf->uf_waiter.wt_done = path_uring_done;
	uf->uf_send = s;
	if (async_fetch(s->snd_loop, &uf->uf_op, &uf->uf_waiter,
		s->snd_file->fil_fd, off, len, step) == 0)
		return 0;
	free(uf);
	return send_fetch_by_pool(s, off, len);
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
    .path_prefetches = true,
};
