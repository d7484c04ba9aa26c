/*
 * similar: which name was meant.  Pure.
 */
#ifndef SERVER_CONF_SIMILAR_H
#define SERVER_CONF_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* The best of those that were offered so far; zero it first. */
struct similar {
	const char *sim_name; /* NULL: none is near enough */
	size_t sim_distance;
};

/*
 * Takes the name if fewer letters have to be inserted, removed or replaced than for the best
 * one: two at most, and no more than a third of the text's.  The name is kept.
 */
void similar_offer(struct similar *, const char *text, const char *name);

#endif
