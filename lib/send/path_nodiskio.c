/*
 * path_nodiskio: checks whether the next chunk is resident.  If so, calls sendfile(2); if
 * not, has a disk thread fetch the missing window first (thesis 2.3.3, with a residency
 * check in place of a flag that Linux' sendfile(2) lacks).  The default on Linux.
 */
#include "lib/send/path.h"

static enum pw_send_status
nodiskio_step(struct pw_send *s)
{
	return send_prefetched(s, send_fetch_by_pool, send_by_sendfile);
}

const struct pw_send_path send_nodiskio = {
    .path_name = "nodiskio",
    .path_step = nodiskio_step,
    .path_prefetches = true,
    .path_copies = true,
};
