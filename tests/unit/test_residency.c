/*
 * What is in memory (lib/file/residency.h): the answers for each way to ask, and that
 * asking brings nothing in where that could wait.
 */
#include "residency_fixture.h"

#include <sys/socket.h>

#include "lib/disk/reclaim.h"
#include "lib/send/drop_behind.h"

uint64_t __wrap_reclaim_used_stay(const struct reclaim *, uint64_t);

/* The counters are not read here: the kernel reclaims slowly. */
uint64_t
__wrap_reclaim_used_stay(const struct reclaim *rc, uint64_t now)
{
	(void)rc, (void)now;
	return RECLAIM_USED;
}

#define ROUNDS 20
#define SMALL  (PIECE - 7)
#define HEAD   "head\r\n"

TEST(a_cold_file_of_ours_is_not_resident)
{
	SCOPED_FILE *file;
	off_t off;

	skip_unless(NEED_EVICTION);
	file = cold_file();
	assert_false(residency_ask(file, 0, SIZE));
	assert_false(residency_ask(file, SIZE - 1, 1));
	for (off = 0; off < SIZE; off += 4096)
		assert_false(residency_ask(file, off, 1));
	if (file_priv(file)->fp_cachestat)
		assert_int_equal(
		    pages_resident(file->fil_fd, 0, (size_t)SIZE), 0);
}

static bool
fetched_is_resident(void)
{
	SCOPED_FILE *file = cold_file();
	bool yes;

	fetch(file, 0, SIZE);
	yes = residency_ask(file, 0, SIZE) && residency_ask(file, 1, 1) &&
	      residency_ask(file, SIZE - 1, 1);
	return yes;
}

TEST(a_fetched_file_of_ours_is_resident)
{
	skip_unless(NEED_EVICTION);
	assert_true(holds_in_one_of(TRIES, fetched_is_resident));
}

/* One page out of each piece is not enough, and neither is all but one. */
TEST(a_range_with_a_hole_is_not_resident)
{
	SCOPED_FILE *file;
	void *held;

	skip_unless(NEED_EVICTION | NEED_EXACT | NEED_LOCK);
	file = cold_file();
	read_in(file->fil_fd, 0, 5 * 4096);
	read_in(file->fil_fd, 6 * 4096, (size_t)PIECE);
	assert_false(residency_ask(file, 0, PIECE));
	assert_false(residency_ask(file, 4 * 4096 + 4095, 2));
	assert_false(residency_ask(file, 5 * 4096, 1));
	held = hold(file->fil_fd, (size_t)SIZE);
	assert_true(residency_ask(file, 0, PIECE));
	let_go(held, (size_t)SIZE);
}

static bool
what_is_around_a_hole_is_resident(void)
{
	SCOPED_FILE *file = cold_file();
	bool yes;

	file_priv(file)->fp_cachestat = false;
	file_priv(file)->fp_ask = OS_ASK_MINCORE;
	read_in(file->fil_fd, PIECE, (size_t)PIECE);
	yes = residency_ask(file, PIECE, PIECE) &&
	      residency_ask(file, PIECE + 100, PIECE - 200);
	assert_false(residency_ask(file, 0, PIECE + 1));
	assert_false(residency_ask(file, PIECE - 1, 2));
	assert_false(residency_ask(file, PIECE, PIECE + 1));
	assert_false(residency_ask(file, 2 * PIECE - 1, 2));
	assert_false(residency_ask(file, 0, SIZE));
	assert_false(residency_ask(file, SIZE - 1, 1));
	return yes;
}

/* To the page, where RWF_NOWAIT is not known. */
TEST(mincore_is_exact)
{
	skip_unless(NEED_EVICTION);
	assert_true(holds_in_one_of(TRIES, what_is_around_a_hole_is_resident));
}

TEST(a_file_that_cannot_be_asked_is_never_resident)
{
	SCOPED_FILE *file;
	void *held;

	skip_unless(NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	file_priv(file)->fp_ask = OS_ASK_MINCORE;
	assert_true(residency_can_ask(file));
	file_priv(file)->fp_ask = OS_ASK_FETCH;
	assert_false(residency_can_ask(file));
	fetch(file, 0, SIZE);
	assert_false(residency_ask(file, 0, SIZE));
	assert_false(residency_ask(file, 0, 1));
	let_go(held, (size_t)SIZE);
}

/* A file that is not ours: RWF_NOWAIT starts a read of what is not there. */
TEST(what_was_never_fetched_is_not_touched)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_NOWAIT);
	file = cold_file();
	as_another_owner(file);
	assert_false(residency_ask(file, 0, SIZE));
	assert_false(residency_ask(file, PIECE, 1));
	/* A read that had been started would be over by then, mostly. */
	usleep(20000);
	assert_int_equal(pages_resident(file->fil_fd, 0, (size_t)SIZE), 0);
}

TEST(what_was_never_fetched_is_not_resident_whatever_is_in_memory)
{
	SCOPED_FILE *file;
	void *held;

	skip_unless(NEED_NOWAIT | NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	as_another_owner(file);
	assert_false(residency_ask(file, 0, SIZE));
	fetch(file, PIECE, 2 * PIECE);
	assert_true(residency_ask(file, PIECE, 2 * PIECE));
	assert_true(residency_ask(file, PIECE, 1));
	assert_true(residency_ask(file, 3 * PIECE - 1, 1));
	assert_false(residency_ask(file, PIECE - 1, 2));
	assert_false(residency_ask(file, 3 * PIECE - 1, 2));
	assert_false(residency_ask(file, 0, SIZE));
	fetch(file, 3 * PIECE, SIZE - 3 * PIECE);
	assert_true(residency_ask(file, SIZE - 1, 1));
	assert_true(residency_ask(file, PIECE, SIZE - PIECE));
	let_go(held, (size_t)SIZE);
}

/* Fetched once does not mean for ever. */
TEST(what_was_fetched_and_evicted_is_not_resident)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_NOWAIT);
	file = cold_file();
	as_another_owner(file);
	fetch(file, 0, SIZE);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	assert_false(residency_ask(file, 0, SIZE));
}

/* True if it is gone, and others are not.  Page by page: no folios. */
static bool
evict_page(struct pw_file *file, off_t hole)
{
	read_in(file->fil_fd, 0, (size_t)SIZE);
	residency_fetched(file, 0, SIZE);
	posix_fadvise(
	    file->fil_fd, hole, (off_t)os_page_size(), POSIX_FADV_DONTNEED);
	usleep(RESIDENCY_HOLDS);
	return pages_resident(file->fil_fd, hole, 1) == 0 &&
	       pages_resident(file->fil_fd, 0, (size_t)SIZE) > 0;
}

/*
 * All pages are there but one: it is seen, whichever it is.  A question by
 * RWF_NOWAIT starts its read, and if the thread is then held up for as long as the
 * read takes, the page is there: 142 of 197,952 times on a busy machine.
 */
static bool
single_pages_are_missed(bool mincore)
{
	const off_t page = (off_t)os_page_size();
	SCOPED_FILE *file = cold_file();
	bool all = true;
	off_t hole;

	file_priv(file)->fp_cachestat = false;
	file_priv(file)->fp_mincore = mincore;
	for (hole = 0; hole < SIZE && all; hole += page) {
		int tries = 0;

		do {
			all = evict_page(file, hole);
		} while (!all && ++tries < 20);
		assert_false(all && residency_ask(file, 0, SIZE) &&
			     pages_resident(file->fil_fd, hole, 1) == 0);
	}
	return all;
}

static bool
nowait_misses_single_pages(void)
{
	return single_pages_are_missed(false);
}

static bool
mincore_misses_single_pages(void)
{
	return single_pages_are_missed(true);
}

TEST(one_page_that_is_gone_is_noticed_by_each_way_of_asking)
{
	skip_unless(NEED_EVICTION | NEED_NOWAIT);
	assert_true(holds_in_one_of(TRIES, nowait_misses_single_pages));
	assert_true(holds_in_one_of(TRIES, mincore_misses_single_pages));
}

TEST(a_yes_does_not_hold_for_ever)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = cold_file();
	fetch(file, 0, SIZE);
	assert_true(residency_ask(file, 0, SIZE));
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	usleep(RESIDENCY_HOLDS_QUIET);
	assert_false(residency_ask(file, 0, SIZE));
}

TEST(a_yes_is_for_the_range_that_was_asked_about)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = cold_file();
	fetch(file, PIECE, PIECE);
	assert_true(residency_ask(file, PIECE, PIECE));
	assert_true(residency_ask(file, PIECE + 1, PIECE - 1));
	assert_false(residency_ask(file, PIECE - 1, PIECE));
	assert_false(residency_ask(file, PIECE + 1, PIECE));
}

/* So that many small questions about a popular piece are one. */
TEST(a_part_of_a_piece_is_asked_for_with_the_rest)
{
	SCOPED_FILE *file;
	off_t off = 0, end = PIECE;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = cold_file();
	fetch(file, 0, PIECE);
	assert_true(residency_ask(file, 0, 4096));
	verified_trim(fx->fx_loop->lp_verified, file_priv(file)->fp_number,
	    &off, &end, 0, UINT64_MAX);
	assert_true(off == end);
	assert_int_equal(pages_resident(file->fil_fd, 0, (size_t)SIZE),
	    PIECE / sysconf(_SC_PAGESIZE));
}

/* Of what is not asked about, a no is none. */
TEST(a_rest_that_is_not_there_does_not_matter)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = cold_file();
	read_in(file->fil_fd, 0, 3 * 4096);
	assert_true(residency_ask(file, 0, 3 * 4096));
	assert_true(residency_ask(file, 4096, 4096));
	assert_false(residency_ask(file, 4096, 3 * 4096));
}

TEST(a_yes_for_a_file_that_is_given_back_does_not_hold)
{
	SCOPED_FILE *file;

	file = cold_file();
	residency_drops(file);
	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	assert_true(residency_ask(file, 0, SIZE));
	file_priv(file)->fp_ask = OS_ASK_FETCH;
	assert_false(residency_ask(file, 0, SIZE));
}

/*
 * Checks a range between the announcement of a drop through another name of the file, and the drop.  Returns
 * true if the range was resident, and the pages left.  Without a second announcement the check would hold for
 * RESIDENCY_HOLDS, which most rounds do not take.
 */
static bool
early_check_does_not_hold(struct pw_file *file, struct pw_file *same)
{
	struct latch la;
	bool was, is;

	read_in(file->fil_fd, 0, (size_t)SIZE);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	drop_behind_add(same, 0, SIZE, 0);
	was = pw_resident(file, 0, (size_t)SIZE) == 1;
	latch_finish(&la);
	is = pw_resident(file, 0, (size_t)SIZE) == 1;
	if (!was || pages_resident(file->fil_fd, 0, (size_t)SIZE) > 0)
		return false;
	assert_false(is);
	return true;
}

TEST(a_check_before_a_queued_drop_does_not_hold, setup_one_thread)
{
	SCOPED_FILE *file, *same;
	unsigned i, held = 0;

	skip_unless(NEED_EVICTION | NEED_NOWAIT | NEED_EXACT);
	make_file("f", (size_t)SIZE);
	make_link("f", "g");
	file = open_file("f");
	same = open_file("g");
	assert_ptr_not_equal(file, same);
	for (i = 0; i < ROUNDS; i++)
		held += early_check_does_not_hold(file, same);
	assert_true(held > 0);
}

/* What cachestat says is asked first, so that nothing is brought in. */
TEST(asking_about_a_cold_file_of_ours_brings_nothing_in)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = cold_file();
	assert_false(residency_ask(file, 0, SIZE));
	assert_false(residency_ask(file, 2 * PIECE, PIECE));
	usleep(20000);
	assert_int_equal(pages_resident(file->fil_fd, 0, (size_t)SIZE), 0);
}

TEST(shared_memory_is_never_cold)
{
	struct found fnd = {.fnd_fd = os_memfd("test", SIZE)};
	SCOPED_FILE *file;

	assert_true(fnd.fnd_fd >= 0);
	assert_int_equal(fstat(fnd.fnd_fd, &fnd.fnd_stat), 0);
	assert_int_equal(file_create(fx->fx_loop, &fnd, &file), 0);
	assert_int_equal(file_priv(file)->fp_ask, OS_ASK_NEVER_COLD);
	assert_true(residency_can_ask(file));
	assert_true(residency_ask(file, 0, SIZE));
}

/* Receives what was sent: the head, then the file. */
static void
expect_whole(int sock, const struct pw_file *file, const char *head)
{
	size_t len = strlen(head), all = len + (size_t)file->fil_size;
	SCOPED(free_at) char *got = malloc(all + 1);
	SCOPED(free_at) char *want = malloc(all);

	memcpy(want, head, len);
	assert_int_equal(pread(file->fil_fd, want + len, all - len, 0),
	    (ssize_t)(all - len));
	assert_int_equal(recv(sock, got, all + 1, MSG_DONTWAIT), (ssize_t)all);
	assert_memory_equal(got, want, all);
}

/* A small file whose pages stay, and were sent a moment ago: the kernel evicts others first. */
static struct pw_file *
popular_file(void **held)
{
	struct pw_file *file = new_file("f", (size_t)SMALL);

	*held = hold(file->fil_fd, (size_t)SMALL);
	residency_used(file, 0, SMALL);
	residency_used(file, 0, SMALL);
	return file;
}

static int
send_whole(struct pw_file *file, int sock, size_t *sent)
{
	/* On a slow machine the uses before may be too long ago. */
	residency_used(file, 0, SMALL);
	return residency_send(file, sock, HEAD, strlen(HEAD), sent);
}

static bool
resident_file_is_sent_behind_its_head(void)
{
	void *held;
	SCOPED_FILE *file = popular_file(&held);
	int fds[2], error;
	size_t sent;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	error = send_whole(file, fds[0], &sent);
	if (error == 0) {
		assert_int_equal(sent, strlen(HEAD) + (size_t)SMALL);
		expect_whole(fds[1], file, HEAD);
	}
	close(fds[0]);
	close(fds[1]);
	let_go(held, (size_t)SMALL);
	return error == 0;
}

TEST(a_resident_file_is_sent_behind_its_head)
{
	skip_unless(NEED_LOCK | NEED_NOWAIT);
	assert_true(
	    holds_in_one_of(TRIES, resident_file_is_sent_behind_its_head));
}

TEST(nothing_is_sent_of_a_file_that_must_be_copied)
{
	static const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
	SCOPED_FILE *file;
	int fds[2];
	size_t sent = 1;
	void *held;

	skip_unless(NEED_EVICTION | NEED_LOCK | NEED_NOWAIT);
	file = popular_file(&held);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pw_loop_bound(fx->fx_loop, 4096);
	assert_int_equal(send_whole(file, fds[0], &sent), -EBUSY);
	pw_loop_bound(fx->fx_loop, 0);
	residency_drops(file);
	assert_int_equal(send_whole(file, fds[0], &sent), -EBUSY);
	residency_drops_end(file);
	assert_int_equal(futimens(file->fil_fd, long_ago), 0);
	assert_int_equal(send_whole(file, fds[0], &sent), -EBUSY);
	let_go(held, (size_t)SMALL);
	pw_file_unref(&file);
	file = cold_file();
	assert_int_equal(send_whole(file, fds[0], &sent), -EBUSY);
	assert_int_equal(sent, 0);
	assert_int_equal(recv(fds[1], &sent, 1, MSG_DONTWAIT), -1);
	close(fds[0]);
	close(fds[1]);
}
