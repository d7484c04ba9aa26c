/*
 * htpasswd: users and the hashes of their passwords, from a file as htpasswd(1) writes it:
 * "USER:HASH" on each line; empty lines and those that begin with '#' are left out.
 *
 * Hashes are those of crypt(5) that are slow on purpose: bcrypt ($2a$, $2b$, $2y$), SHA-512 ($6$), SHA-256
 * ($5$) and yescrypt ($y$), as far as the crypt(3) of this system knows them.  All others are
 * refused when the file is read, and so are costs with which one password takes seconds.
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
	struct htpasswd *ht_next; /* the owner's */
	size_t ht_count;
	struct htpasswd_user *ht_users; /* by name */
	/* A hash of the kind and cost that most have. */
	const char *ht_usual;
};

/* Memory of a thread that verifies. */
struct htpasswd_scratch;

/* NULL: why, with the path and, if it is about one, the line. */
struct htpasswd *htpasswd_load(const char *path, char *why, size_t size);

/* Wipes it; returns ht_next. */
struct htpasswd *htpasswd_free(struct htpasswd *);

/* free(3) is its end.  NULL: no memory. */
struct htpasswd_scratch *htpasswd_scratch_create(void);

/*
 * 1: this is the user's password; 0: it is not; -ENOMEM: nobody knows (yescrypt allocates).  Takes the
 * time of a hash, up to a second: never on a loop.  A user that is not there takes as long
 * as one with ht_usual.
 */
int htpasswd_verify(const struct htpasswd *, const char *user,
    const char *password, struct htpasswd_scratch *);

#endif
