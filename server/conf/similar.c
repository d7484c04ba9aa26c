/*
 * similar: see similar.h.
 */
#include <string.h>

#include "server/conf/similar.h"

#define LONGEST 63 /* maximum length of a text to compare */
#define MOST	2

static size_t
similar_least(size_t a, size_t b, size_t c)
{
	size_t n = a < b ? a : b;

	return n < c ? n : c;
}

/* Returns the Levenshtein distance, computed row by row. */
static size_t
similar_distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t row[LONGEST + 1], i, j, before, above;

	for (j = 0; j <= m; j++)
		row[j] = j;
	for (i = 1; i <= n; i++) {
		before = row[0];
		row[0] = i;
		for (j = 1; j <= m; j++) {
			above = row[j];
			row[j] = similar_least(above + 1, row[j - 1] + 1,
			    before + (a[i - 1] != b[j - 1]));
			before = above;
		}
	}
	return row[m];
}

void
similar_offer(struct similar *sim, const char *text, const char *name)
{
	size_t n = strlen(text), m = strlen(name), d;

	if (n > LONGEST || m > LONGEST)
		return;
	d = similar_distance(text, n, name, m);
	if (d > MOST || 3 * d > n ||
	    (sim->sim_name != NULL && d >= sim->sim_distance))
		return;
	sim->sim_name = name;
	sim->sim_distance = d;
}
