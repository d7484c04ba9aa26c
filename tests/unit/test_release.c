/*
 * Memory that goes back when most connections have (server/worker/release.h): that it does, that the
 * loop's heap is whole afterwards, and that it does not hold up the end of a worker.
 */
#include "lib_fixture.h"

#include "server/worker/release.h"

#define BLOCKS 4000
#define SIZE   ((size_t)16 << 10)

static struct service svc;

/* Ticks, with one connection, until it begins. */
static void
begin(struct release *rl, bool high)
{
	release_init(rl, fx->fx_loop);
	release_seen(rl, 100);
	for (int n = 0; n < 100 && pw_loop_pending(fx->fx_loop) == 0; n++)
		release_tick(rl, high ? 100 : 1, high, &svc);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 1);
}

TEST(release_begins_when_most_clients_left_or_memory_is_short)
{
	struct release rl;

	for (int high = 0; high < 2; high++) {
		begin(&rl, high);
		settle(fx->fx_loop);
		assert_int_equal(rl.rl_size, 0);
		assert_false(rl.rl_trims);
	}
	release_init(&rl, fx->fx_loop);
	release_seen(&rl, 100);
	for (int n = 0; n < 100; n++)
		release_tick(&rl, 100 - (unsigned)n % 50, false, &svc);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}

/* The pieces of memory that it took are free again, and hold what is written to them. */
TEST(the_heap_is_whole)
{
	char *blocks[BLOCKS];
	struct release rl;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			blocks[i] = malloc(SIZE);
			assert_non_null(blocks[i]);
			memset(blocks[i], i & 255, SIZE);
		}
		for (int i = 0; i < BLOCKS; i++) {
			assert_int_equal(blocks[i][SIZE - 1], (char)(i & 255));
			if (i % 4 != 0)
				free(blocks[i]);
		}
		begin(&rl, false);
		settle(fx->fx_loop);
		for (int i = 0; i < BLOCKS; i += 4) {
			for (size_t at = 0; at < SIZE; at += 509)
				assert_int_equal(
				    blocks[i][at], (char)(i & 255));
			free(blocks[i]);
		}
	}
}

/* At the end of a thread, without the pool. */
TEST(all_is_released_at_once)
{
	struct release rl;

	release_init(&rl, fx->fx_loop);
	for (int n = 0; n < 2; n++) {
		release_all(&rl);
		assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
		assert_int_equal(rl.rl_size, 0);
		assert_int_equal(rl.rl_count, 0);
		assert_null(rl.rl_pieces);
	}
}

/* It has one piece at the most to wait for. */
TEST(a_drain_ends_it)
{
	struct release rl;

	begin(&rl, false);
	release_stop(&rl);
	for (int n = 0; rl.rl_size > 0; n++) {
		assert_in_range(n, 0, 1);
		poll(&(struct pollfd){.fd = pw_loop_fd(fx->fx_loop),
			 .events = POLLIN},
		    1, PATIENCE);
		pw_loop_drain(fx->fx_loop);
	}
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
	for (int n = 0; n < 100; n++)
		release_tick(&rl, 0, true, &svc);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}
