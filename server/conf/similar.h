/*
 * similar: finds the name that a misspelt word resembles most.  Pure.
 */
#ifndef SERVER_CONF_SIMILAR_H
#define SERVER_CONF_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* The best match so far.  Zero the structure before the first similar_offer. */
struct similar {
	const char *sim_name; /* NULL if no name is near enough */
	size_t sim_distance;
};

/*
 * Stores the pointer `name` if the edit distance of `name` to `text` (insertions, removals,
 * replacements) is smaller than that of the best name so far.  Accepts a distance of at most two,
 * and of at most a third of the length of `text`.
 */
void similar_offer(struct similar *, const char *text, const char *name);

#endif
