/*
 * seed: see seed.h.
 */
#include "lib/os/os.h"
#include "lib/os/seed.h"
#include "lib/util/clock.h"

/* Without a random source, uses addresses and the time, which clients do not know either. */
void
seed_draw(struct seed *se)
{
	uintptr_t here = (uintptr_t)se, stack = (uintptr_t)&here;

	if (os_random(se, sizeof(*se)) == 0)
		return;
	se->se_0 = clock_now() ^ (uint64_t)here << 20;
	se->se_1 = stack;
	se->se_1 = hash_bytes(se, here, &stack, sizeof(stack));
}
