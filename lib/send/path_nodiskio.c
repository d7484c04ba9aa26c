/*
 * path_nodiskio: ask whether the data is in memory; if so sendfile(2), else have
 * exactly the missing window fetched by the pool and come back (thesis 2.3.3,
 * with the question that Linux lacks as a flag of sendfile).  The default.
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
