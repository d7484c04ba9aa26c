/*
 * link_key: the keys of signed links, from a file: a key on each line, the one that signs first, so
 * that an old one stays good while it is being replaced.  Empty lines and those that begin with
 * '#' are left out.
 *
 * A key is the line's text as it is, LINK_KEY_LEAST to LINK_KEY_MOST visible ASCII characters,
 * as `openssl rand -hex 32' makes it.
 */
#ifndef SERVER_UTIL_LINK_KEY_H
#define SERVER_UTIL_LINK_KEY_H

#include <stddef.h>

#define LINK_KEY_LEAST ((size_t)32)
#define LINK_KEY_MOST  ((size_t)256)
#define LINK_KEYS      ((size_t)8)

struct link_key {
	size_t lk_len;
	char lk_text[LINK_KEY_MOST];
};

struct link_keys {
	struct link_keys *lks_next; /* the owner's */
	size_t lks_count;	    /* at least one */
	struct link_key lks_list[LINK_KEYS];
};

/* NULL: why, with the path and, if it is about one, the line. */
struct link_keys *link_keys_load(const char *path, char *why, size_t size);

/* Wipes them; returns lks_next. */
struct link_keys *link_keys_free(struct link_keys *);

#endif
