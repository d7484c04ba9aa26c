/*
 * digest: the SHA-256 of a file's content, as it is kept with the file and as it is sent
 * (Repr-Digest and Want-Repr-Digest, RFC 9530).  Pure: it hashes nothing.
 *
 * It is kept in the file's extended attribute DIGEST_ATTRIBUTE, in the namespace of users
 * ("user.pagewise.sha256" on Linux), as one line of text without its end:
 *
 *	HASH SIZE SECONDS.NANOSECONDS
 *
 * HASH has 64 digits, as sha256sum(1) prints them.  SIZE is that of the file, in bytes, and the
 * rest its modification time since 1970: whole seconds, which may be negative, and nine digits
 * that are added to them.  The digest is that of the file as long as both are the file's.
 */
#ifndef SERVER_HTTP_DIGEST_H
#define SERVER_HTTP_DIGEST_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "server/util/str.h"

#define DIGEST_ATTRIBUTE "pagewise.sha256"
#define DIGEST_HASH	 32	  /* bytes */
#define DIGEST_TEXT	 128	  /* bytes of the longest text, with a NUL */
#define DIGEST_BASE64	 (44 + 1) /* bytes of a hash in base64, with a NUL */

struct digest {
	uint8_t dg_hash[DIGEST_HASH];
	int64_t dg_size;
	struct timespec dg_mtime;
};

/* Returns the length of the text; a NUL is behind it. */
size_t digest_format(const struct digest *, char text[static DIGEST_TEXT]);

/* Exactly what digest_format writes; false: it is anything else. */
bool digest_parse(struct str text, struct digest *);

bool digest_is_of(
    const struct digest *, int64_t size, const struct timespec *mtime);

/* RFC 4648, 4, with padding. */
void digest_base64(
    const uint8_t hash[static DIGEST_HASH], char text[static DIGEST_BASE64]);

/*
 * Does a client with this Want-Repr-Digest, which may be absent, want a SHA-256?  Yes without
 * the field, or if it has sha-256 with 1 to 10; of several the last counts (RFC 8941, 3.2).
 */
bool digest_is_wanted(struct str want);

#endif
