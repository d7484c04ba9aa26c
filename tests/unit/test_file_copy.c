/*
 * pw_file_copy (lib/pagewise.h): it copies only bytes that are in memory, and of one version of the file.
 */
#include "residency_fixture.h"

#include "lib/disk/drop_lock.h"

static bool
is_copied(struct pw_file *file, off_t off, size_t len)
{
	char *data = malloc(len), *expected = malloc(len);
	bool yes;

	assert_non_null(data);
	assert_non_null(expected);
	fill(expected, off, len);
	yes = pw_file_copy(file, off, data, len) == 0 &&
	      memcmp(data, expected, len) == 0;
	free(expected);
	free(data);
	return yes;
}

static int
copy_error(struct pw_file *file, off_t off, size_t len)
{
	char *data = malloc(len + 1);
	int error = pw_file_copy(file, off, data, len);

	free(data);
	return error;
}

TEST(what_is_in_memory_is_copied)
{
	SCOPED_FILE *file;
	void *held;

	skip_unless(NEED_NOWAIT | NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	fetch(file, 0, SIZE);
	assert_true(is_copied(file, 0, (size_t)SIZE));
	assert_true(is_copied(file, SIZE - 1, 1));
	assert_true(is_copied(file, 4095, 2));
	assert_true(is_copied(file, PIECE + 1, (size_t)PIECE));
	assert_int_equal(copy_error(file, 0, 0), 0);
	as_another_owner(file);
	assert_int_equal(copy_error(file, 0, 1), -EAGAIN);
	fetch(file, 0, SIZE);
	assert_true(is_copied(file, 0, (size_t)SIZE));
	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	assert_true(is_copied(file, 0, (size_t)SIZE));
	let_go(held, (size_t)SIZE);
}

/* What it says is in memory may be gone when it is read, and that would wait. */
TEST(what_mincore_sees_is_not_copied)
{
	SCOPED_FILE *file;
	void *held;

	skip_unless(NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	file_priv(file)->fp_ask = OS_ASK_MINCORE;
	assert_true(residency_ask(file, 0, SIZE));
	assert_int_equal(copy_error(file, 0, (size_t)SIZE), -EAGAIN);
	let_go(held, (size_t)SIZE);
}

/* The read of the rest starts with the question: it may be over before the second. */
static bool
lost_end_is_not_copied(void)
{
	struct pw_file *file = cold_file();
	int tries, error;

	read_in(file->fil_fd, 0, (size_t)SIZE);
	as_another_owner(file);
	residency_fetched(file, 0, SIZE);
	for (tries = 0; tries < 100; tries++) {
		posix_fadvise(file->fil_fd, 2 * PIECE, 0, POSIX_FADV_DONTNEED);
		if (pages_resident(file->fil_fd, 2 * PIECE,
			(size_t)(SIZE - 2 * PIECE)) == 0)
			break;
	}
	error = copy_error(file, 0, (size_t)SIZE);
	pw_file_unref(&file);
	return tries < 100 && error == -EAGAIN;
}

/* By RWF_NOWAIT alone, in pieces that were fetched once. */
TEST(what_lost_its_end_is_not_copied)
{
	skip_unless(NEED_EVICTION | NEED_NOWAIT);
	assert_true(holds_in_one_of(TRIES, lost_end_is_not_copied));
}

/* With times that differ: the clock of a file system may be slow. */
static void
overwrite(const struct pw_file *file)
{
	int fd = open(path_in("f"), O_WRONLY), ms;
	struct stat st;

	assert_true(fd >= 0);
	for (ms = 0; ms < PATIENCE; ms++) {
		assert_int_equal(pwrite(fd, "!", 1, SIZE - 1), 1);
		assert_int_equal(fstat(fd, &st), 0);
		if (!file_unchanged(file, &st))
			break;
		usleep(1000);
	}
	assert_int_equal(st.st_size, SIZE);
	close(fd);
}

TEST(of_a_file_that_was_written_to_no_copy_is_good)
{
	SCOPED_FILE *file;
	void *held;

	skip_unless(NEED_NOWAIT | NEED_EXACT | NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	assert_true(is_copied(file, 0, (size_t)SIZE));
	overwrite(file);
	assert_int_equal(copy_error(file, 0, (size_t)SIZE), -ESTALE);
	assert_int_equal(copy_error(file, 0, 1), -ESTALE);
	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	assert_int_equal(copy_error(file, 0, 1), -ESTALE);
	let_go(held, (size_t)SIZE);
}

/* Nor is it brought in. */
TEST(what_is_not_in_memory_is_not_copied)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_NOWAIT | NEED_EXACT);
	file = cold_file();
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			as_another_owner(file);
		file_priv(file)->fp_ask =
		    i == 2 ? OS_ASK_MINCORE : OS_ASK_NOWAIT;
		assert_int_equal(copy_error(file, 0, (size_t)SIZE), -EAGAIN);
		assert_int_equal(copy_error(file, PIECE, 1), -EAGAIN);
	}
	usleep(20000);
	assert_int_equal(pages_resident(file->fil_fd, 0, (size_t)SIZE), 0);
}

TEST(a_range_with_a_hole_is_not_copied)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = cold_file();
	read_in(file->fil_fd, 0, 5 * 4096);
	read_in(file->fil_fd, 6 * 4096, (size_t)PIECE);
	assert_int_equal(copy_error(file, 0, (size_t)PIECE), -EAGAIN);
	assert_int_equal(copy_error(file, 4 * 4096 + 4095, 2), -EAGAIN);
}

TEST(what_cannot_be_asked_is_not_copied)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);

	fetch(file, 0, SIZE);
	file_priv(file)->fp_ask = OS_ASK_FETCH;
	assert_int_equal(copy_error(file, 0, 1), -EAGAIN);
}

TEST(a_copy_beyond_the_end_says_that_the_file_is_shorter)
{
	SCOPED_FILE *file;

	skip_unless(NEED_NOWAIT);
	file = new_file("f", (size_t)SIZE);
	fetch(file, 0, SIZE);
	assert_int_equal(truncate(path_in("f"), PIECE + 1), 0);
	assert_int_equal(copy_error(file, PIECE, 2), -ESTALE);
	assert_int_equal(copy_error(file, 0, (size_t)SIZE), -ESTALE);
	assert_int_equal(copy_error(file, 3 * PIECE, 1), -ESTALE);
	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	assert_int_equal(copy_error(file, PIECE, 2), -ESTALE);
	assert_int_equal(copy_error(file, 0, (size_t)PIECE + 1), -ESTALE);
}

TEST(pages_that_are_being_dropped_are_not_copied)
{
	struct pw_file *file = new_file("f", (size_t)SIZE);
	struct drop_lock *lock = file_priv(file)->fp_drop_lock;
	char byte;

	if (pw_file_copy(file, 0, &byte, 1) != 0) {
		pw_file_unref(&file);
		skip();
	}
	drop_lock_announce(lock);
	assert_int_equal(pw_file_copy(file, 0, &byte, 1), 0);
	assert_true(drop_lock_enter_drop(lock));
	assert_int_equal(pw_file_copy(file, 0, &byte, 1), -EAGAIN);
	drop_lock_leave(lock);
	assert_int_equal(pw_file_copy(file, 0, &byte, 1), 0);
	assert_true(drop_lock_enter_drop(lock));
	drop_lock_leave(lock);
	pw_file_unref(&file);
}
