/*
 * htpasswd: reads users and their password hashes from a file as htpasswd(1) writes it:
 * "USER:HASH" on each line; empty lines and lines that begin with '#' are ignored.
 *
 * The hashes are those of crypt(5) that are slow by design: bcrypt ($2a$, $2b$, $2y$), SHA-512
 * ($6$), SHA-256 ($5$) and yescrypt ($y$), as far as the crypt(3) of this system supports them.
 * Other hashes, and costs with which one password takes seconds, are refused when the file is read.
 */
#ifndef SERVER_UTIL_HTPASSWD_H
#define SERVER_UTIL_HTPASSWD_H

#include <stdbool.h>
#include <stddef.h>

struct htpasswd_user {
	char *hu_name;
	char *hu_hash;
};

struct htpasswd {
	struct htpasswd *ht_next; /* next file, for the owner */
	size_t ht_count;
	struct htpasswd_user *ht_users; /* sorted by name */
	/* Hash with the most frequent kind and cost. */
	const char *ht_usual;
};

/* Memory of a thread that verifies passwords. */
struct htpasswd_scratch;

/* Returns NULL on failure, with the reason, the path and the line, if any, in why. */
struct htpasswd *htpasswd_load(const char *path, char *why, size_t size);

/* Wipes the hashes and frees the struct.  Returns ht_next. */
struct htpasswd *htpasswd_free(struct htpasswd *);

/* Returns memory that the caller releases with free(3), or NULL if memory is short. */
struct htpasswd_scratch *htpasswd_scratch_create(void);

/*
 * Returns 1 if this is the user's password, 0 if not, or -ENOMEM if memory was short (yescrypt
 * allocates).  Takes the time of a hash, up to a second, so never call it on a loop.  An unknown user
 * takes as long as a user with the hash ht_usual.
 */
int htpasswd_verify(const struct htpasswd *, const char *user,
    const char *password, struct htpasswd_scratch *);

#endif
