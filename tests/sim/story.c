/*
 * story: the last events of a world in words, and the table of what all worlds have covered.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/world.h"

#define EVENTS_KEPT 200

struct shared *shared;
bool story_kept;

static char kept[EVENTS_KEPT][160];
static unsigned long nkept;

void
story(const char *format, ...)
{
	char *line = kept[nkept % EVENTS_KEPT];
	va_list args;
	int n;

	if (!story_kept)
		return;
	n = snprintf(line, sizeof(kept[0]), "%10.6f %-9s ",
	    (double)world_now / 1e9 - 1000, task_name(world_me));
	va_start(args, format);
	vsnprintf(line + n, sizeof(kept[0]) - (size_t)n, format, args);
	va_end(args);
	nkept++;
}

void
story_print(void)
{
	unsigned long i = nkept > EVENTS_KEPT ? nkept - EVENTS_KEPT : 0;

	if (!story_kept)
		return;
	printf("   seconds thread    what happened (the last %d events)\n",
	    EVENTS_KEPT);
	for (; i < nkept; i++)
		printf("%s\n", kept[i % EVENTS_KEPT]);
	tasks_print();
	fflush(stdout);
}

void
world_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(shared->sh_why, sizeof(shared->sh_why), format, args);
	va_end(args);
	story("FAILED: %s", shared->sh_why);
	story_print();
	_exit(1);
}

/* Counts a row of the table.  A full table leaves out later rows. */
static void
cover_count(const char *name)
{
	unsigned i;

	for (i = 0; i < shared->sh_rows; i++)
		if (strcmp(shared->sh_cover[i].cr_name, name) == 0)
			break;
	if (i == COVER_ROWS)
		return;
	if (i == shared->sh_rows) {
		snprintf(shared->sh_cover[i].cr_name,
		    sizeof(shared->sh_cover[i].cr_name), "%s", name);
		shared->sh_rows++;
	}
	shared->sh_cover[i].cr_count++;
}

void
covered(const char *format, ...)
{
	char name[40];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	cover_count(name);
}

void
covered_calls(const char *before, const char *after)
{
	covered("reclaim  %s > %s", before, after);
}

static int
cover_compare(const void *a, const void *b)
{
	return strcmp(((const struct cover_row *)a)->cr_name,
	    ((const struct cover_row *)b)->cr_name);
}

void
cover_print(void)
{
	unsigned i;

	qsort(shared->sh_cover, shared->sh_rows, sizeof(shared->sh_cover[0]),
	    cover_compare);
	for (i = 0; i < shared->sh_rows; i++)
		printf("%-38s %12llu%s", shared->sh_cover[i].cr_name,
		    (unsigned long long)shared->sh_cover[i].cr_count,
		    i % 2 == 0 && i + 1 < shared->sh_rows ? "   " : "\n");
}
