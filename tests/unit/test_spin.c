/*
 * The rule of server/worker/spin.h: a loop that computes, and of which nothing comes, spins.
 */
#include "test.h"

#include "server/worker/spin.h"

#define TICK 250000

TEST(a_worker_that_computes_without_progress_spins)
{
	static const struct {
		uint64_t more, cpu;
		bool spins;
	} looks[] = {
	    {0, 0, false},	   /* it sleeps */
	    {0, 200, false},	   /* it ticks */
	    {1, TICK, false},	   /* it sends */
	    {0, TICK, true},	   /* it turns for nothing */
	    {0, TICK / 16, true},  /* the same, and the machine is busy */
	    {1000, TICK, false},   /* it goes on */
	    {0, TICK / 20, false}, /* timers of many connections */
	    {0, TICK, true},
	};
	struct spin sp = {0};
	uint64_t done = 7, cpu = 1000000, now = 5000000;

	assert_false(spin_look(&sp, done, cpu, now));
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		now += TICK;
		cpu += looks[i].cpu;
		done += looks[i].more;
		assert_int_equal(
		    spin_look(&sp, done, cpu, now), looks[i].spins);
	}
}
