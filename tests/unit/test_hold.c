/*
 * Popular windows that are held in memory (lib/file/hold.h), for a server that does not own the file: each
 * check of a window asks for each of its pages.
 */
#include "xfer_fixture.h"

#include "lib/disk/pool_priv.h"
#include "lib/disk/reclaim.h"
#include "lib/file/hold.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"

#define SIZE   (OS_FOLIO + 300 * KIB) /* two windows that can be held */
#define ROUNDS 200

static unsigned asked; /* calls of os_nowait */

long __real_os_nowait(int, off_t);
long __wrap_os_nowait(int, off_t);

long
__wrap_os_nowait(int fd, off_t off)
{
	asked++;
	return __real_os_nowait(fd, off);
}

/* Opens a file that is in memory. */
static struct pw_file *
popular_file(struct fixture *fx)
{
	struct pw_file *file;

	skip_unless(fx, NEED_EVICTION | NEED_NOWAIT | NEED_LOCK);
	file = new_file(fx, "f", SIZE);
	as_another_owner(file);
	residency_fetched(file, 0, (off_t)SIZE);
	return file;
}

/* Sends the file when no earlier check is valid any more.  Counts in `asked` the pages that are asked for. */
static enum pw_send_status
send_later(struct fixture *fx, struct pw_file *file)
{
	enum pw_send_status status;
	struct wire wr;
	struct xfer xf;

	usleep(RESIDENCY_HOLDS + 100);
	asked = 0;
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", fx, &wr, file);
	xf.xf_send.snd_len = (off_t)SIZE;
	pw_send_start(&xf.xf_send);
	status = xfer_run(&xf, &wr, UINT64_MAX);
	if (status == PW_SEND_DONE)
		wire_has_file(&wr, 0, (off_t)SIZE);
	else
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	settle(fx->fx_loop);
	return status;
}

/* Returns the number of pages that are asked for. */
static unsigned
send_again(struct fixture *fx, struct pw_file *file)
{
	assert_int_equal(send_later(fx, file), PW_SEND_DONE);
	return asked;
}

/* Sends the file again and again while the kernel seems to reclaim pages.  Returns true once no page is asked for. */
static bool
becomes_held(struct fixture *fx, struct pw_file *file)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		reclaim_expect(fx->fx_pool->pl_reclaim);
		if (send_again(fx, file) == 0)
			return true;
	}
	return false;
}

static void
popular_window_is_held_and_not_checked(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);

	assert_true(send_again(fx, file) >= SIZE / os_page_size());
	assert_true(becomes_held(fx, file));
	assert_int_equal(send_again(fx, file), 0);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), SIZE);
	/* The kernel evicts none of its pages. */
	evict(file->fil_fd, SIZE);
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), pages_in(SIZE));
	assert_int_equal(send_again(fx, file), 0);
	pw_file_unref(&file);
}

static void
window_that_is_not_requested_is_released(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	uint64_t dev;

	assert_true(becomes_held(fx, file));
	assert_true(pins_tick(
	    fx->fx_pool->pl_pins, clock_now() + PINS_FRESH_US + 1000000, &dev));
	pins_reap(fx->fx_pool->pl_pins, dev);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), 0);
	assert_true(evict(file->fil_fd, SIZE));
	pw_file_unref(&file);
}

static void
held_window_of_a_file_that_changed_is_not_used(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	int fd;

	assert_true(becomes_held(fx, file));
	fd = openat(fx->fx_root->rt_fd, "f", O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE - 1), 0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE), 0);
	close(fd);
	assert_int_equal(send_later(fx, file), PW_SEND_ERROR);
	pw_file_unref(&file);
}

static void
files_of_less_than_a_window_are_not_held(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);

	file->fil_size = (off_t)(HOLD_LEAST - 1);
	hold_window(file, 0, clock_now());
	settle(fx->fx_loop);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), 0);
	file->fil_size = (off_t)SIZE;
	hold_window(file, (off_t)SIZE - 1, clock_now());
	settle(fx->fx_loop);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), SIZE - OS_FOLIO);
	pw_file_unref(&file);
}

/* Without memory for pins the file is sent as before, and the next second brings no other attempt. */
static void
nothing_is_held_above_the_limit_of_pins(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	uint64_t now = clock_now();

	leave_no_room_for_pins(fx);
	hold_window(file, 0, now);
	settle(fx->fx_loop);
	assert_false(pins_any(fx->fx_pool->pl_pins));
	assert_true(file_priv(file)->fp_hold_at >= now + 1000000);
	assert_true(send_again(fx, file) > 0);
	pw_file_unref(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(popular_window_is_held_and_not_checked),
	    TEST(window_that_is_not_requested_is_released),
	    TEST(held_window_of_a_file_that_changed_is_not_used),
	    TEST(files_of_less_than_a_window_are_not_held),
	    TEST(nothing_is_held_above_the_limit_of_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
