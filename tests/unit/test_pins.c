/*
 * Windows that are kept in memory (lib/disk/pins.h, os_fetch_folio): who holds them, and for how
 * long.
 */
#include "lib_fixture.h"

#include <sys/mman.h>

#include "lib/disk/pins.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

#define PAGE	  4096
#define READAHEAD ((size_t)128 * KIB) /* of the device */
#define DEV	  1
#define INO	  2
#define SIZE	  (4 * OS_FOLIO)

/* A map that os_unmap can have; pins.c does not look into it. */
static void *
map_of(size_t len)
{
	void *map =
	    mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(map != MAP_FAILED);
	return map;
}

static bool
is_mapped(void *map)
{
	unsigned char vec;

	return mincore(map, PAGE, (void *)&vec) == 0;
}

static void *
add_reserved(
    struct pins *ps, uint64_t ino, off_t off, enum pins_mapping mapping)
{
	void *map = map_of(PAGE);

	pins_add(ps, &(struct pins_key){.pk_dev = DEV, .pk_ino = ino}, off,
	    &(struct os_folio){.fo_map = map, .fo_len = PAGE, .fo_pipe = -1},
	    mapping);
	return map;
}

static void *
add_as(struct pins *ps, uint64_t ino, off_t off, enum pins_mapping mapping)
{
	assert_true(pins_reserve(ps, PAGE));
	return add_reserved(ps, ino, off, mapping);
}

static void *
add(struct pins *ps, uint64_t ino, off_t off)
{
	return add_as(ps, ino, off, PINS_UNMARKED);
}

static struct pin *
take(struct pins *ps, uint64_t dev, uint64_t ino, off_t off)
{
	return pins_take(
	    ps, &(struct pins_key){.pk_dev = dev, .pk_ino = ino}, off);
}

TEST(pin_is_found_by_each_of_its_bytes, NULL)
{
	struct pins *ps = pins_create(10 * PAGE, 1);
	struct pin *pn;

	assert_null(take(ps, DEV, INO, 0));
	add(ps, INO, OS_FOLIO);
	pn = take(ps, DEV, INO, OS_FOLIO + 5);
	assert_non_null(pn);
	assert_int_equal(pins_end(pn, OS_FOLIO), OS_FOLIO + PAGE);
	assert_int_equal(pins_end(pn, OS_FOLIO + PAGE), OS_FOLIO + PAGE);
	assert_int_equal(pins_end(pn, OS_FOLIO - 1), OS_FOLIO - 1);
	assert_null(take(ps, DEV, INO, OS_FOLIO + PAGE));
	assert_null(take(ps, DEV, INO, OS_FOLIO - 1));
	assert_null(take(ps, DEV, INO + 1, OS_FOLIO));
	assert_null(take(ps, DEV + 1, INO, OS_FOLIO));
	pins_release(ps, &pn);
	assert_null(pn);
	pins_destroy(&ps);
	assert_null(ps);
}

TEST(pin_stays_until_its_last_reference_is_released, NULL)
{
	struct pins *ps = pins_create(10 * PAGE, 1);
	void *map = add(ps, INO, 0);
	struct pin *a = take(ps, DEV, INO, 0), *b = take(ps, DEV, INO, 1);

	assert_ptr_equal(a, b);
	pins_release(ps, &a);
	pins_reap(ps, DEV);
	assert_true(is_mapped(map));
	pins_release(ps, &b);
	assert_null(take(ps, DEV, INO, 0));
	assert_true(is_mapped(map)); /* the loop unmaps nothing */
	assert_int_equal(pins_bytes(ps), PAGE);
	pins_reap(ps, DEV);
	assert_false(is_mapped(map));
	assert_int_equal(pins_bytes(ps), 0);
	pins_destroy(&ps);
}

TEST(unreferenced_pin_is_removed_after_a_while, NULL)
{
	struct pins *ps = pins_create(10 * PAGE, 1);
	uint64_t now = clock_now(), dev = 0;
	void *map = add(ps, INO, 0), *held = add(ps, INO, OS_FOLIO);
	struct pin *pn = take(ps, DEV, INO, OS_FOLIO);

	assert_false(pins_tick(ps, now, &dev));
	assert_non_null(pn);
	assert_true(pins_tick(ps, clock_now() + PINS_FRESH_US + 1, &dev));
	assert_int_equal(dev, DEV);
	assert_null(take(ps, DEV, INO, 0));
	pins_reap(ps, DEV);
	assert_false(is_mapped(map));
	assert_true(is_mapped(held));
	pins_release(ps, &pn);
	pins_destroy(&ps);
	assert_false(is_mapped(held));
}

/* No thread reaps the pins of the first device, which hangs. */
TEST(device_that_hangs_does_not_hold_up_others, NULL)
{
	static const uint64_t devs[] = {DEV, DEV, DEV + 1};
	SCOPED(pins_destroy) struct pins *ps = pins_create(10 * PAGE, 1);
	struct os_folio fo = {.fo_len = PAGE, .fo_pipe = -1};
	uint64_t dev = 0, ino;

	for (ino = 0; ino < COUNT(devs); ino++) {
		assert_true(pins_reserve(ps, PAGE));
		fo.fo_map = map_of(PAGE);
		pins_add(ps,
		    &(struct pins_key){.pk_dev = devs[ino], .pk_ino = ino}, 0,
		    &fo, PINS_UNMARKED);
		pins_forget(ps, devs[ino], ino, 0, PAGE);
	}
	assert_true(pins_tick(ps, clock_now(), &dev));
	assert_int_equal(dev, DEV);
	assert_true(pins_tick(ps, clock_now(), &dev));
	assert_int_equal(dev, DEV + 1);
	assert_true(pins_tick(ps, clock_now(), &dev));
	assert_int_equal(dev, DEV);
}

static bool
covers(struct pins *ps, off_t off, off_t end)
{
	return pins_cover(
	    ps, &(struct pins_key){.pk_dev = DEV, .pk_ino = INO}, off, end);
}

TEST(kept_mapping_proves_that_its_bytes_are_resident, NULL)
{
	struct pins *ps = pins_create(10 * PAGE, 1);
	void *map = add_as(ps, INO, 0, PINS_KEPT);
	struct pin *pn = take(ps, DEV, INO, 0);

	pins_release(ps, &pn);
	pins_reap(ps, DEV);
	assert_true(is_mapped(map));
	assert_true(covers(ps, 0, PAGE));
	assert_false(covers(ps, 0, PAGE + 1) || covers(ps, 1, PAGE));
	add_as(ps, INO, PAGE, PINS_MARKED);
	assert_true(covers(ps, 0, PAGE + 1));
	assert_false(covers(ps, PAGE, PAGE + 1)); /* this one is not kept */
	pins_unkeep(ps, &(struct pins_key){.pk_dev = DEV, .pk_ino = INO}, 0);
	assert_false(covers(ps, 0, PAGE));
	pins_reap(ps, DEV);
	assert_false(is_mapped(map));
	pins_destroy(&ps);
}

TEST(mapping_that_is_sent_stays_when_it_is_no_longer_kept, NULL)
{
	struct pins *ps = pins_create(10 * PAGE, 1);
	void *map = add_as(ps, INO, 0, PINS_KEPT);
	struct pin *pn = take(ps, DEV, INO, 0);

	pins_unkeep(ps, &(struct pins_key){.pk_dev = DEV, .pk_ino = INO}, 0);
	pins_reap(ps, DEV);
	assert_true(is_mapped(map));
	assert_true(pins_marked(pn));
	pins_release(ps, &pn);
	pins_reap(ps, DEV);
	assert_false(is_mapped(map));
	pins_destroy(&ps);
}

TEST(memory_of_kept_mappings_is_used_again, NULL)
{
	struct pins *ps = pins_create(2 * PAGE, 1);
	void *kept = add_as(ps, INO, 0, PINS_KEPT),
	     *fresh = add_as(ps, INO, PAGE, PINS_KEPT);
	struct pin *pn = take(ps, DEV, INO, 0);

	pins_release(ps, &pn);
	assert_true(pins_reserve(ps, PAGE));
	assert_false(is_mapped(kept));
	assert_true(is_mapped(fresh)); /* it was not sent yet */
	assert_false(pins_reserve(ps, PAGE));
	pins_refuse(ps, PAGE);
	pins_destroy(&ps);
}

TEST(pipe_is_closed_with_its_mapping, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(10 * PAGE, 1);
	struct os_folio fo = {.fo_map = map_of(PAGE), .fo_len = PAGE};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	fo.fo_pipe = fds[0];
	assert_true(pins_reserve(ps, PAGE) && pins_reserve_pipe(ps));
	assert_false(pins_reserve_pipe(ps));
	pins_add(ps, &(struct pins_key){.pk_dev = DEV, .pk_ino = INO}, 0, &fo,
	    PINS_UNMARKED);
	pins_forget(ps, DEV, INO, 0, PAGE);
	pins_reap(ps, DEV);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	assert_true(pins_reserve_pipe(ps));
	pins_no_pipe(ps);
}

/* The kernel does not give back what is mapped. */
TEST(pins_of_a_range_are_forgotten_unless_they_are_held, NULL)
{
	struct pins *ps = pins_create(10 * PAGE, 1);
	void *map = add(ps, INO, 0), *held = add(ps, INO, OS_FOLIO),
	     *other = add(ps, INO + 1, 0);
	struct pin *pn = take(ps, DEV, INO, OS_FOLIO);

	pins_forget(ps, DEV, INO, PAGE, OS_FOLIO);
	pins_reap(ps, DEV);
	assert_true(is_mapped(map));
	pins_forget(ps, DEV, INO, PAGE - 1, 2 * OS_FOLIO);
	pins_reap(ps, DEV + 1);
	assert_true(is_mapped(map)); /* another device's thread leaves it */
	pins_reap(ps, DEV);
	assert_false(is_mapped(map));
	assert_true(is_mapped(held) && is_mapped(other));
	pins_release(ps, &pn);
	pins_destroy(&ps);
	assert_false(is_mapped(held) || is_mapped(other));
}

TEST(bytes_are_bounded, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(2 * PAGE, 1);
	struct pin *pn;

	add(ps, INO, 0);
	assert_true(pins_reserve(ps, PAGE));
	assert_false(pins_reserve(ps, 1));
	pins_refuse(ps, PAGE);
	add(ps, INO, OS_FOLIO);
	pn = take(ps, DEV, INO, 0);
	pins_release(ps, &pn);
	/* Bytes that are still mapped count. */
	assert_false(pins_reserve(ps, 1));
	pins_reap(ps, DEV);
	assert_true(pins_reserve(ps, PAGE));
	pins_refuse(ps, PAGE);
}

TEST(second_pin_of_a_window_is_unmapped_at_once, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(10 * PAGE, 1);
	void *map;

	add(ps, INO, 0);
	map = add(ps, INO, 0);
	assert_false(is_mapped(map));
	assert_int_equal(pins_bytes(ps), PAGE);
}

/* ------------------------------------------------------------------- copies */

#define SHORT ((size_t)64 << 10)

static const struct pins_key key = {.pk_dev = DEV, .pk_ino = INO};

static void *
add_copy(struct pins *ps, off_t off, size_t len)
{
	struct pin *pn = pins_blank(ps, &key, OS_FOLIO);
	void *memory;

	assert_non_null(pn);
	memory = pins_memory(pn);
	memset(memory, 'x', len);
	pins_add_copy(ps, pn, off, len);
	return memory;
}

TEST(copy_has_its_bytes_and_no_others, NULL)
{
	struct pins *ps = pins_create(OS_FOLIO, 1);
	const char *memory = add_copy(ps, PAGE, PAGE);
	struct pin *pn = pins_take(ps, &key, PAGE + 5);

	assert_non_null(pn);
	assert_ptr_equal(pins_copy(pn, PAGE + 5), memory + 5);
	assert_null(pins_copy(pn, 2 * PAGE));
	assert_null(pins_copy(pn, PAGE - 1));
	assert_null(pins_copy(NULL, PAGE));
	assert_int_equal((uintptr_t)memory % OS_FOLIO, 0);
	pins_release(ps, &pn);
	pins_destroy(&ps);
}

/* Each of these changes when a file is written, or replaced by another. */
TEST(copy_is_of_one_version, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(OS_FOLIO, 1);
	struct pins_key others[5];

	for (size_t i = 0; i < 5; i++)
		others[i] = key;
	others[0].pk_version.ov_size++;
	others[1].pk_version.ov_mtime.tv_sec++;
	others[2].pk_version.ov_mtime.tv_nsec++;
	others[3].pk_version.ov_ctime.tv_sec++;
	others[4].pk_version.ov_ctime.tv_nsec++;
	add_copy(ps, 0, PAGE);
	for (size_t i = 0; i < 5; i++)
		assert_null(pins_take(ps, &others[i], 0));
}

TEST(copy_can_be_taken_for_a_while_after_its_last_reference, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(OS_FOLIO, 1);
	struct pin *pn;
	uint64_t dev;

	add_copy(ps, 0, PAGE);
	pn = pins_take(ps, &key, 0);
	pins_release(ps, &pn);
	pn = pins_take(ps, &key, 0);
	assert_non_null(pn);
	pins_forget(ps, DEV, INO, 0, PAGE);
	pins_release(ps, &pn);
	assert_true(pins_any(ps));
	pins_tick(ps, clock_now() + PINS_FRESH_US + 1, &dev);
	assert_false(pins_any(ps));
}

/* Its bytes are nowhere else, and their client may be slow. */
TEST(copy_waits_longer_for_its_first_reference, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(OS_FOLIO, 1);
	uint64_t dev;

	add_copy(ps, 0, PAGE);
	pins_tick(ps, clock_now() + PINS_FRESH_US + 1, &dev);
	assert_true(pins_any(ps));
	pins_tick(ps, clock_now() + PINS_WAITED_US + 1, &dev);
	assert_false(pins_any(ps));
}

TEST(memory_of_copies_is_used_again, NULL)
{
	struct pins *ps = pins_create(2 * OS_FOLIO, 1);
	void *first = add_copy(ps, 0, PAGE), *second;
	struct pin *pn = pins_take(ps, &key, 0);

	pins_release(ps, &pn);
	/* There is room for one more; then what was released goes. */
	second = add_copy(ps, (off_t)OS_FOLIO, PAGE);
	assert_ptr_not_equal(second, first);
	assert_ptr_equal(add_copy(ps, 2 * (off_t)OS_FOLIO, PAGE), first);
	assert_null(pins_take(ps, &key, 0));
	/* What nobody has taken yet stays: somebody waits for it. */
	assert_null(pins_blank(ps, &key, OS_FOLIO));
	assert_int_equal(pins_bytes(ps), 2 * OS_FOLIO);
	pins_destroy(&ps);
}

/* Copies of a few bytes leave room for those of other clients. */
TEST(short_copies_take_little_of_the_limit, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(OS_FOLIO, 1);
	struct pin *pn;
	off_t off, end = 10 * (off_t)SHORT;

	for (off = 0; off < end; off += (off_t)SHORT) {
		pn = pins_blank(ps, &key, 1);
		assert_non_null(pn);
		pins_add_copy(ps, pn, off, SHORT);
	}
	assert_int_equal(pins_bytes(ps), 10 * SHORT);
	assert_null(pins_blank(ps, &key, OS_FOLIO));
	for (off = 0; off < end; off += (off_t)SHORT) {
		pn = pins_take(ps, &key, off);
		assert_non_null(pn);
		pins_release(ps, &pn);
	}
	/* They were sent, so a long one may have their memory. */
	pn = pins_blank(ps, &key, OS_FOLIO);
	assert_non_null(pn);
	assert_int_equal(pins_bytes(ps), OS_FOLIO);
	pins_blank_free(ps, pn);
	pn = pins_blank(ps, &key, SHORT + 1);
	assert_non_null(pn);
	assert_int_equal(pins_bytes(ps), 2 * SHORT);
	pins_blank_free(ps, pn);
}

TEST(memory_that_is_not_used_is_unmapped_after_a_while, NULL)
{
	struct pins *ps = pins_create(OS_FOLIO, 1);
	struct pin *pn = pins_blank(ps, &key, OS_FOLIO);
	void *memory = pins_memory(pn);
	uint64_t dev = 0;

	pins_add_copy(ps, pn, 0, PAGE);
	pn = pins_take(ps, &key, 0);
	pins_release(ps, &pn);
	assert_false(pins_tick(ps, clock_now() + PINS_FRESH_US + 1, &dev));
	assert_true(is_mapped(memory));
	assert_true(pins_tick(ps, clock_now() + PINS_SPARE_US + 1, &dev));
	assert_int_equal(dev, DEV);
	pins_reap(ps, DEV);
	assert_false(is_mapped(memory));
	assert_int_equal(pins_bytes(ps), 0);
	pins_destroy(&ps);
}

TEST(shorter_copy_of_a_window_gives_its_memory_back, NULL)
{
	SCOPED(pins_destroy) struct pins *ps = pins_create(3 * OS_FOLIO, 1);
	const char *longer;
	struct pin *pn;

	add_copy(ps, 0, PAGE);
	longer = add_copy(ps, 0, 2 * PAGE);
	add_copy(ps, 0, PAGE);
	pn = pins_take(ps, &key, PAGE);
	assert_ptr_equal(pins_copy(pn, 0), longer);
	pins_release(ps, &pn);
	pn = pins_blank(ps, &key, OS_FOLIO); /* the third's */
	assert_int_equal(pins_bytes(ps), 3 * OS_FOLIO);
	assert_non_null(pn);
	pins_blank_free(ps, pn);
}

/* ------------------------------------------------------------- of a real file */

static struct pw_file *
cold_file(void)
{
	struct pw_file *file;

	skip_unless(NEED_EVICTION);
	file = new_file("f", SIZE);
	assert_true(evict(file->fil_fd, SIZE));
	return file;
}

static bool
is_locked(void *map)
{
	unsigned long from, to, locked = 0, kb;
	bool found = false;
	char line[256];
	FILE *f = fopen("/proc/self/smaps", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			found = (void *)from == map;
		else if (found && sscanf(line, "Locked: %lu kB", &kb) == 1)
			locked = kb;
	}
	fclose(f);
	return locked > 0;
}

TEST(window_is_resident_and_locked)
{
	SCOPED_FILE *file = cold_file();
	struct os_folio fo;

	assert_true(os_fetch_folio(
	    file->fil_fd, OS_FOLIO, OS_FOLIO, READAHEAD, -1, &fo));
	if (fo.fo_map == NULL)
		skip(); /* RLIMIT_MEMLOCK */
	assert_true(is_locked(fo.fo_map));
	assert_int_equal(
	    pages_resident(file->fil_fd, OS_FOLIO, OS_FOLIO), OS_FOLIO / PAGE);
	os_folio_release(&fo);
	assert_false(
	    os_fetch_folio(file->fil_fd, PAGE, OS_FOLIO, READAHEAD, -1, &fo));
	assert_null(fo.fo_map);
}
