/*
 * path_copy: reads into a buffer and writes from it, on the loop (thesis 1.3).  If the
 * socket did not accept all bytes, the next step reads the rest again, which is resident by then.
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
