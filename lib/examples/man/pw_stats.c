/*
 * Prints how busy each device is, and how many windows transmissions had to wait for.
 */
#include <inttypes.h>
#include <pagewise.h>
#include <stdio.h>

void
print_stats(struct pw_pool *pool, const struct pw_loop *loop)
{
	struct pw_device_stats devices[16];
	struct pw_loop_stats stats;
	size_t i, n = pw_pool_devices(pool, devices, 16);

	for (i = 0; i < n; i++)
		printf("%" PRIx64
		       " %s: %u of %u threads busy, %u jobs queued\n",
		    devices[i].ds_dev, devices[i].ds_queue, devices[i].ds_busy,
		    devices[i].ds_threads, devices[i].ds_queued);
	pw_loop_stats(loop, &stats);
	printf("waited for %" PRIu64 " windows\n", stats.ls_missed);
}
