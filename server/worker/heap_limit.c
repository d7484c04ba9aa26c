/*
 * heap_limit: see heap_limit.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"

#include "server/util/period.h"
#include "server/worker/heap_limit.h"

#define LEAST ((uint64_t)1) /* bit always set in a measured hl_base */

/*
 * Opens the source of the measurement.  In a debug build, tests may name another file in the
 * environment.
 */
static int
heap_limit_open_source(void)
{
#ifdef PW_DEBUG
	const char *path = getenv("PAGEWISE_STATM");
	int fd;

	if (path != NULL) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		return fd == -1 ? -errno : fd;
	}
#endif
	return os_anonymous_open();
}

int
heap_limit_create(uint64_t kept, struct heap_limit **out)
{
	struct heap_limit *hl = calloc(1, sizeof(*hl));
	struct os_memory om;

	*out = NULL;
	if (hl == NULL)
		return -ENOMEM;
	os_memory(&om);
	hl->hl_limit = om.om_bytes;
	hl->hl_grouped = om.om_limited;
	hl->hl_kept = kept;
	hl->hl_fd = heap_limit_open_source();
	if (hl->hl_fd == -EMFILE || hl->hl_fd == -ENFILE) {
		int error = hl->hl_fd;

		free(hl);
		return error;
	}
	*out = hl;
	return 0;
}

void
heap_limit_destroy(struct heap_limit **hlp)
{
	struct heap_limit *hl = *hlp;

	if (hl == NULL)
		return;
	*hlp = NULL;
	if (hl->hl_fd >= 0)
		close(hl->hl_fd);
	free(hl);
}

/* Returns the bytes that the process uses without connections. */
static uint64_t
heap_limit_own(const struct heap_limit *hl)
{
	return atomic_load_explicit(&hl->hl_base, memory_order_relaxed) +
	       hl->hl_kept;
}

/* Returns the bytes that connections may use, or 0 if the configuration needs all memory. */
static uint64_t
heap_limit_share(const struct heap_limit *hl)
{
	uint64_t begin = heap_limit_own(hl);

	return begin < hl->hl_limit ? (hl->hl_limit - begin) / 2 : 0;
}

uint64_t
heap_limit_most(const struct heap_limit *hl)
{
	uint64_t bytes = heap_limit_share(hl);

	return bytes > 0 && hl->hl_fd >= 0 ? heap_limit_own(hl) + bytes
					   : UINT64_MAX;
}

/*
 * Updates a level, which begins above `most` bytes and ends at `eighth` bytes less.  Returns true
 * if the level begins now.
 */
static bool
heap_limit_set(
    atomic_bool *level, uint64_t bytes, uint64_t most, uint64_t eighth)
{
	bool was = atomic_load_explicit(level, memory_order_relaxed);
	bool on = bytes > (was ? most - eighth : most);

	return !atomic_exchange(level, on) && on;
}

static bool
heap_limit_judge(struct heap_limit *hl, uint64_t bytes)
{
	uint64_t eighth = heap_limit_share(hl) / 8, most = heap_limit_most(hl);

	heap_limit_set(&hl->hl_high, bytes, most - 4 * eighth, eighth);
	return heap_limit_set(&hl->hl_short, bytes, most, eighth);
}

bool
heap_limit_look(struct heap_limit *hl, uint64_t now)
{
	int64_t bytes;

	if (hl->hl_fd < 0 || !period_begins(&hl->hl_next, now, HEAP_PERIOD_US))
		return false;
	bytes = os_anonymous(hl->hl_fd);
	if (bytes < 0)
		return false;
	atomic_store_explicit(
	    &hl->hl_bytes, (uint64_t)bytes, memory_order_relaxed);
	if (atomic_load_explicit(&hl->hl_base, memory_order_relaxed) == 0)
		atomic_store_explicit(&hl->hl_base, (uint64_t)bytes | LEAST,
		    memory_order_relaxed);
	return heap_limit_judge(hl, (uint64_t)bytes);
}
