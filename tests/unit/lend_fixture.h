/* lend_fixture: pw_fetch of a file of two windows, for tests. */
#ifndef TESTS_LEND_FIXTURE_H
#define TESTS_LEND_FIXTURE_H

#include "lib_fixture.h"

#include "lib/disk/budget.h"
#include "lib/os/os.h"
#include "lib/send/drop_behind.h"

#define WINDOW ((off_t)PW_FETCH_WINDOW)
#define REST \
	(200 * KIB + 57) /* bytes of the last window: no multiple of anything */
#define SIZE ((size_t)WINDOW + REST)

struct fetch {
	struct pw_fetch fe_fetch;
	unsigned fe_times;
};

static inline void
fetch_done(struct pw_waiter *w)
{
	((struct fetch *)w)->fe_times++;
}

static inline int
start(struct fetch *fe, struct pw_file *file, off_t off, size_t len,
    enum pw_fetch_want want)
{
	*fe = (struct fetch){.fe_fetch = {.ft_waiter.wt_done = fetch_done,
				 .ft_file = file,
				 .ft_off = off,
				 .ft_len = len,
				 .ft_want = want}};
	return pw_fetch(&fe->fe_fetch);
}

/* Fetches, and waits for the result if there is a wait. */
static inline int
fetch(struct fetch *fe, struct pw_file *file, off_t off, size_t len,
    enum pw_fetch_want want)
{
	int error = start(fe, file, off, len, want);

	assert_int_equal(fe->fe_times, 0);
	if (error != -EINPROGRESS)
		return error;
	settle(fx->fx_loop);
	assert_int_equal(fe->fe_times, 1);
	return fe->fe_fetch.ft_waiter.wt_error;
}

static inline void
assert_lends(const struct fetch *fe, size_t len)
{
	const struct pw_fetch *ft = &fe->fe_fetch;

	assert_int_equal(ft->ft_have, len);
	assert_non_null(ft->ft_mem);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)ft->ft_mem[i] !=
		    byte_at(ft->ft_off + (off_t)i))
			fail_msg("byte %zu", i);
}

static inline uint64_t
budget_taken(void)
{
	struct pw_pool_stats ps;

	pw_pool_stats(fx->fx_pool, &ps);
	return ps.ps_unsent;
}

static inline struct pw_file *
cold_file(void)
{
	struct pw_file *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = new_file("f", SIZE);
	assert_true(evict(file->fil_fd, SIZE));
	return file;
}

static inline void
add_mapping(struct pins *ps, const struct pins_key *key, void *map, size_t len)
{
	const struct os_folio fo = {
	    .fo_map = map, .fo_len = len, .fo_pipe = -1};

	pins_add(ps, key, 0, &fo, PINS_UNMARKED);
}

static inline void
overwrite(void)
{
	SCOPED(close_at) int fd = open(path_in("f"), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	usleep(10000); /* longer than a tick of the file system's clock */
	assert_int_equal(pwrite(fd, "!", 1, 0), 1);
}

#endif
