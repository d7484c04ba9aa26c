/*
 * Windows that come as one large folio (lib/os/os.h, os_fetch_folio): what is read,
 * what is left alone, and when the caller has to do without.
 */
#include "lib_fixture.h"

#include <sys/syscall.h>

#include "lib/os/os.h"

#define SYS_CACHESTAT 451

#define SIZE  (2 * OS_FOLIO + 300 * KIB + 100)
#define THIRD ((off_t)(2 * OS_FOLIO))
#define REST  (SIZE - (size_t)THIRD)

#define READAHEAD ((size_t)128 * KIB) /* of the device */
#define LONG \
	(2 * OS_FOLIO + 1) /* a read-ahead that reaches into the third folio */

#define HUGE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

static bool mlock_refused;

int __real_mlock2(const void *, size_t, unsigned);
int __wrap_mlock2(const void *, size_t, unsigned);

int
__wrap_mlock2(const void *mem, size_t len, unsigned flags)
{
	if (!mlock_refused)
		return __real_mlock2(mem, len, flags);
	errno = ENOMEM;
	return -1;
}

/* What os_folios asks for, but for the disk's read-ahead. */
static bool
has_folios(void)
{
	FILE *f = fopen(HUGE, "re");
	unsigned long size = 0;

	if (f != NULL) {
		if (fscanf(f, "%lu", &size) != 1)
			size = 0;
		fclose(f);
	}
	return size == OS_FOLIO &&
	       !(syscall(SYS_CACHESTAT, -1, NULL, NULL, 0) == -1 &&
		   errno == ENOSYS);
}

/* A file of which nothing is in memory, where folios can be had at all. */
static struct pw_file *
cold_file(void)
{
	struct pw_file *file;

	skip_unless(NEED_EVICTION);
	if (!has_folios())
		skip();
	file = new_file("f", SIZE);
	assert_true(evict(file->fil_fd, SIZE));
	return file;
}

TEST(a_whole_folio_is_fetched_and_no_more)
{
	SCOPED_FILE *file = cold_file();
	int fd = file->fil_fd;

	assert_true(
	    os_fetch_folio(fd, (off_t)OS_FOLIO, OS_FOLIO, READAHEAD, -1, NULL));
	assert_int_equal(pages_resident(fd, 0, OS_FOLIO), 0);
	assert_int_equal(
	    pages_resident(fd, (off_t)OS_FOLIO, OS_FOLIO), pages_in(OS_FOLIO));
	assert_int_equal(pages_resident(fd, THIRD, REST), 0);
}

TEST(the_last_part_of_a_file_counts_as_a_folio)
{
	SCOPED_FILE *file = cold_file();
	int fd = file->fil_fd;

	assert_true(os_fetch_folio(fd, THIRD, REST, READAHEAD, -1, NULL));
	assert_int_equal(pages_resident(fd, THIRD, REST), pages_in(REST));
	assert_int_equal(pages_resident(fd, 0, (size_t)THIRD), 0);
}

/* More would be read than was asked for. */
TEST(a_part_of_a_folio_is_left_alone)
{
	SCOPED_FILE *file = cold_file();
	int fd = file->fil_fd;

	assert_false(
	    os_fetch_folio(fd, 0, OS_FOLIO - 4096, READAHEAD, -1, NULL));
	assert_false(
	    os_fetch_folio(fd, 4096, OS_FOLIO - 4096, READAHEAD, -1, NULL));
	assert_false(os_fetch_folio(fd, 4096, OS_FOLIO, READAHEAD, -1, NULL));
	assert_false(os_fetch_folio(fd, 0, 2 * OS_FOLIO, READAHEAD, -1, NULL));
	assert_false(os_fetch_folio(fd, THIRD, REST - 1, READAHEAD, -1, NULL));
	assert_false(
	    os_fetch_folio(fd, THIRD + 4096, REST - 4096, READAHEAD, -1, NULL));
	assert_int_equal(pages_resident(fd, 0, SIZE), 0);
}

/* What follows its first page may be missing: the caller reads it. */
TEST(a_read_in_flight_is_not_taken_for_complete)
{
	SCOPED_FILE *file = cold_file();
	char byte;

	posix_fadvise(file->fil_fd, 0, 0, POSIX_FADV_RANDOM);
	assert_int_equal(pread(file->fil_fd, &byte, 1, 0), 1);
	assert_false(
	    os_fetch_folio(file->fil_fd, 0, OS_FOLIO, READAHEAD, -1, NULL));
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), 1);
}

TEST(a_file_that_has_shrunk_is_no_fault)
{
	SCOPED_FILE *file = cold_file();

	assert_int_equal(truncate(path_in("f"), 4096), 0);
	assert_false(os_fetch_folio(
	    file->fil_fd, (off_t)OS_FOLIO, OS_FOLIO, READAHEAD, -1, NULL));
	assert_false(
	    os_fetch_folio(file->fil_fd, THIRD, REST, READAHEAD, -1, NULL));
}

/* The mark of such a folio could not be removed later. */
TEST(folio_with_a_long_readahead_is_read_only_if_it_is_locked)
{
	SCOPED_FILE *file = cold_file();

	assert_false(os_fetch_folio(file->fil_fd, 0, OS_FOLIO, LONG, -1, NULL));
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), 0);
}

/* Locks a folio of a file on a device with a long read-ahead. */
static struct os_folio
lock_folio(struct pw_file *file, off_t off, size_t len)
{
	struct os_folio fo;

	if (!os_fetch_folio(file->fil_fd, off, len, LONG, -1, &fo) ||
	    fo.fo_map == NULL)
		skip(); /* RLIMIT_MEMLOCK */
	return fo;
}

TEST(mark_is_removed_only_if_that_reads_nothing)
{
	SCOPED_FILE *file = cold_file();
	struct os_folio first = lock_folio(file, 0, OS_FOLIO), second, third;
	int fd = file->fil_fd;
	char byte;

	assert_false(os_can_unmark(fd, 0, LONG));
	third = lock_folio(file, THIRD, REST);
	assert_true(os_can_unmark(fd, THIRD, LONG));
	os_unmark(fd, THIRD);
	assert_false(os_can_unmark(fd, 0, LONG));
	assert_int_equal(pages_resident(fd, (off_t)OS_FOLIO, OS_FOLIO), 0);
	/* the last folio has no mark any more, which a read would obey */
	assert_int_equal(pread(fd, &byte, 1, THIRD), 1);
	assert_int_equal(pages_resident(fd, (off_t)OS_FOLIO, OS_FOLIO), 0);
	second = lock_folio(file, (off_t)OS_FOLIO, OS_FOLIO);
	assert_true(os_can_unmark(fd, 0, LONG));
	os_unmark(fd, 0);
	assert_int_equal(pages_resident(fd, 0, SIZE), pages_in(SIZE));
	os_folio_release(&first);
	os_folio_release(&second);
	os_folio_release(&third);
}

/* Reads the second folio where mlock2(2) is refused; the kernel keeps it until the pipe is closed. */
TEST(folio_that_cannot_be_locked_is_held_by_a_pipe)
{
	SCOPED_FILE *file = cold_file();
	int pagemap = os_pagemap_open(), before = count_fds();
	struct os_folio fo;
	void *map;

	mlock_refused = true;
	if (pagemap < 0 || !os_fetch_folio(file->fil_fd, (off_t)OS_FOLIO,
			       OS_FOLIO, LONG, pagemap, &fo))
		skip(); /* Linux before 6.7, or no large folios here */
	assert_true(fo.fo_pipe != -1);
	assert_int_equal(count_fds(), before + 1);
	map = fo.fo_map;
	fo.fo_map =
	    mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(map, OS_FOLIO);
	assert_false(evict(file->fil_fd, SIZE));
	assert_int_equal(
	    pages_resident(file->fil_fd, 0, SIZE), pages_in(OS_FOLIO));
	fo.fo_len = 1;
	os_folio_release(&fo);
	assert_int_equal(count_fds(), before);
	assert_true(evict(file->fil_fd, SIZE));
	mlock_refused = false;
	close(pagemap);
}

/* Its end belongs to several folios. */
TEST(rest_of_a_file_is_not_held)
{
	SCOPED_FILE *file = cold_file();
	int pagemap = os_pagemap_open();
	struct os_folio fo;

	mlock_refused = true;
	assert_false(os_fetch_folio(
	    file->fil_fd, THIRD, REST, LONG, pagemap < 0 ? -1 : pagemap, &fo));
	assert_null(fo.fo_map);
	mlock_refused = false;
	if (pagemap >= 0)
		close(pagemap);
}

TEST(an_unknown_device_has_none)
{
	size_t readahead;

	assert_false(os_folios((dev_t)0xfff00fff, &readahead));
}
