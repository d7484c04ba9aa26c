/*
 * A thread whose end can be waited for with a limit (server/util/thread.c); each test
 * has the name of the rule that it pins.
 */
#include "test.h"

#include <semaphore.h>

#include "server/util/thread.h"

#define PATIENCE UINT64_C(30000000) /* us; never a measurement */

struct work {
	sem_t wk_may_end;
	int wk_done;
};

static void
work(void *arg)
{
	struct work *wk = arg;

	while (sem_wait(&wk->wk_may_end) != 0)
		continue;
	wk->wk_done = 1;
}

TEST(a_join_can_time_out_and_be_repeated)
{
	struct work wk = {.wk_done = 0};
	struct thread th;

	sem_init(&wk.wk_may_end, 0, 0);
	assert_int_equal(thread_start(&th, work, &wk), 0);
	assert_false(thread_join(&th, 0));
	assert_false(thread_join(&th, 1000));
	sem_post(&wk.wk_may_end);
	assert_true(thread_join(&th, PATIENCE));
	assert_int_equal(wk.wk_done, 1);
	assert_true(thread_join(&th, 0));
	sem_destroy(&wk.wk_may_end);
}

TEST(an_ended_thread_is_joined_without_waiting)
{
	struct work wk = {.wk_done = 0};
	struct thread th;

	sem_init(&wk.wk_may_end, 0, 1);
	assert_int_equal(thread_start(&th, work, &wk), 0);
	while (!thread_join(&th, 0))
		continue;
	assert_int_equal(wk.wk_done, 1);
	sem_destroy(&wk.wk_may_end);
}
