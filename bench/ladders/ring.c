/*
 * ring: three ways to write a message into a ring that wraps, and to read it:
 * byte by byte with a modulo, in two pieces, and in one piece in memory mapped
 * twice in a row.  The rungs differ in the copying only; lib/ring whole, with
 * its room check and its two indices, stands below them.
 */
#include <err.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/ring.h"
#include "report.h"

#define MESSAGES 64 /* different ones, else a lost write would not show */

struct queue {
	unsigned char *qu_mem;
	size_t qu_size, qu_tail;
	struct ring *qu_ring;
};

typedef void put_f(struct queue *, const unsigned char *, size_t);
typedef void get_f(struct queue *, unsigned char *, size_t);

struct plan {
	put_f *pl_put;
	get_f *pl_get;
	bool pl_mirrored;
};

static unsigned char *messages;

static void
advance(struct queue *qu, size_t len)
{
	qu->qu_tail += len;
	if (qu->qu_tail >= qu->qu_size)
		qu->qu_tail -= qu->qu_size;
}

static void
put_bytewise(struct queue *qu, const unsigned char *data, size_t len)
{
	unsigned char *mem = qu->qu_mem;
	size_t i, tail = qu->qu_tail, size = qu->qu_size;

	for (i = 0; i < len; i++)
		mem[(tail + i) % size] = data[i];
	advance(qu, len);
}

static void
put_two_pieces(struct queue *qu, const unsigned char *data, size_t len)
{
	size_t first = qu->qu_size - qu->qu_tail;

	if (first > len)
		first = len;
	memcpy(qu->qu_mem + qu->qu_tail, data, first);
	memcpy(qu->qu_mem, data + first, len - first);
	advance(qu, len);
}

static void
put_mirrored(struct queue *qu, const unsigned char *data, size_t len)
{
	memcpy(qu->qu_mem + qu->qu_tail, data, len);
	advance(qu, len);
}

static void
put_ring(struct queue *qu, const unsigned char *data, size_t len)
{
	void *room = ring_reserve(qu->qu_ring, len);

	if (room == NULL)
		errx(1, "the ring is full");
	memcpy(room, data, len);
	ring_commit(qu->qu_ring, len);
	ring_consume(qu->qu_ring, len);
}

static void
get_bytewise(struct queue *qu, unsigned char *data, size_t len)
{
	const unsigned char *mem = qu->qu_mem;
	size_t i, head = qu->qu_tail, size = qu->qu_size;

	for (i = 0; i < len; i++)
		data[i] = mem[(head + i) % size];
	advance(qu, len);
}

static void
get_two_pieces(struct queue *qu, unsigned char *data, size_t len)
{
	size_t first = qu->qu_size - qu->qu_tail;

	if (first > len)
		first = len;
	memcpy(data, qu->qu_mem + qu->qu_tail, first);
	memcpy(data + first, qu->qu_mem, len - first);
	advance(qu, len);
}

static void
get_mirrored(struct queue *qu, unsigned char *data, size_t len)
{
	memcpy(data, qu->qu_mem + qu->qu_tail, len);
	advance(qu, len);
}

/* Commits a message, whose bytes the last turn left in the ring, and reads it. */
static void
get_ring(struct queue *qu, unsigned char *data, size_t len)
{
	const void *bytes;
	size_t n;

	if (ring_reserve(qu->qu_ring, len) == NULL)
		errx(1, "the ring is full");
	ring_commit(qu->qu_ring, len);
	bytes = ring_peek(qu->qu_ring, &n);
	if (n != len)
		errx(1, "%zu bytes wait, not %zu", n, len);
	memcpy(data, bytes, len);
	ring_consume(qu->qu_ring, len);
}

static void
get_nothing(struct queue *qu, unsigned char *data, size_t len)
{
	(void)qu;
	(void)data;
	(void)len;
}

static void
put_nothing(struct queue *qu, const unsigned char *data, size_t len)
{
	(void)qu;
	(void)data;
	(void)len;
}

/* What a queue without the second piece would do: the check must see it. */
static void
put_unwrapped(struct queue *qu, const unsigned char *data, size_t len)
{
	size_t first = qu->qu_size - qu->qu_tail;

	memcpy(qu->qu_mem + qu->qu_tail, data, first < len ? first : len);
	advance(qu, len);
}

static void
get_unwrapped(struct queue *qu, unsigned char *data, size_t len)
{
	size_t first = qu->qu_size - qu->qu_tail;

	memcpy(data, qu->qu_mem + qu->qu_tail, first < len ? first : len);
	advance(qu, len);
}

static const struct plan plans[] = {
    {put_bytewise, get_bytewise, false},
    {put_two_pieces, get_two_pieces, false},
    {put_mirrored, get_mirrored, true},
    {put_ring, get_ring, true},
};

static struct rung rungs[] = {
    {.ru_name = "bytewise, modulo", .ru_sources = {104.943}},
    {.ru_name = "two `memcpy`", .ru_sources = {12.196}},
    {.ru_name = "one `memcpy`, mirrored", .ru_sources = {4.024}},
    {.ru_name = "lib/ring: reserve, commit, consume"},
};

static struct ladder ladder = {
    .ld_name = "ring",
    .ld_source = "i5-6400, messages of 32 bytes in a ring of 1024, no message "
		 "crosses the end",
    .ld_less_is_faster = true,
    .ld_measures = {"a write", "a read"},
    .ld_units = {"ns", "ns"},
    .ld_huge = "not used",
    .ld_rungs = rungs,
    .ld_nrungs = sizeof(rungs) / sizeof(*rungs),
};

/* Starts within a message: where sizes divide, one a turn crosses the end. */
static void
queue_open(struct queue *qu, size_t size, const struct plan *pl, size_t start)
{
	int error = ring_create(size, &qu->qu_ring);

	if (error != 0)
		errx(1, "ring: %s", strerror(-error));
	qu->qu_size = ring_size(qu->qu_ring);
	qu->qu_tail = start;
	/* At index 0, so this is where both mappings begin. */
	qu->qu_mem = ring_reserve(qu->qu_ring, start);
	ring_commit(qu->qu_ring, start);
	ring_consume(qu->qu_ring, start);
	if (!pl->pl_mirrored)
		qu->qu_mem = calloc(1, qu->qu_size);
	if (qu->qu_mem == NULL)
		err(1, NULL);
}

static void
queue_close(struct queue *qu, const struct plan *pl)
{
	if (!pl->pl_mirrored)
		free(qu->qu_mem);
	ring_destroy(&qu->qu_ring);
}

static void
write_messages(const struct plan *pl, struct queue *qu, size_t len, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		pl->pl_put(qu, messages + i % MESSAGES * len, len);
		/* What the next turn overwrites was written all the same. */
		__asm__ volatile("" : : "r"(qu->qu_mem) : "memory");
	}
}

static uint64_t
checksum(const unsigned char *p, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325;

	while (len-- > 0)
		sum = (sum ^ *p++) * 0x100000001b3;
	return sum;
}

/* After n writes the ring must be what a turn of them, done slowly, gives. */
static bool
intact(const struct queue *qu, size_t start, size_t len, size_t n)
{
	unsigned char *model = calloc(1, qu->qu_size);
	size_t i, j, turn = qu->qu_size / len + 2;
	bool same;

	if (model == NULL)
		err(1, NULL);
	for (i = n > turn ? n - turn : 0; i < n; i++)
		for (j = 0; j < len; j++)
			model[(start + i * len + j) % qu->qu_size] =
			    messages[i % MESSAGES * len + j];
	same =
	    checksum(model, qu->qu_size) == checksum(qu->qu_mem, qu->qu_size);
	free(model);
	return same;
}

static void
make_messages(size_t len)
{
	uint64_t x = 88172645463325252;
	size_t i;

	free(messages);
	messages = malloc(MESSAGES * len);
	if (messages == NULL)
		err(1, NULL);
	for (i = 0; i < MESSAGES * len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		messages[i] = (unsigned char)x;
	}
}

/* Nanoseconds a write. */
static double
measure(const struct plan *pl, size_t size, size_t len, size_t n)
{
	size_t start = len / 2;
	struct queue qu;
	double begin, end;

	queue_open(&qu, size, pl, start);
	/* As many as keep the messages in step; the page faults are theirs. */
	write_messages(pl, &qu, len, MESSAGES * (1 + qu.qu_size / len));
	start = (start + len * MESSAGES * (1 + qu.qu_size / len)) % qu.qu_size;
	begin = ladder_now();
	write_messages(pl, &qu, len, n);
	end = ladder_now();
	if (pl->pl_put != put_nothing && n * len >= 2 * qu.qu_size &&
	    !intact(&qu, start, len, n))
		errx(1, "the ring does not hold what was written");
	queue_close(&qu, pl);
	return (end - begin) * 1e9 / (double)n;
}

/*
 * Reads n messages of a ring that wrote enough of them to be full.  Returns
 * false if a message differs from what was written at its place, which
 * `check` wants to know.
 */
static bool
read_messages(
    const struct plan *pl, struct queue *qu, size_t len, size_t n, bool check)
{
	unsigned char *data = malloc(len);
	const unsigned char *mem = qu->qu_mem;
	size_t i, j, at;
	bool same = true;

	if (data == NULL)
		err(1, NULL);
	for (i = 0; i < n; i++) {
		at = qu->qu_tail;
		pl->pl_get(qu, data, len);
		__asm__ volatile("" : : "r"(data) : "memory");
		for (j = 0; check && same && j < len; j++)
			same = data[j] == mem[(at + j) % qu->qu_size];
	}
	free(data);
	return same;
}

/* Checks each of n reads.  lib/ring has a position of its own, which qu_tail follows. */
static bool
read_checked(const struct plan *pl, struct queue *qu, size_t len, size_t n)
{
	size_t at = qu->qu_tail, i;
	bool same = true;

	for (i = 0; same && i < n; i++) {
		qu->qu_tail = at;
		same = read_messages(pl, qu, len, 1, true);
		at = (at + len) % qu->qu_size;
	}
	qu->qu_tail = at;
	return same;
}

/* Fills a ring with messages, so that the next read returns the oldest. */
static void
fill(const struct plan *pl, struct queue *qu, size_t size, size_t len)
{
	size_t n, start = len / 2;

	queue_open(qu, size, pl, start);
	n = 2 + qu->qu_size / len;
	write_messages(pl, qu, len, n);
	qu->qu_tail = (start + n * len) % qu->qu_size;
}

/* Returns the nanoseconds of a read. */
static double
measure_reads(const struct plan *pl, size_t size, size_t len, size_t n)
{
	struct queue qu;
	double begin, end;

	fill(pl, &qu, size, len);
	if (pl->pl_get != get_nothing &&
	    !read_checked(pl, &qu, len, 2 + 2 * qu.qu_size / len))
		errx(1, "a read does not return what was written");
	begin = ladder_now();
	read_messages(pl, &qu, len, n, false);
	end = ladder_now();
	queue_close(&qu, pl);
	return (end - begin) * 1e9 / (double)n;
}

static void
run(size_t size, size_t len, size_t n, int rounds)
{
	static const struct plan nothing = {put_nothing, get_nothing, true};
	struct rung empty = {0};
	int i, round;

	make_messages(len);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ladder.ld_nrungs; i++) {
			ladder_add(
			    &rungs[i], 0, measure(&plans[i], size, len, n));
			ladder_add(&rungs[i], 1,
			    measure_reads(&plans[i], size, len, n));
		}
		ladder_add(&empty, 0, measure(&nothing, size, len, n));
		ladder_add(&empty, 1, measure_reads(&nothing, size, len, n));
	}
	snprintf(ladder.ld_notes, sizeof(ladder.ld_notes),
	    "The loop with an empty call in it takes %.2f ns of each write and "
	    "%.2f ns of each read. Lengths are variables, so memcpy is a call "
	    "in every rung. A read of lib/ring also commits its message. The "
	    "source has a `get` but no figure of it. All rings held what was "
	    "written, and all reads returned it.",
	    ladder_median(&empty.ru_measures[0]),
	    ladder_median(&empty.ru_measures[1]));
	ladder_option(&ladder, "size", (double)size);
	ladder_option(&ladder, "message", (double)len);
	ladder_option(&ladder, "writes", (double)n);
	ladder_option(&ladder, "rounds", rounds);
}

/* Every number of writes up to three turns, with a length that fits no ring. */
static bool
arrives(const struct plan *pl, size_t len)
{
	struct queue qu;
	size_t n, turns;
	bool ok = true;

	make_messages(len);
	queue_open(&qu, 1, pl, len / 2);
	turns = 3 * qu.qu_size / len;
	queue_close(&qu, pl);
	for (n = 1; ok && n <= turns; n++) {
		queue_open(&qu, 1, pl, len / 2);
		write_messages(pl, &qu, len, n);
		ok = intact(&qu, len / 2, len, n);
		queue_close(&qu, pl);
	}
	return ok;
}

static bool
returns(const struct plan *pl, size_t len)
{
	struct queue qu;
	bool ok;

	make_messages(len);
	fill(pl, &qu, 1, len);
	ok = read_checked(pl, &qu, len, 3 * qu.qu_size / len);
	queue_close(&qu, pl);
	return ok;
}

/* Every plan has the property, for pieces of two lengths. */
static void
test_plans(const char *property, bool (*has)(const struct plan *, size_t))
{
	char name[128];
	int i;

	for (i = 0; i < ladder.ld_nrungs; i++) {
		snprintf(name, sizeof(name), "%s: %s", property,
		    ladder.ld_rungs[i].ru_name);
		ladder_test(has(&plans[i], 32) && has(&plans[i], 333), name);
	}
}

static int
self_test(void)
{
	static const struct plan no_put = {put_unwrapped, get_nothing, false},
				 no_get = {
				     put_two_pieces, get_unwrapped, false};
	struct rung ru = {0};

	test_plans("every byte arrives across the end", arrives);
	ladder_test(!arrives(&no_put, 32), "the check sees a lost piece");
	test_plans("every read returns what was written", returns);
	ladder_test(!returns(&no_get, 32), "the check sees a piece not read");
	ladder_add(&ru, 0, 9);
	ladder_add(&ru, 0, 1);
	ladder_add(&ru, 0, 4);
	ladder_test(ladder_median(&ru.ru_measures[0]) == 4,
	    "the median of an odd number is the middle one");
	ladder_add(&ru, 0, 5);
	ladder_test(ladder_median(&ru.ru_measures[0]) == 4.5,
	    "the median of an even number lies between the middle two");
	return ladder_tested();
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"size", required_argument, NULL, 's'},
	    {"message", required_argument, NULL, 'm'},
	    {"writes", required_argument, NULL, 'w'},
	    {"rounds", required_argument, NULL, 'r'},
	    {"json", no_argument, NULL, 'j'},
	    {"self-test", no_argument, NULL, 't'}, {0}};
	size_t size = 4096, len = 32, writes = 1000000;
	int c, rounds = 15;
	bool json = false;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			size = ladder_number("--size", optarg, 1);
		else if (c == 'm')
			len = ladder_number("--message", optarg, 1);
		else if (c == 'w')
			writes = ladder_number("--writes", optarg, 1);
		else if (c == 'r')
			rounds = ladder_rounds(optarg);
		else if (c == 'j')
			json = true;
		else if (c == 't')
			return self_test();
		else
			errx(2, "usage: ring [--size BYTES] [--message BYTES] "
				"[--writes N] [--rounds N] [--json] "
				"[--self-test]");
	if (len > size)
		errx(2, "a message must fit into the ring");
	run(size, len, writes, rounds);
	ladder_print(&ladder, json);
	return 0;
}
