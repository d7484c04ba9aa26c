/*
 * loop_profile: see loop_profile.h.
 */
#include <stdio.h>
#include <string.h>

#include "server/worker/loop_profile.h"

#define TOLD 1000 /* microseconds */

static const char *const names[LAPS] = {
    [LAP_ACCEPT] = "new connections",
    [LAP_EVENTS] = "requests",
    [LAP_TURNS] = "answers",
    [LAP_DONE] = "completions",
    [LAP_TIMERS] = "timers",
    [LAP_CONTROL] = "commands",
};

void
lap_change(struct laps *laps, enum lap kind, uint64_t now)
{
	if (laps->lap_kind == LAP_NONE)
		laps->lap_begin = now;
	else
		laps->lap_us[laps->lap_kind] += now - laps->lap_since;
	laps->lap_since = now;
	laps->lap_kind = kind;
}

uint64_t
lap_end(struct laps *laps, uint64_t now)
{
	lap_change(laps, laps->lap_kind, now);
	return now - laps->lap_begin;
}

static enum lap
longest(const struct laps *laps)
{
	enum lap most = LAP_ACCEPT, kind;

	for (kind = LAP_ACCEPT; kind < LAPS; kind++)
		if (laps->lap_us[kind] > laps->lap_us[most])
			most = kind;
	return most;
}

void
lap_text(const struct laps *laps, char *text, size_t size)
{
	size_t len = 0;
	int kind;

	text[0] = '\0';
	for (kind = LAP_NONE + 1; kind < LAPS && len < size; kind++)
		if (laps->lap_us[kind] >= TOLD)
			len += (size_t)snprintf(text + len, size - len,
			    "%s%s %llu ms (%u)", len > 0 ? ", " : "",
			    names[kind],
			    (unsigned long long)(laps->lap_us[kind] / 1000),
			    laps->lap_calls[kind]);
	if (len > 0)
		return;
	kind = longest(laps);
	snprintf(text, size, "%s 0.%llu ms (%u)", names[kind],
	    (unsigned long long)(laps->lap_us[kind] / 100),
	    laps->lap_calls[kind]);
}

void
lap_clear(struct laps *laps)
{
	memset(laps, 0, sizeof(*laps));
}
