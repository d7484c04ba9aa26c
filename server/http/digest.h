/*
 * digest: reads and writes the SHA-256 of a file's content, in a stored format and for the fields
 * Repr-Digest and Want-Repr-Digest (RFC 9530).  Pure: computes no hashes.
 *
 * The digest is stored in the file's extended attribute DIGEST_ATTRIBUTE, in the user namespace
 * ("user.pagewise.sha256" on Linux), as one line of text without a newline:
 *
 *	HASH SIZE SECONDS.NANOSECONDS
 *
 * HASH has 64 hexadecimal digits, as sha256sum(1) prints them.  SIZE is the size of the file in
 * bytes.  SECONDS, which may be negative, and NANOSECONDS, nine digits, add up to the modification
 * time of the file since 1970.  The digest is valid while the file has this size and this time.
 */
#ifndef SERVER_HTTP_DIGEST_H
#define SERVER_HTTP_DIGEST_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "server/util/str.h"

#define DIGEST_ATTRIBUTE "pagewise.sha256"
#define DIGEST_HASH	 32	  /* bytes of a hash */
#define DIGEST_TEXT	 128	  /* maximum bytes of the text, with a NUL */
#define DIGEST_BASE64	 (44 + 1) /* bytes of a hash in base64, with a NUL */

struct digest {
	uint8_t dg_hash[DIGEST_HASH];
	int64_t dg_size;
	struct timespec dg_mtime;
};

/* Writes the text and a NUL.  Returns the length of the text. */
size_t digest_format(const struct digest *, char text[static DIGEST_TEXT]);

/* Parses a text that digest_format wrote.  Returns false for any other text. */
bool digest_parse(struct str text, struct digest *);

bool digest_is_of(
    const struct digest *, int64_t size, const struct timespec *mtime);

/* Writes the hash in base64 with padding (RFC 4648, 4) and a NUL. */
void digest_base64(
    const uint8_t hash[static DIGEST_HASH], char text[static DIGEST_BASE64]);

/*
 * Returns true if the client wants a SHA-256: Want-Repr-Digest is absent, or lists sha-256 with a
 * weight from 1 to 10.  Of several weights for sha-256, the last one counts (RFC 8941, 3.2).
 */
bool digest_is_wanted(struct str want);

#endif
