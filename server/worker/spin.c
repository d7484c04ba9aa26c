/*
 * spin: see spin.h.
 */
#include "server/worker/spin.h"

#define PART 16 /* 1/16 of the time; a busy machine may grant no more */

bool
spin_look(struct spin *sp, uint64_t done, uint64_t cpu, uint64_t now)
{
	bool first = sp->sp_now == 0, same = done == sp->sp_done,
	     busy = (cpu - sp->sp_cpu) * PART >= now - sp->sp_now;

	*sp = (struct spin){.sp_done = done, .sp_cpu = cpu, .sp_now = now};
	return !first && same && busy;
}
