/*
 * cold_fixture: the end of FreeBSD's calls that may read (lib/send/cold_calls.h).
 */
#ifndef TESTS_COLD_FIXTURE_H
#define TESTS_COLD_FIXTURE_H

#include "lib_fixture.h"

#include "lib/disk/completion.h"

/*
 * As settle, and until nothing reads for a call on a socket whose queue cannot be seen: a disk thread
 * does after a tick.
 */
static inline void
settle_cold(struct pw_loop *lp)
{
	settle(lp);
	while (!TAILQ_EMPTY(&lp->lp_cold)) {
		pw_loop_tick(lp, clock_now());
		settle(lp);
	}
}

#endif
