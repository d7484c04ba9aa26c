/*
 * Extended attributes of files (lib/file/open_cache.c, lib/file/file.c): read by the pool, for
 * those who want them, and as fresh as the file.
 */
#include <sys/xattr.h>

#include "lib_fixture.h"
#include "lib/disk/completion.h"
#include "lib/util/clock.h"

#define SECOND UINT64_C(1000000)
#define NAME   "pagewise.test"
#define SIZE   5000

static void
mark(const char *file, const char *text)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", fx->fx_dir, file);
	if (setxattr(path, "user." NAME, text, strlen(text), 0) == -1)
		skip();
}

static void
unmark(const char *file)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", fx->fx_dir, file);
	assert_int_equal(removexattr(path, "user." NAME), 0);
}

static int
ask(const char *path, bool attribute, uint64_t now_us, struct asked *as)
{
	fx->fx_loop->lp_conf.plc_attribute = NAME;
	*as = (struct asked){.as_open.op_waiter.wt_done = asked_done,
	    .as_open.op_attribute = attribute};
	return pw_file_open(
	    fx->fx_loop, fx->fx_root, path, now_us, &as->as_open);
}

/* Who has the file; its attribute as given, NULL: none. */
static void
assert_has(struct asked *as, const char *text)
{
	struct pw_file *file = as->as_open.op_file;

	assert_non_null(file);
	if (text == NULL) {
		assert_null(file->fil_attribute);
	} else {
		assert_int_equal(file->fil_attribute_len, strlen(text));
		assert_memory_equal(file->fil_attribute, text, strlen(text));
	}
	pw_file_unref(&as->as_open.op_file);
}

/* A lookup of what is in memory may have to wait all the same: a mount is being made. */
enum wait { AT_ONCE, RATHER_NOT, BY_POOL };

static void
expect(const char *path, bool attribute, uint64_t now_us, enum wait wait,
    const char *text)
{
	struct asked as;
	int error = ask(path, attribute, now_us, &as);

	if (wait != RATHER_NOT)
		assert_int_equal(error, wait == BY_POOL ? -EINPROGRESS : 0);
	settle(fx->fx_loop);
	assert_int_equal(as.as_times, error == -EINPROGRESS);
	assert_int_equal(as.as_open.op_waiter.wt_error, 0);
	if (attribute)
		assert_true(file_priv(as.as_open.op_file)->fp_attributed);
	assert_has(&as, text);
}

TEST(an_open_with_the_attribute_waits_once, setup_one_thread)
{
	uint64_t now = clock_now();

	make_file("f", SIZE);
	mark("f", "one");
	if (!fx->fx_root->rt_cached)
		skip();
	expect("f", true, now, BY_POOL, "one");
	expect("f", true, now, AT_ONCE, "one");
	/* The file is as it was, so nothing is read anew. */
	expect("f", true, now + 2 * SECOND, RATHER_NOT, "one");
}

TEST(an_adopted_descriptor_has_the_attribute, setup_one_thread)
{
	struct asked as = {.as_open.op_waiter.wt_done = asked_done,
	    .as_open.op_attribute = true};
	SCOPED_FILE *known;
	int fd;

	make_file("f", SIZE);
	mark("f", "one");
	known = open_file("f");
	fx->fx_loop->lp_conf.plc_attribute = NAME;
	fd = open(path_in("f"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(
	    pw_file_from_fd(fx->fx_loop, fd, NULL, &as.as_open), -EINPROGRESS);
	close(fd);
	settle(fx->fx_loop);
	assert_int_equal(as.as_times, 1);
	assert_has(&as, "one");
}

TEST(an_open_without_the_attribute_does_not_wait, setup_one_thread)
{
	uint64_t now = clock_now();

	make_file("f", SIZE);
	mark("f", "one");
	if (!fx->fx_root->rt_cached)
		skip();
	expect("f", false, now, RATHER_NOT, NULL);
	expect("f", false, now + 2 * SECOND, RATHER_NOT, NULL);
	/* What was opened without it is opened again, also while it is fresh. */
	expect("f", true, now + 2 * SECOND, BY_POOL, "one");
	expect("f", false, now + 2 * SECOND, RATHER_NOT, "one");
}

TEST(a_changed_attribute_is_noticed, setup_one_thread)
{
	uint64_t now = clock_now();

	make_file("f", SIZE);
	if (!fx->fx_root->rt_cached)
		skip();
	expect("f", true, now, BY_POOL, NULL);
	expect("f", true, now, AT_ONCE, NULL);
	/* The descriptor shows its new change time at once. */
	mark("f", "two");
	expect("f", true, now, BY_POOL, "two");
	mark("f", "three");
	expect("f", true, now + 4 * SECOND, BY_POOL, "three");
	unmark("f");
	expect("f", true, now + 6 * SECOND, BY_POOL, NULL);
}

TEST(a_too_long_or_empty_attribute_is_ignored, setup_one_thread)
{
	char text[PW_ATTRIBUTE_MAX + 2];
	uint64_t now = clock_now();

	memset(text, 'x', sizeof(text));
	text[PW_ATTRIBUTE_MAX + 1] = '\0';
	make_file("f", SIZE);
	mark("f", text);
	if (!fx->fx_root->rt_cached)
		skip();
	expect("f", true, now, BY_POOL, NULL);
	text[PW_ATTRIBUTE_MAX] = '\0';
	mark("f", text);
	expect("f", true, now + 2 * SECOND, BY_POOL, text);
	mark("f", "");
	expect("f", true, now + 4 * SECOND, BY_POOL, NULL);
}

static void
expect_directory(uint64_t now, enum wait wait)
{
	struct asked as;
	int error = ask(".", true, now, &as);

	if (wait == AT_ONCE)
		assert_int_equal(error, 0);
	settle(fx->fx_loop);
	assert_int_equal(as.as_open.op_file->fil_type, PW_FILE_DIRECTORY);
	assert_has(&as, NULL);
}

TEST(directories_and_missing_names_need_no_wait, setup_one_thread)
{
	uint64_t now = clock_now();
	struct asked as;

	if (!fx->fx_root->rt_cached)
		skip();
	(void)ask("none", true, now, &as);
	settle(fx->fx_loop);
	assert_int_equal(ask("none", true, now, &as), -ENOENT);
	expect_directory(now, RATHER_NOT);
	expect_directory(now, AT_ONCE);
}

/* The job was given out for others: it is done again, and all have the same file. */
TEST(concurrent_opens_share_the_attribute, setup_one_thread)
{
	struct asked first, second;
	struct latch la;

	make_file("f", SIZE);
	mark("f", "one");
	fx->fx_root->rt_cached = false;
	latch_shut(&la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_FILES),
	    fx->fx_loop);
	assert_int_equal(ask("f", false, clock_now(), &first), -EINPROGRESS);
	assert_int_equal(ask("f", true, clock_now(), &second), -EINPROGRESS);
	latch_finish(&la);
	assert_int_equal(first.as_times, 1);
	assert_int_equal(second.as_times, 1);
	assert_ptr_equal(first.as_open.op_file, second.as_open.op_file);
	assert_has(&first, "one");
	assert_has(&second, "one");
}

TEST(names_of_a_directory_have_their_attributes, setup_one_thread)
{
	int dir = pw_root_fd(fx->fx_root);
	char text[8];

	make_file("f", SIZE);
	make_file("g", SIZE);
	mark("f", "one");
	assert_int_equal(pw_name_attribute(dir, "f", NAME, text, 8), 3);
	assert_memory_equal(text, "one", 3);
	assert_int_equal(pw_name_attribute(dir, "f", NAME, text, 2), -ERANGE);
	assert_int_equal(pw_name_attribute(dir, "g", NAME, text, 8), -ENOENT);
	assert_int_equal(pw_name_attribute(dir, "h", NAME, text, 8), -ENOENT);
	assert_int_equal(symlinkat("/etc/passwd", dir, "l"), 0);
	assert_int_equal(pw_name_attribute(dir, "l", NAME, text, 8), -EXDEV);
}
