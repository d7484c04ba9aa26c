/*
 * htpasswd: reads users and their password hashes from a file as htpasswd(1) writes it: "USER:HASH"
 * on each line.  Empty lines and lines that begin with '#' are ignored.
 *
 * Only hashes of crypt(5) that are slow by design are accepted: bcrypt ($2a$, $2b$, $2y$), SHA-512
 * ($6$), SHA-256 ($5$) and yescrypt ($y$), as far as the crypt(3) of this system supports them.
 * htpasswd_load refuses other hashes, and costs with which one password takes seconds.
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
	/* hash of the most frequent kind and cost */
	const char *ht_usual;
};

/* Working memory of one thread that verifies passwords. */
struct htpasswd_scratch;

/*
 * Reads the file.  On failure returns NULL, and writes the reason, the path and, if there is one,
 * the number of the line to `why`.
 */
struct htpasswd *htpasswd_load(const char *path, char *why, size_t size);

/* Wipes the hashes and frees the struct.  Returns ht_next. */
struct htpasswd *htpasswd_free(struct htpasswd *);

/* Returns memory that the caller releases with free(3), or NULL if memory is short. */
struct htpasswd_scratch *htpasswd_scratch_create(void);

/*
 * Returns 1 if this is the user's password, 0 if not, or -ENOMEM if memory was short (yescrypt
 * allocates).  Computes a hash, which may take a second, so never call it on a loop.  An unknown
 * user takes as long as a user with the hash ht_usual.
 */
int htpasswd_verify(const struct htpasswd *, const char *user,
    const char *password, struct htpasswd_scratch *);

#endif
