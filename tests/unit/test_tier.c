/*
 * The tier (lib/disk/tier.h): what is read from it is what was written for that version of the file, whatever
 * happens to its files.
 */
#include "lib_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/disk/pins.h"
#include "lib/disk/tier.h"
#include "lib/disk/tier_index.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

#define SIZE	((uint64_t)8 * OS_FOLIO)
#define LEN	((size_t)100000)
#define MILLION ((uint32_t)1 << 20)

static char dir[] = "/tmp/tier-XXXXXX";
static char *memory;

static struct pins_key
key_of(uint64_t ino)
{
	return (struct pins_key){.pk_dev = 7,
	    .pk_ino = ino,
	    .pk_version = {.ov_size = (off_t)LEN, .ov_mtime = {.tv_sec = 1}}};
}

static struct tier *
must_open(uint64_t writes)
{
	const struct tier_conf tc = {
	    .tc_dir = dir, .tc_size = SIZE, .tc_writes = writes};
	struct tier *ti;

	assert_int_equal(tier_open(&tc, &ti), 0);
	if (tier_is_due(ti, clock_now()))
		tier_prepare(ti);
	return ti;
}

static void
write_one(struct tier *ti, uint64_t ino, size_t len)
{
	const struct pins_key key = key_of(ino);

	memset(memory, (int)(ino % 251), len);
	assert_int_equal(tier_write(ti, &key, 0, memory, len), 0);
}

/* Returns whether the window is there; if so, its bytes are right. */
static bool
reads(struct tier *ti, uint64_t ino, size_t len)
{
	const struct pins_key key = key_of(ino);

	memset(memory, 255, len);
	if (!tier_has(ti, &key, 0) || tier_read(ti, &key, 0, len, memory) != 0)
		return false;
	for (size_t i = 0; i < len; i++)
		assert_int_equal((unsigned char)memory[i], ino % 251);
	return true;
}

static struct tier_stats
stats(struct tier *ti)
{
	struct tier_stats tu;

	tier_stats(ti, &tu);
	return tu;
}

/* Changes a byte of one of the files. */
static void
flip(const char *name, off_t off)
{
	char path[64], byte;
	SCOPED(close_at) int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, off), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, off), 1);
}

static int
make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/tier-XXXXXX");
	memory = os_huge_page(OS_FOLIO);
	return memory == NULL || mkdtemp(dir) == NULL;
}

static int
remove_dir(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/pagewise-tier.data", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/pagewise-tier.index", dir);
	unlink(path);
	os_unmap(memory, OS_FOLIO);
	return rmdir(dir);
}

TEST(window_is_read_for_its_version_alone, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);
	struct pins_key key = key_of(1);

	write_one(ti, 1, LEN);
	assert_true(reads(ti, 1, LEN));
	assert_false(reads(ti, 2, LEN));
	assert_false(tier_has(ti, &key, OS_FOLIO));
	key.pk_version.ov_ctime.tv_nsec = 1;
	assert_false(tier_has(ti, &key, 0));
	key = key_of(1);
	key.pk_version.ov_size++;
	assert_false(tier_has(ti, &key, 0));
	assert_int_equal(stats(ti).tu_hits, 1);
}

/* The process is killed, so it writes nothing at its end. */
TEST(windows_are_there_after_a_kill, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		ti = must_open(0);
		for (uint64_t ino = 1; ino <= 20; ino++)
			write_one(ti, ino, LEN);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ti = must_open(0);
	for (uint64_t ino = 1; ino <= 20; ino++)
		assert_true(reads(ti, ino, LEN));
	write_one(ti, 21, LEN);
	assert_true(reads(ti, 1, LEN));
	assert_true(reads(ti, 21, LEN));
}

TEST(flipped_bit_is_a_miss, make_dir, remove_dir)
{
	struct tier *ti = must_open(0);

	write_one(ti, 1, LEN);
	write_one(ti, 2, LEN);
	flip("pagewise-tier.data", 4096 + LEN - 1);
	assert_false(reads(ti, 1, LEN));
	assert_true(reads(ti, 2, LEN));
	assert_int_equal(stats(ti).tu_corrupt, 1);
	assert_int_equal(stats(ti).tu_windows, 1);
	tier_close(&ti);
	flip("pagewise-tier.index", 4096 + 2 * sizeof(struct tier_record) + 20);
	ti = must_open(0);
	assert_false(reads(ti, 2, LEN));
	tier_close(&ti);
	flip("pagewise-tier.index", 8); /* a header of another version */
	ti = must_open(0);
	assert_int_equal(stats(ti).tu_windows, 0);
	tier_close(&ti);
}

/* Reads one piece, and returns what tier_read returns. */
static int
read_piece(struct tier *ti, uint64_t ino, unsigned piece)
{
	const struct pins_key key = key_of(ino);

	return tier_read(
	    ti, &key, (off_t)(piece * TIER_PIECE), TIER_PIECE, memory);
}

/* A part of a window is read and checked alone. */
TEST(flipped_bit_is_a_miss_of_its_piece, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);
	struct pins_key key = key_of(1);

	write_one(ti, 1, OS_FOLIO);
	flip("pagewise-tier.data", 4096 + 3 * TIER_PIECE);
	assert_int_equal(read_piece(ti, 1, 2), 0);
	assert_int_equal(memory[TIER_PIECE - 1], 1);
	assert_int_equal(read_piece(ti, 1, OS_FOLIO / TIER_PIECE - 1), 0);
	assert_int_equal(stats(ti).tu_hit_bytes, 2 * TIER_PIECE);
	assert_int_equal(read_piece(ti, 1, 3), -EBADMSG);
	assert_int_equal(stats(ti).tu_corrupt, 1);
	assert_false(tier_has(ti, &key, 0));
	assert_int_equal(read_piece(ti, 1, 2), -ENOENT);
}

/* Each round evicts; whatever is found is right, and so it is after another start. */
TEST(full_tier_evicts_the_oldest, make_dir, remove_dir)
{
	struct tier *ti = must_open(0);
	uint64_t ino, found = 0;

	for (ino = 1; ino <= 500; ino++)
		write_one(ti, ino, LEN + ino % 7 * 5000);
	assert_false(reads(ti, 1, LEN + 5000));
	assert_true(reads(ti, 500, LEN + 500 % 7 * 5000));
	tier_close(&ti);
	ti = must_open(0);
	for (ino = 1; ino <= 500; ino++)
		found += reads(ti, ino, LEN + ino % 7 * 5000);
	assert_in_range(found, SIZE / LEN * 3 / 4, SIZE / LEN);
	assert_int_equal(stats(ti).tu_windows, found);
	assert_int_equal(stats(ti).tu_corrupt, 0);
	tier_close(&ti);
}

/* Writes wear a disk out, so each window is written once, however often it is read. */
TEST(windows_that_are_used_are_not_written_again, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);
	uint64_t ino;

	for (ino = 1; ino <= 2 * SIZE / LEN; ino++) {
		write_one(ti, ino, LEN);
		assert_true(reads(ti, ino, LEN));
	}
	assert_false(reads(ti, 1, LEN));
	assert_int_equal(
	    stats(ti).tu_written, (ino - 1) * tier_index_padded(LEN));
}

/* Windows of random lengths, of which some are used, and starts in between: whatever is found is right. */
TEST(random_windows_are_right, make_dir, remove_dir)
{
	static size_t lens[400];
	struct tier *ti = must_open(0);
	uint64_t ino, old;

	srandom(1);
	for (ino = 1; ino < 400; ino++) {
		lens[ino] =
		    1 + (size_t)random() % (ino % 5 == 0 ? OS_FOLIO : LEN);
		write_one(ti, ino, lens[ino]);
		old = 1 + (uint64_t)random() % ino;
		(void)reads(ti, old, lens[old]);
		(void)reads(ti, 1 + old / 50, lens[1 + old / 50]);
		if (ino % 80 == 0) {
			tier_close(&ti);
			ti = must_open(0);
		}
	}
	assert_int_equal(stats(ti).tu_corrupt, 0);
	assert_true(stats(ti).tu_windows > 20);
	assert_true(stats(ti).tu_hits > 0);
	tier_close(&ti);
}

static bool
missed(struct tier *ti, uint64_t ino, off_t off, size_t len)
{
	const struct pins_key key = key_of(ino);

	return tier_missed(ti, &key, off, len);
}

TEST(window_is_admitted_at_its_second_miss, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);
	struct pins_key large = key_of(3);
	uint64_t ino;

	assert_false(missed(ti, 1, 0, LEN));
	assert_false(missed(ti, 1, OS_FOLIO, LEN));
	assert_false(missed(ti, 2, 0, LEN));
	assert_true(missed(ti, 1, 0, LEN));
	assert_true(missed(ti, 1, 1, LEN)); /* of the same window */
	assert_int_equal(stats(ti).tu_misses, 5);
	for (off_t off = 0; off < 4 * (off_t)OS_FOLIO; off += OS_FOLIO / 4)
		assert_false(missed(ti, 4, off, OS_FOLIO / 4));
	assert_true(missed(ti, 4, OS_FOLIO - 1, 1));
	assert_false(missed(ti, 5, OS_FOLIO - 1, 1));
	assert_false(missed(ti, 5, 0, OS_FOLIO - (256 << 10)));
	assert_true(missed(ti, 5, 0, OS_FOLIO));
	/* Twice the size of the tier later they are forgotten. */
	for (ino = 100; ino < 100 + 2 * SIZE / OS_FOLIO; ino++)
		assert_false(missed(ti, ino, 0, OS_FOLIO));
	assert_true(missed(ti, 101, 0, OS_FOLIO));
	assert_false(missed(ti, 2, 0, LEN));
	large.pk_version.ov_size = (off_t)(SIZE / 2 + 1);
	assert_false(tier_missed(ti, &large, 0, LEN));
	assert_false(tier_missed(ti, &large, 0, LEN));
}

TEST(bytes_of_a_day_are_limited, make_dir, remove_dir)
{
	struct tier *ti = must_open(48 * (uint64_t)OS_FOLIO);

	assert_true(tier_may_write(ti, OS_FOLIO));
	assert_true(tier_may_write(ti, OS_FOLIO));
	assert_false(tier_may_write(ti, OS_FOLIO));
	assert_int_equal(stats(ti).tu_skipped, 1);
	tier_close(&ti);
	ti = must_open(1); /* a window may be written at once */
	assert_true(tier_may_write(ti, OS_FOLIO));
	assert_false(tier_may_write(ti, OS_FOLIO));
	tier_close(&ti);
}

TEST(second_process_waits_for_the_first, make_dir, remove_dir)
{
	struct tier *one = must_open(0), *two;

	write_one(one, 1, LEN);
	two = must_open(0);
	assert_false(stats(two).tu_on);
	assert_true(stats(two).tu_taken);
	assert_true(tier_is_in_use(dir));
	assert_false(reads(two, 1, LEN));
	assert_false(tier_may_write(two, LEN));
	tier_leave(one);
	assert_false(reads(one, 1, LEN));
	tier_unlock(one);
	assert_false(tier_is_in_use(dir));
	tier_prepare(two);
	assert_false(stats(two).tu_taken);
	assert_true(reads(two, 1, LEN));
	tier_close(&one);
	tier_close(&two);
	assert_false(tier_is_in_use(dir));
}

/* Otherwise a process that drains for days would keep the lock that its last load took. */
TEST(tier_is_not_left_while_it_is_loaded, make_dir, remove_dir)
{
	const struct tier_conf tc = {.tc_dir = dir, .tc_size = SIZE};
	SCOPED(tier_close) struct tier *ti;

	assert_int_equal(tier_open(&tc, &ti), 0);
	assert_true(tier_is_due(ti, clock_now()));
	assert_false(tier_is_due(ti, clock_now()));
	tier_leave(ti);
	assert_false(tier_is_left(ti));
	tier_prepare(ti);
	assert_true(tier_is_left(ti));
	assert_false(stats(ti).tu_on);
	tier_unlock(ti);
	assert_false(tier_is_in_use(dir));
}

TEST(load_that_cannot_begin_is_due_again, make_dir, remove_dir)
{
	const struct tier_conf tc = {.tc_dir = dir, .tc_size = SIZE};
	SCOPED(tier_close) struct tier *ti;

	assert_int_equal(tier_open(&tc, &ti), 0);
	assert_true(tier_is_due(ti, clock_now()));
	tier_postpone(ti);
	assert_false(tier_is_due(ti, clock_now()));
	assert_true(tier_is_due(ti, clock_now() + 2000000));
}

struct loader {
	struct tier *ld_tier;
	atomic_bool ld_ends;
};

static void *
load_when_due(void *arg)
{
	struct loader *ld = arg;

	while (!atomic_load(&ld->ld_ends))
		if (tier_is_due(ld->ld_tier, UINT64_MAX))
			tier_prepare(ld->ld_tier);
	return NULL;
}

/* For ThreadSanitizer: the threads that load, leave and unlock are different ones, as in a pool. */
TEST(tier_may_be_left_from_another_thread, make_dir, remove_dir)
{
	const struct tier_conf tc = {.tc_dir = dir, .tc_size = SIZE};
	struct loader ld;
	pthread_t thread;

	for (int i = 0; i < 50; i++) {
		atomic_init(&ld.ld_ends, false);
		assert_int_equal(tier_open(&tc, &ld.ld_tier), 0);
		assert_int_equal(
		    pthread_create(&thread, NULL, load_when_due, &ld), 0);
		tier_leave(ld.ld_tier);
		while (!tier_is_left(ld.ld_tier))
			assert_false(stats(ld.ld_tier).tu_taken);
		tier_unlock(ld.ld_tier);
		assert_false(tier_is_in_use(dir));
		atomic_store(&ld.ld_ends, true);
		pthread_join(thread, NULL);
		tier_close(&ld.ld_tier);
	}
}

TEST(version_without_times_is_not_old, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);
	struct os_version ov = {.ov_size = 1};

	assert_false(tier_is_old(ti, &ov));
	ov.ov_ctime.tv_sec = ov.ov_mtime.tv_sec = 1000;
	assert_true(tier_is_old(ti, &ov));
	ov.ov_ctime.tv_sec = time(NULL);
	assert_false(tier_is_old(ti, &ov));
}

TEST(file_that_is_cut_switches_the_tier_off, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);
	char path[64];

	write_one(ti, 1, LEN);
	write_one(ti, 2, LEN);
	snprintf(path, sizeof(path), "%s/pagewise-tier.data", dir);
	assert_int_equal(truncate(path, 0), 0);
	assert_false(reads(ti, 1, LEN));
	assert_false(stats(ti).tu_on);
	assert_int_equal(stats(ti).tu_errors, 1);
	assert_false(tier_may_write(ti, LEN));
}

TEST(late_read_switches_the_tier_off_until_it_ends, make_dir, remove_dir)
{
	SCOPED(tier_close) struct tier *ti = must_open(0);

	write_one(ti, 1, LEN);
	tier_is_late(ti);
	assert_false(stats(ti).tu_on);
	assert_false(reads(ti, 1, LEN));
	tier_was_late(ti);
	assert_int_equal(stats(ti).tu_late, 1);
}

TEST(directory_that_is_missing_is_an_error, NULL)
{
	const struct tier_conf tc = {.tc_dir = "/nowhere", .tc_size = SIZE};
	struct tier *ti;

	assert_int_equal(tier_open(&tc, &ti), -ENOENT);
	assert_null(ti);
}

/* Opens the tier in vain, and finds the file as before. */
static void
must_refuse(const char *path, off_t size)
{
	const struct tier_conf tc = {.tc_dir = dir, .tc_size = SIZE};
	struct tier *ti;
	struct stat st;

	assert_int_equal(tier_open(&tc, &ti), -EEXIST);
	assert_null(ti);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, size);
}

TEST(file_of_another_program_is_left_alone, make_dir, remove_dir)
{
	static const char *const names[] = {
	    "pagewise-tier.data", "pagewise-tier.index"};
	char path[64], other[80];
	int fd;

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		assert_int_equal(write(fd, memory, 10), 10);
		must_refuse(path, 10);
		assert_int_equal(ftruncate(fd, 10000), 0);
		must_refuse(path, 10000);
		assert_int_equal(ftruncate(fd, 0), 0);
		snprintf(other, sizeof(other), "%s.other", path);
		assert_int_equal(link(path, other), 0);
		must_refuse(path, 0);
		assert_int_equal(unlink(other), 0);
		assert_int_equal(unlink(path), 0);
		close(fd);
	}
}

/* Takes hours if a record is compared with all others. */
TEST(index_of_a_million_windows_is_built, NULL)
{
	struct tier_index *tx =
	    tier_index_create((uint64_t)MILLION * 65536, MILLION);
	struct tier_record tr = {.tr_len = 65536};

	assert_non_null(tx);
	for (uint64_t n = 1; n <= MILLION; n++) {
		tr.tr_number = tr.tr_id.id_ino = n;
		tr.tr_at = (n - 1) * 65536;
		tier_index_load(tx, &tr);
	}
	tier_index_loaded(tx);
	assert_int_equal(tier_index_count(tx), MILLION);
	tier_index_destroy(&tx);
}
