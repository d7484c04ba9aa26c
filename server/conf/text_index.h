/*
 * text_index: finds a text among many, and the number that belongs to it.  The texts are the
 * operator's, so no client can make them collide.  Zero one before its first use.
 */
#ifndef SERVER_CONF_TEXT_INDEX_H
#define SERVER_CONF_TEXT_INDEX_H

#include <stdbool.h>
#include <stddef.h>

struct text_slot {
	const char *sl_text; /* NULL: empty */
	size_t sl_value;
};

struct text_index {
	struct text_slot *ti_slots;
	size_t ti_room; /* slots: a power of two, or 0 */
	size_t ti_count;
};

/* Keeps the pointer; the text is not in it yet.  0 or -ENOMEM. */
int text_index_add(struct text_index *, const char *text, size_t value);

/* Compares len bytes, without regard to case if nocase.  False: it is not in it. */
bool text_index_find(const struct text_index *, const char *text, size_t len,
    bool nocase, size_t *value);

void text_index_free(struct text_index *);

#endif
