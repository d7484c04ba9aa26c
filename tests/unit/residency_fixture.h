/*
 * residency_fixture: a file of which nothing is in memory, for tests of residency and of copies.
 */
#ifndef TESTS_RESIDENCY_FIXTURE_H
#define TESTS_RESIDENCY_FIXTURE_H

#include "lib_fixture.h"

#include "lib/disk/completion.h"
#include "lib/file/residency.h"
#include "lib/file/verified.h"

#define PIECE ((off_t)64 * KIB)
#define SIZE  (4 * PIECE + 100)
#define TRIES 5

/* A file of ours, of which nothing is in memory. */
static inline struct pw_file *
cold_file(void)
{
	struct pw_file *file = new_file("f", (size_t)SIZE);

	leave_no_room_for_pins();
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	return file;
}

/* As nodiskio does it: through the pool. */
static inline void
fetch(struct pw_file *file, off_t off, off_t len)
{
	struct pw_waiter w = {.wt_done = nothing_done};

	posix_fadvise(file->fil_fd, 0, 0, POSIX_FADV_RANDOM);
	assert_int_equal(
	    pool_fetch(file, off, (size_t)len, FETCH_FOLIO, ADMIT_NEW, &w), 0);
	settle(fx->fx_loop);
	assert_int_equal(w.wt_error, 0);
	residency_fetched(file, off, len);
}

#endif
