/*
 * An event loop of poll(2) that watches only the library.
 */
#include <pagewise.h>
#include <poll.h>

void
loop_run(struct pw_loop *loop, const bool *stop)
{
	struct pollfd fd = {.fd = pw_loop_fd(loop), .events = POLLIN};
	uint64_t now, ticked = 0;

	while (!*stop || pw_loop_pending(loop) > 0) {
		if (poll(&fd, 1, 250) > 0)
			pw_loop_drain(loop);
		now = pw_now();
		if (now >= ticked + 250000) {
			pw_loop_tick(loop, now);
			ticked = now;
		}
	}
}
