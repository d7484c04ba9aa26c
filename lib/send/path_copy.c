/*
 * path_copy: read(2) into a buffer and write(2) from it, on the loop (thesis
 * 1.3).  What the socket did not take is read again: it is in memory now.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/disk/completion.h"
#include "lib/os/meter.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

#define COPY_SIZE ((size_t)64 << 10)

static int
copy_call(struct pw_send *s, size_t len, size_t *sent)
{
	struct pw_loop *lp = s->snd_loop;
	ssize_t n;

	*sent = 0;
	if (lp->lp_copy == NULL)
		lp->lp_copy = malloc(COPY_SIZE);
	if (lp->lp_copy == NULL)
		return -ENOMEM;
	if (len > COPY_SIZE)
		len = COPY_SIZE;
	meter_call(METER_PREAD);
	n = pread(s->snd_file->fil_fd, lp->lp_copy, len, s->snd_off);
	if (n <= 0)
		return n == 0 ? 0 : -errno;
	return sink_send(
	    s, lp->lp_copy, (size_t)n, s->snd_more || n < s->snd_len, sent);
}

static enum pw_send_status
copy_step(struct pw_send *s)
{
	return send_window(s, send_window_end(s, s->snd_off), copy_call);
}

const struct pw_send_path send_copy = {
    .path_name = "copy",
    .path_step = copy_step,
    .path_keeps = true,
};
