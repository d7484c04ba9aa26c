/*
 * text_index: see text_index.h.  Open addressing; at most three quarters of the slots are used.
 */
#include "server/conf/text_index.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROOM 16

/* Returns the FNV-1a hash of the text in lower case. */
static size_t
text_index_hash(const char *text, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint64_t)tolower((unsigned char)text[i])) *
		    UINT64_C(0x100000001b3);
	return (size_t)(h ^ h >> 32);
}

static void
text_index_put(struct text_index *ti, const char *text, size_t value)
{
	size_t at = text_index_hash(text, strlen(text));

	while (ti->ti_slots[at &= ti->ti_room - 1].sl_text != NULL)
		at++;
	ti->ti_slots[at] = (struct text_slot){text, value};
	ti->ti_count++;
}

static int
text_index_grow(struct text_index *ti)
{
	struct text_index grown = {
	    .ti_room = ti->ti_room == 0 ? ROOM : 2 * ti->ti_room};

	grown.ti_slots = calloc(grown.ti_room, sizeof(*grown.ti_slots));
	if (grown.ti_slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < ti->ti_room; i++)
		if (ti->ti_slots[i].sl_text != NULL)
			text_index_put(&grown, ti->ti_slots[i].sl_text,
			    ti->ti_slots[i].sl_value);
	free(ti->ti_slots);
	*ti = grown;
	return 0;
}

int
text_index_add(struct text_index *ti, const char *text, size_t value)
{
	if (4 * (ti->ti_count + 1) > 3 * ti->ti_room &&
	    text_index_grow(ti) != 0)
		return -ENOMEM;
	text_index_put(ti, text, value);
	return 0;
}

bool
text_index_find(const struct text_index *ti, const char *text, size_t len,
    bool nocase, size_t *value)
{
	size_t at = text_index_hash(text, len);
	const struct text_slot *sl;

	if (ti->ti_room == 0)
		return false;
	for (;; at++) {
		sl = &ti->ti_slots[at & (ti->ti_room - 1)];
		if (sl->sl_text == NULL)
			return false;
		if ((nocase ? strncasecmp(sl->sl_text, text, len)
			    : strncmp(sl->sl_text, text, len)) == 0 &&
		    sl->sl_text[len] == '\0')
			break;
	}
	*value = sl->sl_value;
	return true;
}

void
text_index_free(struct text_index *ti)
{
	free(ti->ti_slots);
	*ti = (struct text_index){.ti_slots = NULL};
}
