/*
 * The rules of lib/os/ring.h: contiguous across the end, all or nothing, in order
 * between two threads.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#include "lib/os/ring.h"

#define RECORDS 3000000u

#ifdef __linux__
static int interrupts;

/* In place of libc's: a signal comes first. */
int
posix_fallocate(int fd, off_t off, off_t len)
{
	if (interrupts > 0) {
		interrupts--;
		return EINTR;
	}
	return fallocate(fd, 0, off, len) == 0 ? 0 : errno;
}
#endif

static struct ring *
new_ring(size_t size)
{
	struct ring *rg = NULL;

	assert_int_equal(ring_create(size, &rg), 0);
	return rg;
}

static void
put(struct ring *rg, const void *data, size_t len)
{
	void *p = ring_reserve(rg, len);

	assert_non_null(p);
	memcpy(p, data, len);
	ring_commit(rg, len);
}

/* Moves both indices forward by len bytes. */
static void
advance(struct ring *rg, size_t len)
{
	assert_non_null(ring_reserve(rg, len));
	ring_commit(rg, len);
	ring_consume(rg, len);
}

static size_t
waiting(struct ring *rg)
{
	size_t len;

	ring_peek(rg, &len);
	return len;
}

TEST(size_is_rounded_up_to_a_power_of_two_of_pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct {
		size_t asked, got;
	} t[] = {{0, page}, {1, page}, {page, page}, {page + 1, 2 * page},
	    {3 * page, 4 * page}, {64 * page, 64 * page}};
	struct ring *rg;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		rg = new_ring(t[i].asked);
		assert_int_equal(ring_size(rg), t[i].got);
		ring_destroy(&rg);
	}
}

#ifdef __linux__
TEST(creation_is_repeated_after_a_signal)
{
	SCOPED(ring_destroy) struct ring *rg;

	interrupts = 2;
	rg = new_ring(1);
	assert_int_equal(interrupts, 0);
}
#endif

TEST(an_invalid_size_is_refused)
{
	struct ring *rg = NULL;

	assert_int_equal(ring_create(SIZE_MAX, &rg), -ENOMEM);
	assert_int_equal(ring_create(SIZE_MAX / 2, &rg), -ENOMEM);
	assert_null(rg);
}

TEST(destroy_clears_the_pointer_and_takes_null)
{
	struct ring *rg = new_ring(1);

	ring_destroy(&rg);
	assert_null(rg);
	ring_destroy(&rg);
}

TEST(a_record_across_the_end_is_contiguous)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	char data[1000];
	const char *p;
	size_t i, len;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	advance(rg, ring_size(rg) - 10);
	put(rg, data, sizeof(data));
	p = ring_peek(rg, &len);
	assert_int_equal(len, sizeof(data));
	assert_memory_equal(p, data, sizeof(data));
	/* Its second part lies at the start of the same memory. */
	ring_consume(rg, 10);
	p = ring_peek(rg, &len);
	assert_int_equal(len, sizeof(data) - 10);
	assert_memory_equal(p, data + 10, sizeof(data) - 10);
}

TEST(the_whole_ring_can_be_one_record_from_any_offset)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	size_t i, size = ring_size(rg), len;
	unsigned char *w;
	const unsigned char *r;

	advance(rg, 123);
	w = ring_reserve(rg, size);
	assert_non_null(w);
	for (i = 0; i < size; i++)
		w[i] = (unsigned char)(i % 251);
	ring_commit(rg, size);
	r = ring_peek(rg, &len);
	assert_int_equal(len, size);
	for (i = 0; i < size; i++)
		assert_int_equal(r[i], i % 251);
}

TEST(reserve_on_a_full_ring_is_null_until_room_is_given_back)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	size_t size = ring_size(rg);

	assert_non_null(ring_reserve(rg, size));
	ring_commit(rg, size);
	assert_null(ring_reserve(rg, 1));
	ring_consume(rg, 99);
	assert_null(ring_reserve(rg, 100));
	assert_non_null(ring_reserve(rg, 99));
	ring_commit(rg, 99);
	assert_null(ring_reserve(rg, 1));
}

TEST(reserve_of_more_than_the_size_is_null)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);

	assert_null(ring_reserve(rg, ring_size(rg) + 1));
	assert_null(ring_reserve(rg, SIZE_MAX));
	assert_non_null(ring_reserve(rg, ring_size(rg)));
}

TEST(nothing_is_visible_before_commit)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);

	assert_non_null(ring_reserve(rg, 100));
	assert_int_equal(waiting(rg), 0);
	ring_commit(rg, 100);
	assert_int_equal(waiting(rg), 100);
}

TEST(commit_of_fewer_than_reserved_publishes_those_only)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	const char *p;
	size_t len;

	memcpy(ring_reserve(rg, 100), "abcdef", 6);
	ring_commit(rg, 3);
	put(rg, "xyz", 3);
	p = ring_peek(rg, &len);
	assert_int_equal(len, 6);
	assert_memory_equal(p, "abcxyz", 6);
	/* What was not committed is free again. */
	assert_non_null(ring_reserve(rg, ring_size(rg) - 6));
	ring_commit(rg, 0);
	assert_int_equal(waiting(rg), 6);
}

TEST(above_tells_whether_more_than_the_mark_waits)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	size_t size = ring_size(rg), mark = size / 2;

	assert_false(ring_above(rg, mark));
	assert_non_null(ring_reserve(rg, mark));
	ring_commit(rg, mark);
	assert_false(ring_above(rg, mark));
	put(rg, "x", 1);
	assert_true(ring_above(rg, mark));
	ring_consume(rg, 1);
	assert_false(ring_above(rg, mark));
}

/* A record: its length, a checksum, bytes that follow from its number. */
struct header {
	uint32_t hdr_len; /* of the bytes after this */
	uint32_t hdr_sum;
};

static uint32_t
step(uint32_t x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ (x << 5);
}

static uint32_t
checksum(const unsigned char *p, size_t len, uint32_t number)
{
	uint32_t sum = number;

	while (len-- > 0)
		sum = sum * 31 + *p++;
	return sum;
}

static void *
produce(void *arg)
{
	struct ring *rg = arg;
	struct header hdr;
	uint32_t i, seed = 1;
	unsigned char *p;

	for (i = 0; i < RECORDS; i++) {
		seed = step(seed);
		hdr.hdr_len = seed % 61;
		while ((p = ring_reserve(rg, sizeof(hdr) + 64)) == NULL)
			sched_yield();
		memset(p + sizeof(hdr), (int)(seed >> 8 & 0xFF), hdr.hdr_len);
		hdr.hdr_sum = checksum(p + sizeof(hdr), hdr.hdr_len, i);
		memcpy(p, &hdr, sizeof(hdr));
		ring_commit(rg, sizeof(hdr) + hdr.hdr_len);
	}
	return NULL;
}

/* Whole records only; returns the bytes that they take. */
static size_t
check_records(const unsigned char *p, size_t len, uint32_t *number)
{
	struct header hdr;
	size_t used = 0;

	while (used < len) {
		memcpy(&hdr, p + used, sizeof(hdr));
		used += sizeof(hdr);
		assert_in_range(hdr.hdr_len, 0, 60);
		assert_int_equal(
		    checksum(p + used, hdr.hdr_len, *number), hdr.hdr_sum);
		used += hdr.hdr_len;
		(*number)++;
	}
	assert_int_equal(used, len);
	return used;
}

TEST(an_empty_ring_gives_its_memory_back_and_works_on)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	size_t len;
	char *p;

	for (int round = 0; round < 2; round++) {
		p = ring_reserve(rg, 3);
		assert_non_null(p);
		memcpy(p, "abc", 3);
		ring_commit(rg, 3);
		assert_false(ring_release(rg));
		assert_memory_equal(ring_peek(rg, &len), "abc", 3);
		assert_int_equal(len, 3);
		ring_consume(rg, 3);
		assert_true(ring_release(rg));
	}
}

TEST(records_cross_threads_whole_and_in_order)
{
	SCOPED(ring_destroy) struct ring *rg = new_ring(1);
	uint32_t number = 0;
	pthread_t thread;
	const void *p;
	size_t len;

	assert_int_equal(pthread_create(&thread, NULL, produce, rg), 0);
	while (number < RECORDS) {
		p = ring_peek(rg, &len);
		if (len == 0)
			sched_yield();
		else
			ring_consume(rg, check_records(p, len, &number));
	}
	pthread_join(thread, NULL);
	assert_int_equal(waiting(rg), 0);
}

int
setup_all(void **state)
{
	(void)state;
	alarm(600); /* a wrong index is an endless loop */
	return 0;
}
