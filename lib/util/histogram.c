/*
 * histogram: adds times to a struct pw_histogram (pagewise.h), and copies it.
 */
#include "lib/pagewise.h"

/* Adds as counter_add does.  The fields have no atomic type, since C++ programs include pagewise.h. */
static void
histogram_add(uint64_t *counter, uint64_t n)
{
	uint64_t now = __atomic_load_n(counter, __ATOMIC_RELAXED);

	__atomic_store_n(counter, now + n, __ATOMIC_RELAXED);
}

static uint64_t
histogram_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void
pw_histogram_add(struct pw_histogram *hg, uint64_t us)
{
	size_t i = 0;

	while (i < PW_HISTOGRAM - 1 && us > (uint64_t)1 << i)
		i++;
	histogram_add(&hg->hg_count[i], 1);
	histogram_add(&hg->hg_sum, us);
}

void
pw_histogram_copy(struct pw_histogram *to, const struct pw_histogram *from)
{
	size_t i;

	for (i = 0; i < PW_HISTOGRAM; i++)
		to->hg_count[i] = histogram_get(&from->hg_count[i]);
	to->hg_sum = histogram_get(&from->hg_sum);
}
