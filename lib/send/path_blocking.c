/*
 * path_blocking: calls sendfile(2) on the loop, which waits for the disk if the data is
 * not resident (thesis 1.4), as in most servers.
 */
#include "lib/send/path.h"

static enum pw_send_status
blocking_step(struct pw_send *s)
{
	return send_window(s, send_window_end(s, s->snd_off), send_by_sendfile);
}

const struct pw_send_path send_blocking = {
    .path_name = "blocking",
    .path_step = blocking_step,
    .path_keeps = true,
};
