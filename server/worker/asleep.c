/*
 * asleep: see asleep.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/asleep.h"

static uint64_t
asleep_sum(const struct pw_sleep *list, size_t n)
{
	uint64_t us = 0;
	size_t i;

	for (i = 0; i < n; i++)
		us += list[i].sl_us;
	return us;
}

static int
asleep_longer(const void *a, const void *b)
{
	const struct pw_sleep *one = a, *other = b;

	return (one->sl_us < other->sl_us) - (one->sl_us > other->sl_us);
}

/* Stores in as_more the sleep of each kind since the last message, the longest first. */
static void
asleep_take(struct asleep *as, const struct pw_sleep *list, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		as->as_more[i] = list[i];
		as->as_more[i].sl_times -= as->as_last[i].sl_times;
		as->as_more[i].sl_us -= as->as_last[i].sl_us;
		as->as_last[i] = list[i];
	}
	as->as_n = n;
	qsort(as->as_more, n, sizeof(as->as_more[0]), asleep_longer);
}

uint64_t
asleep_look(
    struct asleep *as, const struct pw_sleep *list, size_t n, uint64_t now_us)
{
	uint64_t us = asleep_sum(list, n);

	if (us - as->as_seen >= ASLEEP_LEAST)
		as->as_due = true;
	as->as_seen = us;
	if (!as->as_due || !message_rate_due(&as->as_rate, now_us))
		return 0;
	as->as_due = false;
	asleep_take(as, list, n);
	return asleep_sum(as->as_more, n);
}

void
asleep_text(const struct asleep *as, char *text, size_t size)
{
	size_t len = 0, i;

	text[0] = '\0';
	for (i = 0; i < as->as_n && len < size; i++)
		if (as->as_more[i].sl_times > 0)
			len += (size_t)snprintf(text + len, size - len,
			    "%s%s %llu.%llu ms (%llu)", len > 0 ? ", " : "",
			    as->as_more[i].sl_call,
			    (unsigned long long)(as->as_more[i].sl_us / 1000),
			    (unsigned long long)(as->as_more[i].sl_us / 100 %
						 10),
			    (unsigned long long)as->as_more[i].sl_times);
}
