/*
 * What is counted: histograms of times.
 */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "lib_fixture.h"

#define QUEUES	8
#define THREADS 48 /* of each */

static size_t
bucket_of(uint64_t us)
{
	struct pw_histogram hg = {0}, copy;
	size_t i;

	pw_histogram_add(&hg, us);
	pw_histogram_copy(&copy, &hg);
	assert_int_equal(copy.hg_sum, us);
	for (i = 0; copy.hg_count[i] == 0; i++)
		assert_true(i < PW_HISTOGRAM - 1);
	assert_int_equal(copy.hg_count[i], 1);
	return i;
}

TEST(a_time_is_in_the_first_bucket_that_holds_it, NULL)
{
	size_t last = PW_HISTOGRAM - 1;

	assert_int_equal(bucket_of(0), 0);
	assert_int_equal(bucket_of(1), 0);
	assert_int_equal(bucket_of(2), 1);
	assert_int_equal(bucket_of(3), 2);
	assert_int_equal(bucket_of(1024), 10);
	assert_int_equal(bucket_of(1025), 11);
	assert_int_equal(bucket_of((uint64_t)1 << (last - 1)), last - 1);
	assert_int_equal(bucket_of(((uint64_t)1 << (last - 1)) + 1), last);
	assert_int_equal(bucket_of(UINT64_MAX), last);
}

static sem_t gate;

static int
wait_at_the_gate(struct pw_task *tk)
{
	(void)tk;
	return sem_wait(&gate);
}

static atomic_bool enough;

static void *
ask_all_the_time(void *arg)
{
	struct pw_device_stats ds[64];

	while (!atomic_load(&enough))
		pw_pool_devices(arg, ds, 64);
	return NULL;
}

static int
setup_wide(void **state)
{
	/* A deadlock shall not be waited for. */
	alarm(60);
	return setup_with(state, THREADS, 0, 0);
}

TEST(figures_can_be_asked_for_while_threads_are_started, setup_wide)
{
	static struct pw_task tasks[QUEUES * THREADS];
	struct pw_device_stats ds[64];
	pthread_t thread;
	unsigned i, threads = 0;

	sem_init(&gate, 0, 0);
	assert_int_equal(
	    pthread_create(&thread, NULL, ask_all_the_time, fx->fx_pool), 0);
	for (i = 0; i < QUEUES * THREADS; i++) {
		tasks[i].tk_work = wait_at_the_gate;
		tasks[i].tk_waiter.wt_done = nothing_done;
		assert_int_equal(
		    pw_task_run(fx->fx_loop, 1 + i % QUEUES, &tasks[i]), 0);
	}
	for (i = 0; i < QUEUES * THREADS; i++)
		sem_post(&gate);
	settle(fx->fx_loop);
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	for (i = 0; i < pw_pool_devices(fx->fx_pool, ds, 64); i++) {
		threads += ds[i].ds_threads;
		assert_string_equal(
		    ds[i].ds_queue, ds[i].ds_dev == 0 ? "files" : "tasks");
		assert_true(ds[i].ds_dev <= QUEUES);
	}
	assert_int_equal(threads, QUEUES * THREADS);
	sem_destroy(&gate);
	alarm(0);
}

TEST(a_device_keeps_its_queues_apart)
{
	static const char *const names[] = {"files", "tasks", "mounts"};
	static const enum pool_queue kinds[] = {
	    POOL_FILES, POOL_TASKS, POOL_MOUNTS};
	static const dev_t devs[] = {42, (dev_t)0xffffffff8700ff01};
	struct pw_device_stats ds[8];
	size_t i, n;

	for (i = 0; i < 6; i++)
		pool_device(fx->fx_pool, devs[i / 3], kinds[i % 3]);
	n = pw_pool_devices(fx->fx_pool, ds, COUNT(ds));
	assert_int_equal(n, 7); /* and the slot for all others */
	for (i = 0; i < 6; i++) {
		assert_int_equal(ds[i + 1].ds_dev, devs[i / 3]);
		assert_string_equal(ds[i + 1].ds_queue, names[i % 3]);
	}
}
