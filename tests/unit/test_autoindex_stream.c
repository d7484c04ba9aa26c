/*
 * A directory block by block (server/content/autoindex_stream.h): every name once, chunks that are what
 * they say, and a descriptor that the pool closes.
 */
#include "lib_fixture.h"

#include "server/content/autoindex_stream.h"

#define NAMES 3000

#define SCOPED_STREAM SCOPED(autoindex_stream_close) struct autoindex_stream

static unsigned came;

static void
count_block(struct autoindex_stream *st)
{
	(void)st;
	came++;
}

/* The request, of which path and title are, may be freed at once. */
static struct autoindex_stream *
stream_titled(const char *path, const char *name, bool chunked)
{
	char *paths = strdup(path), *title = strdup(name);
	struct autoindex_stream *st =
	    autoindex_stream_create(&(struct place){.pl_root = fx->fx_root,
		.pl_path = paths,
		.pl_title = title,
		.pl_dev = fx->fx_root->rt_dev});

	assert_non_null(st);
	memset(title, '#', strlen(title));
	free(paths);
	free(title);
	st->st_loop = fx->fx_loop;
	st->st_chunked = chunked;
	st->st_done = count_block;
	return st;
}

static struct autoindex_stream *
stream_of(const char *path, bool chunked)
{
	return stream_titled(path, "/", chunked);
}

/* One block, which must come once. */
static int
next(struct autoindex_stream *st)
{
	came = 0;
	assert_int_equal(autoindex_stream_next(st), 0);
	assert_int_equal(came, 0);
	settle(fx->fx_loop);
	assert_int_equal(came, 1);
	return st->st_error;
}

static void
make_names(void)
{
	char name[16];

	make_empty("n0000");
	for (int i = 1; i < NAMES; i++) {
		snprintf(name, sizeof(name), "n%04d", i);
		make_link("n0000", name);
	}
	assert_int_equal(mkdir(path_in(".hidden"), 0700), 0);
}

/* The text of all blocks, NUL-terminated; freed by the caller. */
static char *
text_of(struct autoindex_stream *st, int *blocks)
{
	char *text = NULL;
	size_t len = 0;

	*blocks = 0;
	do {
		assert_int_equal(next(st), 0);
		text = realloc(text, len + st->st_len + 1);
		assert_non_null(text);
		memcpy(text + len, st->st_data, st->st_len);
		len += st->st_len;
		assert_in_range(st->st_len, 1, 64 * KIB);
		++*blocks;
	} while (!st->st_end);
	text[len] = '\0';
	return text;
}

static void
assert_names(const char *page)
{
	bool seen[NAMES] = {false};
	unsigned n, count = 0;
	const char *p;

	for (p = page; (p = strstr(p, "<a href=\"n")) != NULL; p++, count++) {
		assert_int_equal(sscanf(p, "<a href=\"n%4u\"", &n), 1);
		assert_in_range(n, 0, NAMES - 1);
		assert_false(seen[n]);
		seen[n] = true;
	}
	assert_int_equal(count, NAMES);
	assert_non_null(strstr(page, "</html>\n"));
}

TEST(every_name_comes_once)
{
	struct autoindex_stream *st = stream_titled(".", "/title/", false);
	int fds = count_fds(), blocks;
	SCOPED(free_at) char *page;

	make_names();
	page = text_of(st, &blocks);
	assert_in_range(blocks, 3, 20);
	assert_names(page);
	assert_memory_equal(page, "<!DOCTYPE html>", 15);
	assert_non_null(strstr(page, "<title>Index of /title/</title>"));
	assert_int_equal(count_fds(), fds);
	autoindex_stream_close(&st);
	assert_null(st);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}

/* Takes the frames out, in place. */
static void
unframe(char *text)
{
	char *from = text, *to = text, *end;
	size_t len;

	do {
		assert_true(*from != '0' || from[1] == '\r');
		len = strtoul(from, &end, 16);
		assert_memory_equal(end, "\r\n", 2);
		memmove(to, end + 2, len);
		to += len;
		from = end + 2 + len;
		assert_memory_equal(from, "\r\n", 2);
		from += 2;
	} while (len > 0);
	assert_int_equal(*from, '\0');
	*to = '\0';
}

TEST(chunks_are_as_long_as_they_say)
{
	SCOPED_STREAM *st = stream_of(".", true);
	int blocks;
	SCOPED(free_at) char *page;

	make_names();
	page = text_of(st, &blocks);
	unframe(page);
	assert_names(page);
}

TEST(an_empty_directory_is_one_block)
{
	SCOPED_STREAM *st = stream_of(".", true);
	int blocks;
	SCOPED(free_at) char *page = text_of(st, &blocks);

	assert_int_equal(blocks, 1);
	unframe(page);
	assert_null(strstr(page, "<a "));
}

TEST(an_unreadable_directory_is_an_error)
{
	SCOPED_STREAM *st = stream_of("none", true);

	assert_int_equal(next(st), -ENOENT);
}

/* The pool's only thread is held: so it is not the loop that closes. */
TEST(a_disk_thread_closes_an_abandoned_listing, setup_one_thread)
{
	struct autoindex_stream *st = stream_of(".", true);
	int fds = count_fds();
	struct latch la;

	make_names();
	assert_int_equal(next(st), 0);
	assert_false(st->st_end);
	assert_int_equal(count_fds(), fds + 1);
	latch_shut(&la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_TASKS),
	    fx->fx_loop);
	autoindex_stream_close(&st);
	assert_null(st);
	assert_int_equal(count_fds(), fds + 1);
	latch_finish(&la);
	assert_int_equal(count_fds(), fds);
}

/* Its head has been sent: it goes on though the queue is full. */
TEST(only_the_first_block_is_refused, setup_narrow)
{
	SCOPED_STREAM *st = stream_of(".", true);
	SCOPED_STREAM *late = stream_of(".", true);
	struct pw_waiter w = {.wt_done = nothing_done};
	SCOPED_FILE *file = new_file("n9999", 10);
	struct latch la;

	assert_int_equal(unlink(path_in("n9999")), 0);
	make_names();
	assert_int_equal(next(st), 0);
	file_priv(file)->fp_device =
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_TASKS);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    pool_fetch(file, 0, 10, FETCH_PAGES, ADMIT_NEW, &w), 0);
	came = 0;
	assert_int_equal(autoindex_stream_next(late), -EAGAIN);
	assert_int_equal(autoindex_stream_next(st), 0);
	latch_finish(&la);
	assert_int_equal(came, 1);
}

/* One thread, which a gate holds: the block is queued behind it. */
TEST(a_block_without_a_reader_is_not_read, setup_one_thread)
{
	struct autoindex_stream *st = stream_of(".", true);
	int fds = count_fds();
	struct latch la;

	make_names();
	assert_int_equal(next(st), 0);
	assert_int_equal(count_fds(), fds + 1);
	latch_shut(&la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_TASKS),
	    fx->fx_loop);
	came = 0;
	assert_int_equal(autoindex_stream_next(st), 0);
	autoindex_stream_cancel(st);
	latch_finish(&la);
	assert_int_equal(came, 1);
	assert_int_equal(st->st_error, -ECANCELED);
	assert_int_equal(count_fds(), fds);
	autoindex_stream_close(&st);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}
