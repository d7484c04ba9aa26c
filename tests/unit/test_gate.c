/* Tests of lib/disk/gate.c. */
#include <pthread.h>
#include <stdatomic.h>

#include "lib_fixture.h"

#include "lib/disk/gate.h"

TEST(a_free_turn_is_taken, NULL)
{
	SCOPED(gate_destroy) struct gate tn;

	gate_init(&tn);
	assert_true(gate_take(&tn));
	gate_give(&tn);
	assert_true(gate_take(&tn));
	gate_give(&tn);
}

/* A holder that never comes back holds nobody up for ever. */
TEST(a_wait_for_a_lost_turn_ends, NULL)
{
	SCOPED(gate_destroy) struct gate tn;

	gate_init(&tn);
	assert_true(gate_take(&tn));
	assert_false(gate_take(&tn));
	assert_false(gate_take(&tn));
	gate_give(&tn);
	assert_true(gate_take(&tn));
	gate_give(&tn);
}

#define THREADS 8
#define ROUNDS	16

struct crowd {
	struct gate cr_turn;
	atomic_uint cr_inside;
	atomic_uint cr_most;
	atomic_uint cr_turns;
};

static void *
crowd_member(void *arg)
{
	struct crowd *cr = arg;
	unsigned inside;

	for (int i = 0; i < ROUNDS; i++) {
		if (!gate_take(&cr->cr_turn))
			continue;
		inside = ++cr->cr_inside;
		if (inside > cr->cr_most)
			cr->cr_most = inside;
		cr->cr_turns++;
		cr->cr_inside--;
		gate_give(&cr->cr_turn);
	}
	return NULL;
}

TEST(turns_do_not_overlap, NULL)
{
	struct crowd cr = {0};
	pthread_t threads[THREADS];

	gate_init(&cr.cr_turn);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, crowd_member, &cr), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(cr.cr_most, 1);
	assert_true(cr.cr_turns > 0);
	gate_destroy(&cr.cr_turn);
}
