/*
 * loop_profile: see loop_profile.h.
 */
#include <stdio.h>
#include <string.h>

#include "server/worker/loop_profile.h"

#define TOLD 1000 /* minimum duration of a phase to list it, microseconds */

static const char *const names[LOOP_PHASES] = {
    [LOOP_ACCEPT] = "new connections",
    [LOOP_EVENTS] = "requests",
    [LOOP_SLICES] = "responses",
    [LOOP_DONE] = "completions",
    [LOOP_TIMERS] = "timers",
    [LOOP_CONTROL] = "commands",
};

void
profile_change(struct loop_profile *laps, enum loop_phase kind, uint64_t now)
{
	if (laps->lap_kind == LOOP_NONE)
		laps->lap_begin = now;
	else
		laps->lap_us[laps->lap_kind] += now - laps->lap_since;
	laps->lap_since = now;
	laps->lap_kind = kind;
}

uint64_t
profile_end(struct loop_profile *laps, uint64_t now)
{
	profile_change(laps, laps->lap_kind, now);
	return now - laps->lap_begin;
}

static enum loop_phase
loop_profile_longest(const struct loop_profile *laps)
{
	enum loop_phase most = LOOP_ACCEPT, kind;

	for (kind = LOOP_ACCEPT; kind < LOOP_PHASES; kind++)
		if (laps->lap_us[kind] > laps->lap_us[most])
			most = kind;
	return most;
}

void
profile_text(const struct loop_profile *laps, char *text, size_t size)
{
	size_t len = 0;
	int kind;

	text[0] = '\0';
	for (kind = LOOP_NONE + 1; kind < LOOP_PHASES && len < size; kind++)
		if (laps->lap_us[kind] >= TOLD)
			len += (size_t)snprintf(text + len, size - len,
			    "%s%s %llu ms (%u)", len > 0 ? ", " : "",
			    names[kind],
			    (unsigned long long)(laps->lap_us[kind] / 1000),
			    laps->lap_calls[kind]);
	if (len > 0)
		return;
	kind = loop_profile_longest(laps);
	snprintf(text, size, "%s 0.%llu ms (%u)", names[kind],
	    (unsigned long long)(laps->lap_us[kind] / 100),
	    laps->lap_calls[kind]);
}

void
profile_clear(struct loop_profile *laps)
{
	memset(laps, 0, sizeof(*laps));
}
