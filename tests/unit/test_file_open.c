/*
 * Opening files by the pool (lib/file/open_cache.c): one job for all who wait, and
 * which queue it waits in.
 */
#include "lib_fixture.h"
#include "lib/util/clock.h"

#define SECOND UINT64_C(1000000)
#define SIZE   5000
#define CACHE  4

static int
ask(const char *path, struct asked *as)
{
	*as = (struct asked){.as_open.op_waiter.wt_done = asked_done};
	return pw_file_open(
	    fx->fx_loop, fx->fx_root, path, clock_now(), &as->as_open);
}

/* All lookups go to the pool, whose only thread is held. */
static void
shut(struct latch *la)
{
	fx->fx_root->rt_cached = false;
	latch_shut(la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_FILES),
	    fx->fx_loop);
}

/* The queue takes one job: the others, had they their own, would be refused. */
TEST(opens_of_one_path_share_a_job, setup_narrow)
{
	struct asked as[8], other;
	struct latch la;

	make_file("f", SIZE);
	shut(&la);
	for (size_t i = 0; i < COUNT(as); i++)
		assert_int_equal(ask("f", &as[i]), -EINPROGRESS);
	assert_int_equal(ask("g", &other), -EAGAIN);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 1);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 2);
	latch_finish(&la);
	assert_int_equal(
	    file_priv(as[0].as_open.op_file)->fp_refs, 1 + COUNT(as));
	for (size_t i = 0; i < COUNT(as); i++) {
		assert_int_equal(as[i].as_times, 1);
		assert_int_equal(as[i].as_open.op_waiter.wt_error, 0);
		assert_ptr_equal(as[i].as_open.op_file, as[0].as_open.op_file);
	}
	assert_int_equal(other.as_times, 0);
	for (size_t i = 1; i < COUNT(as); i++)
		pw_file_unref(&as[i].as_open.op_file);
	pw_file_unref(&as[0].as_open.op_file);
}

TEST(an_error_reaches_all_waiters, setup_narrow)
{
	struct asked as[3];
	struct latch la;

	shut(&la);
	for (size_t i = 0; i < COUNT(as); i++)
		assert_int_equal(ask("none", &as[i]), -EINPROGRESS);
	latch_finish(&la);
	for (size_t i = 0; i < COUNT(as); i++) {
		assert_int_equal(as[i].as_times, 1);
		assert_int_equal(as[i].as_open.op_waiter.wt_error, -ENOENT);
		assert_null(as[i].as_open.op_file);
	}
}

TEST(an_open_completes_from_drain_alone)
{
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct asked as;

	make_file("f", SIZE);
	fx->fx_root->rt_cached = false;
	assert_int_equal(ask("f", &as), -EINPROGRESS);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	assert_int_equal(as.as_times, 0);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(as.as_times, 1);
	assert_non_null(as.as_open.op_file);
	pw_file_unref(&as.as_open.op_file);
}

TEST(by_the_pool_an_unchanged_file_stays_the_same_one)
{
	const struct pw_file *file;
	uint64_t now = clock_now();
	int fds, fd;

	make_file("f", SIZE);
	fx->fx_root->rt_cached = false;
	file = peek("f", now);
	fd = file->fil_fd;
	fds = count_fds();
	assert_ptr_equal(peek("f", now + 60 * SECOND), file);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(unlink(path_in("f")), 0);
	assert_int_equal(open_error("f", now + 120 * SECOND), -ENOENT);
	await_closed(fd);
}

static int
setup_small_cache_one_thread(void **state)
{
	return setup_with(state, 1, 0, CACHE);
}

TEST(a_file_being_opened_is_not_evicted, setup_small_cache_one_thread)
{
	struct asked as[2 * CACHE];
	char name[2] = "a";
	struct latch la;
	size_t i;

	for (i = 0; i < COUNT(as); i++, name[0]++)
		make_file(name, SIZE);
	shut(&la);
	for (i = 0, name[0] = 'a'; i < COUNT(as); i++, name[0]++)
		assert_int_equal(ask(name, &as[i]), -EINPROGRESS);
	pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
	latch_finish(&la);
	for (i = 0; i < COUNT(as); i++) {
		assert_int_equal(as[i].as_times, 1);
		assert_non_null(as[i].as_open.op_file);
		pw_file_unref(&as[i].as_open.op_file);
	}
}

/* A mount below the root hangs: what is on the root's own can be opened. */
TEST(opens_on_another_mount_have_their_own_queue, setup_small_cache_one_thread)
{
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct asked other, own;
	struct latch la;

#ifndef __linux__
	skip(); /* openat(2) does not say that it comes to one */
#endif
	pw_root_close(&fx->fx_root);
	assert_int_equal(pw_root_open("/", &fx->fx_root), 0);
	latch_shut(&la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_MOUNTS),
	    fx->fx_loop);
	fx->fx_root->rt_cached = false;
	assert_int_equal(ask("proc/version", &other), -EINPROGRESS);
	assert_int_equal(ask("etc/passwd", &own), -EINPROGRESS);
	while (own.as_times == 0) {
		assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
		pw_loop_drain(fx->fx_loop);
	}
	assert_int_equal(own.as_open.op_waiter.wt_error, 0);
	assert_int_equal(other.as_times, 0);
	latch_finish(&la);
	assert_int_equal(other.as_times, 1);
	assert_int_equal(other.as_open.op_waiter.wt_error, 0);
	pw_file_unref(&own.as_open.op_file);
	pw_file_unref(&other.as_open.op_file);
}
