/*
 * path_copy: read(2) into a buffer and write(2) from it, on the loop (thesis
 * 1.3).  The next step reads bytes that the socket did not accept again; they are resident by then.
 */
#include "lib/send/path.h"

static enum pw_send_status
copy_step(struct pw_send *s)
{
	return send_window(s, send_window_end(s, s->snd_off), send_copied);
}

const struct pw_send_path send_copy = {
    .path_name = "copy",
    .path_step = copy_step,
    .path_keeps = true,
};
