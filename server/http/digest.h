/*
 * digest: the SHA-256 of a file's content, as it is stored with the file and as it is sent
 * (Repr-Digest and Want-Repr-Digest, RFC 9530).  Pure: computes no hashes.
 *
 * The digest is stored in the file's extended attribute DIGEST_ATTRIBUTE, in the user namespace
 * ("user.pagewise.sha256" on Linux), as one line of text without a newline:
 *
 *	HASH SIZE SECONDS.NANOSECONDS
 *
 * HASH has 64 digits, as sha256sum(1) prints them.  SIZE is the size of the file in bytes.  SECONDS
 * and NANOSECONDS are its modification time since 1970: whole seconds, which may be negative, and
 * nine digits that are added to them.  The digest is valid as long as size and time match the file.
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

/* Writes the text and a NUL after it.  Returns the length of the text. */
size_t digest_format(const struct digest *, char text[static DIGEST_TEXT]);

/* Reads a text that digest_format wrote.  Returns false for any other text. */
bool digest_parse(struct str text, struct digest *);

bool digest_is_of(
    const struct digest *, int64_t size, const struct timespec *mtime);

/* Writes the hash in base64 with padding (RFC 4648, 4). */
void digest_base64(
    const uint8_t hash[static DIGEST_HASH], char text[static DIGEST_BASE64]);

/*
 * Returns true if the client wants a SHA-256.  That is so if Want-Repr-Digest is absent, or has
 * sha-256 with a weight from 1 to 10; the last of several such members counts (RFC 8941, 3.2).
 */
bool digest_is_wanted(struct str want);

#endif
