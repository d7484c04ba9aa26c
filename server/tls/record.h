/*
 * record: records of TLS 1.2 and 1.3 (RFC 8446, 5.2; RFC 5246, 6.2; RFC 5288; RFC 7905): those of a
 * server are made of plaintext where it lies, into memory from which they are sent; those of
 * its client are decrypted where they lie.
 *
 * OpenSSL would copy the plaintext once before it encrypts and the record once after that,
 * which for a large file is a seventh of all that its answer costs, and its session would
 * take most of the memory of a connection that waits (docs/results.md, "Over TLS").
 */
#ifndef SERVER_TLS_RECORD_H
#define SERVER_TLS_RECORD_H

#include "server/tls/record_key.h"

#define RECORD_HEADER	((size_t)5)
#define RECORD_PLAIN	((size_t)16384) /* bytes of plaintext, at most */
#define RECORD_OVERHEAD ((size_t)32) /* bytes of a record besides it, at most */
#define RECORD_LONGEST \
	(RECORD_HEADER + RECORD_PLAIN + 2048) /* that may come: RFC 5246 */

/*
 * One record of len <= RECORD_PLAIN bytes; to has room for RECORD_OVERHEAD more, and is not data.
 * Its length, or 0: it failed, and nothing more can be sent.
 */
size_t record_write(struct record_key *, unsigned char type, const void *data,
    size_t len, unsigned char *to);

/* What was in a record, where the record lies. */
struct record_text {
	unsigned char rt_type;
	unsigned char *rt_data;
	size_t rt_len;
};

/*
 * The length of the record that begins here, also if it has not come as a whole; 0: nor has its
 * length.  More than RECORD_LONGEST: it is none.
 */
size_t record_length(const unsigned char *, size_t len);

/* A whole record.  0, or the number of the alert that it deserves: nothing more can be read. */
int record_read(
    struct record_key *, unsigned char *, size_t len, struct record_text *);

#endif
