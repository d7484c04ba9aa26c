/*
 * similar: which name was meant.  Pure.
 */
#ifndef SERVER_CONF_SIMILAR_H
#define SERVER_CONF_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* The best match offered so far.  The caller zeroes it first. */
struct similar {
	const char *sim_name; /* NULL if no name is near enough */
	size_t sim_distance;
};

/*
 * Keeps a pointer to the name if it has a smaller edit distance (insertions, removals,
 * replacements) than the best one so far.  Accepts a distance of at most two, and of at most a
 * third of the text's length.
 */
void similar_offer(struct similar *, const char *text, const char *name);

#endif
