/*
 * ring: io_uring, which this machine does not have.
 */
#include <liburing.h>

#include "tests/sim/world.h"
#include "tests/sim/wrap.h"

WRAP(int, io_uring_queue_init_params,
    (unsigned entries, struct io_uring *ring, struct io_uring_params *p))
{
	(void)entries, (void)ring, (void)p;
	world_point("io_uring_setup");
	return -ENOSYS;
}
