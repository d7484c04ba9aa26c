/*
 * text_index: a hash table from texts to numbers.  The operator supplies the texts, so clients
 * cannot force collisions.  Zero an index before its first use.
 */
#ifndef SERVER_CONF_TEXT_INDEX_H
#define SERVER_CONF_TEXT_INDEX_H

#include <stdbool.h>
#include <stddef.h>

struct text_slot {
	const char *sl_text; /* NULL if the slot is empty */
	size_t sl_value;
};

struct text_index {
	struct text_slot *ti_slots;
	size_t ti_room; /* number of slots: a power of two, or 0 */
	size_t ti_count;
};

/* Adds a text that is not in the index.  Keeps the pointer.  Returns 0 or -ENOMEM. */
int text_index_add(struct text_index *, const char *text, size_t value);

/*
 * Looks up `len` bytes.  Ignores case if `nocase` is true.  Returns false if the text is not in the
 * index.
 */
bool text_index_find(const struct text_index *, const char *text, size_t len,
    bool nocase, size_t *value);

void text_index_free(struct text_index *);

#endif
