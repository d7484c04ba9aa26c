/*
 * link_key: see link_key.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/util/link_key.h"
#include "server/util/secret_file.h"

/*
 * Adds the key of a line.  Returns NULL on success and for empty lines and comments, else the
 * reason.
 */
static const char *
link_key_add(struct link_keys *lks, const char *line)
{
	size_t i, len = strlen(line);
	struct link_key *lk = &lks->lks_list[lks->lks_count];

	if (len == 0 || line[0] == '#')
		return NULL;
	for (i = 0; i < len; i++)
		if (line[i] <= ' ' || line[i] > '~')
			return "a key must be visible ASCII characters: create "
			       "one with openssl rand -hex 32";
	if (len < LINK_KEY_LEAST || len > LINK_KEY_MOST)
		return "a key must have 32 to 256 characters: create one with "
		       "openssl rand -hex 32";
	if (lks->lks_count == LINK_KEYS)
		return "more than 8 keys: remove the keys whose links have all "
		       "expired";
	memcpy(lk->lk_text, line, len);
	lk->lk_len = len;
	lks->lks_count++;
	return NULL;
}

struct link_keys *
link_keys_load(const char *path, char *why, size_t size)
{
	struct link_keys *lks = calloc(1, sizeof(*lks));
	struct secret_file sf;
	const char *line, *cause = NULL;
	unsigned n = 0;

	if (lks == NULL) {
		snprintf(why, size, "%s", strerror(ENOMEM));
		return NULL;
	}
	if (!secret_file_read(&sf, path, true, why, size)) {
		link_keys_free(lks);
		return NULL;
	}
	while (cause == NULL && (line = secret_file_line(&sf)) != NULL) {
		n++;
		cause = link_key_add(lks, line);
	}
	if (cause != NULL)
		snprintf(why, size, "%s:%u: %s", path, n, cause);
	else if (lks->lks_count == 0)
		snprintf(why, size,
		    "%s: has no key: create one with openssl rand -hex 32",
		    path);
	if (cause != NULL || lks->lks_count == 0) {
		link_keys_free(lks);
		lks = NULL;
	}
	secret_file_forget(&sf);
	return lks;
}

struct link_keys *
link_keys_free(struct link_keys *lks)
{
	struct link_keys *next = lks->lks_next;

	explicit_bzero(lks, sizeof(*lks));
	free(lks);
	return next;
}
