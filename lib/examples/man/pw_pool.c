/*
 * Starts the library with a pool of up to 32 disk threads for each queue, and one loop.
 */
#include <pagewise.h>
#include <signal.h>

int
library_start(struct pw_pool **pool, struct pw_loop **loop)
{
	struct pw_pool_conf conf = {.ppc_threads = 32};
	int error;

	signal(SIGPIPE, SIG_IGN);
	pw_process_prepare(); /* optional, so errors are ignored */
	error = pw_pool_create(&conf, pool);
	if (error == 0) {
		error = pw_pool_start(*pool);
		if (error == 0)
			error = pw_loop_create(*pool, NULL, loop);
		if (error != 0)
			pw_pool_destroy(pool, 1000000);
	}
	return error;
}
