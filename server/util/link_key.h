/*
 * link_key: reads the keys of signed links from a file with one key per line.  The first key signs;
 * all keys verify, so that links of an old key stay valid while it is being replaced.  Empty lines
 * and lines that begin with '#' are ignored.
 *
 * A key is the literal text of the line, LINK_KEY_LEAST to LINK_KEY_MOST visible ASCII characters,
 * as made by `openssl rand -hex 32'.
 */
#ifndef SERVER_UTIL_LINK_KEY_H
#define SERVER_UTIL_LINK_KEY_H

#include <stddef.h>

#define LINK_KEY_LEAST ((size_t)32)  /* minimum length of a key, bytes */
#define LINK_KEY_MOST  ((size_t)256) /* maximum length of a key, bytes */
#define LINK_KEYS      ((size_t)8)   /* maximum number of keys */

struct link_key {
	size_t lk_len;
	char lk_text[LINK_KEY_MOST];
};

struct link_keys {
	struct link_keys *lks_next; /* next keys, for the owner */
	size_t lks_count;	    /* at least one */
	struct link_key lks_list[LINK_KEYS];
};

/*
 * Reads the file.  On failure returns NULL, and writes the reason, the path and, if there is one,
 * the number of the line to `why`.
 */
struct link_keys *link_keys_load(const char *path, char *why, size_t size);

/* Wipes and frees the keys.  Returns lks_next. */
struct link_keys *link_keys_free(struct link_keys *);

#endif
