/* send_fixture: transmissions of a file of several windows (xfer_fixture.h), for tests. */
#ifndef TESTS_SEND_FIXTURE_H
#define TESTS_SEND_FIXTURE_H

#include "xfer_fixture.h"

#define WINDOW	((off_t)64 * KIB)
#define SIZE	(3 * WINDOW + 12345)
#define ALL	UINT64_MAX
#define FOREVER 1000000 /* microseconds, for the loop's clock */

/* Starts a transmission of the whole file. */
static inline void
start_whole(
    struct xfer *xf, const char *path, struct wire *wr, struct pw_file *file)
{
	xfer_init(xf, path, wr, file);
	xf->xf_send.snd_readahead = (uint64_t)WINDOW;
	xf->xf_send.snd_len = file->fil_size;
	pw_send_start(&xf->xf_send);
}

#endif
