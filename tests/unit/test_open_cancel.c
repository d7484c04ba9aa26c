/*
 * An open that waits and is cancelled (pw_open_cancel): its function is never called, its
 * memory is free at once, and those that wait for the same path are told.  And the two other
 * rules for links that a root can have.
 */
#include "lib_fixture.h"

#include <limits.h>

#define SIZE 5000

struct asker {
	struct pw_open as_open; /* first: found by it */
	struct asker *as_cancels;
	unsigned as_told;
};

static void
told(struct pw_waiter *w)
{
	struct asker *as = (struct asker *)(void *)w;

	as->as_told++;
	if (as->as_cancels != NULL)
		assert_int_equal(pw_open_cancel(&as->as_cancels->as_open), 0);
}

/* Its lookups are made by the pool, which has the first thread held. */
static void
ask(struct asker *as)
{
	as->as_open.op_waiter.wt_done = told;
	assert_int_equal(pw_file_open(fx->fx_loop, fx->fx_root, "f",
			     clock_now(), &as->as_open),
	    -EINPROGRESS);
}

static void
shut(struct latch *la)
{
	make_file("f", SIZE);
	fx->fx_root->rt_cached = false;
	latch_shut(la,
	    pool_device(fx->fx_pool, pw_root_dev(fx->fx_root), POOL_FILES),
	    fx->fx_loop);
}

TEST(a_cancelled_open_gets_no_callback_and_the_others_do, setup_one_thread)
{
	SCOPED(free_at) struct asker *as = calloc(3, sizeof(*as));
	struct latch la;

	assert_non_null(as);
	shut(&la);
	for (size_t i = 0; i < 3; i++)
		ask(&as[i]);
	assert_int_equal(pw_open_cancel(&as[1].as_open), 0);
	assert_int_equal(pw_open_cancel(&as[1].as_open), -EINVAL);
	latch_finish(&la);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(as[i].as_told, i != 1);
		assert_int_equal(as[i].as_open.op_file != NULL, i != 1);
		pw_file_unref(&as[i].as_open.op_file);
	}
}

/* Freed while the thread looks the path up: AddressSanitizer watches. */
TEST(memory_of_a_cancelled_open_may_be_freed, setup_one_thread)
{
	struct asker *as = calloc(1, sizeof(*as));
	SCOPED_FILE *file;
	struct latch la;

	assert_non_null(as);
	shut(&la);
	ask(as);
	assert_int_equal(pw_open_cancel(&as->as_open), 0);
	free(as);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 2); /* and the latch */
	latch_finish(&la);
	file = open_file("f"); /* what was found is in the cache */
	assert_int_equal(file_priv(file)->fp_refs, 2);
}

/* Opens a path twice, the second time after the first open was cancelled, and after its job ended if `late`. */
static void
ask_after_a_cancelled_open(bool late)
{
	struct asker as[2] = {0};
	struct latch la;

	shut(&la);
	ask(&as[0]);
	assert_int_equal(pw_open_cancel(&as[0].as_open), 0);
	if (!late)
		ask(&as[1]);
	latch_finish(&la);
	if (late)
		ask(&as[1]); /* nothing is in the cache */
	settle(fx->fx_loop);
	assert_int_equal(as[1].as_told, 1);
	assert_int_equal(as[1].as_open.op_waiter.wt_error, 0);
	assert_non_null(as[1].as_open.op_file);
	pw_file_unref(&as[1].as_open.op_file);
}

/* Otherwise clients that have left would keep the disk from the others. */
TEST(a_lookup_is_not_made_if_all_opens_were_cancelled, setup_one_thread)
{
	ask_after_a_cancelled_open(true);
}

TEST(an_open_after_all_others_were_cancelled_gets_its_file, setup_one_thread)
{
	ask_after_a_cancelled_open(false);
}

TEST(a_callback_may_cancel_later_opens, setup_one_thread)
{
	struct asker as[3] = {0};
	struct latch la;

	shut(&la);
	as[0].as_cancels = &as[2];
	for (size_t i = 0; i < 3; i++)
		ask(&as[i]);
	latch_finish(&la);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(as[i].as_told, i != 2);
	assert_null(as[2].as_open.op_file);
	assert_int_equal(file_priv(as[0].as_open.op_file)->fp_refs, 3);
	for (size_t i = 0; i < 2; i++)
		pw_file_unref(&as[i].as_open.op_file);
}

/* ------------------------------------------------------------ rules for links */

/* The error of opening path below a root with these flags; skips where there are none. */
static int
opened(unsigned flags, const char *path)
{
	struct pw_root *usual = fx->fx_root;
	struct pw_file *file;
	int error = pw_root_open_with(fx->fx_dir, flags, &fx->fx_root);

	if (error != 0)
		fx->fx_root = usual;
	if (error == -EOPNOTSUPP)
		skip();
	assert_int_equal(error, 0);
	error = open_at(path, clock_now(), &file);
	pw_file_unref(&file);
	pw_root_close(&fx->fx_root);
	fx->fx_root = usual;
	return error;
}

static void
make_links(void)
{
	make_file("f", SIZE);
	assert_int_equal(symlink("f", path_in("relative")), 0);
	assert_int_equal(symlink("/f", path_in("absolute")), 0);
	assert_int_equal(symlink("../../../f", path_in("above")), 0);
	assert_int_equal(symlink("/", path_in("away")), 0);
	assert_int_equal(symlink(".", path_in("dir")), 0);
}

TEST(a_root_follows_links_as_its_flags_say)
{
	static const struct {
		const char *path;
		int usual, none, slash, all;
	} cases[] = {
	    {"f", 0, 0, 0, 0},
	    {"relative", 0, -ELOOP, 0, 0},
	    {"dir/f", 0, -ELOOP, 0, 0},
	    {"absolute", -EXDEV, -ELOOP, 0, -ENOENT},
	    {"above", -EXDEV, -ELOOP, 0, -ENOENT},
	    {"away", -EXDEV, -ELOOP, 0, 0},
	    {"/f", -EXDEV, -EXDEV, 0, -ENOENT},
	};

	make_links();
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(opened(0, cases[i].path), cases[i].usual);
		assert_int_equal(
		    opened(PW_ROOT_NO_LINKS, cases[i].path), cases[i].none);
		assert_int_equal(
		    opened(PW_ROOT_AS_SLASH, cases[i].path), cases[i].slash);
		assert_int_equal(
		    opened(PW_ROOT_ALL_LINKS, cases[i].path), cases[i].all);
	}
}

/* Of a module whose server has absolute paths. */
TEST(an_absolute_path_is_opened_below_slash)
{
	struct pw_root *usual = fx->fx_root;
	char path[PATH_MAX];
	struct pw_file *file;
	int error;

	make_file("f", SIZE);
	assert_non_null(realpath(path_in("f"), path));
	error = pw_root_open_with("/", PW_ROOT_AS_SLASH, &fx->fx_root);
	if (error != 0)
		fx->fx_root = usual;
	if (error == -EOPNOTSUPP)
		skip();
	assert_int_equal(open_at(path, clock_now(), &file), 0);
	assert_int_equal(file->fil_size, SIZE);
	pw_file_unref(&file);
	pw_root_close(&fx->fx_root);
	fx->fx_root = usual;
}
