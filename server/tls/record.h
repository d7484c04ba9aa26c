/*
 * record: writes and reads records of TLS 1.2 and 1.3 (RFC 8446, 5.2; RFC 5246, 6.2; RFC 5288; RFC
 * 7905).  The server encrypts plaintext without copying it first, directly into the buffer from
 * which records are sent.  The server decrypts records of the client in place.
 *
 * OpenSSL would copy the plaintext before it encrypts, and the record after that.  For a large file
 * these copies are a seventh of the cost of a response.  OpenSSL's session would also use most of
 * the memory of a connection that waits (docs/results/idle.md).
 */
#ifndef SERVER_TLS_RECORD_H
#define SERVER_TLS_RECORD_H

#include "server/tls/record_key.h"

#define RECORD_HEADER	((size_t)5) /* bytes before the payload of a record */
#define RECORD_PLAIN	((size_t)16384) /* maximum plaintext of a record, bytes */
/* maximum number of bytes that a record adds to its plaintext */
#define RECORD_OVERHEAD ((size_t)32)
/* maximum length of a client's record, bytes: RFC 5246 */
#define RECORD_LONGEST	(RECORD_HEADER + RECORD_PLAIN + 2048)

/*
 * Writes one record of len <= RECORD_PLAIN bytes.  The buffer `to` must have len + RECORD_OVERHEAD
 * bytes, and must not overlap `data`.  Returns the length of the record, or 0 if the cipher failed;
 * then nothing more can be sent.
 */
size_t record_write(struct record_key *, unsigned char type, const void *data,
    size_t len, unsigned char *to);

/* Content of a record, in the record's memory. */
struct record_text {
	unsigned char rt_type;
	unsigned char *rt_data;
	size_t rt_len;
};

/*
 * Returns the length of the record that begins here, even if the record is incomplete, or 0 if its
 * header is incomplete.  A length above RECORD_LONGEST means that these bytes are no record.
 */
size_t record_length(const unsigned char *, size_t len);

/*
 * Decrypts a complete record.  Returns 0, or the number of the alert to send; then nothing more can
 * be read.
 */
int record_read(
    struct record_key *, unsigned char *, size_t len, struct record_text *);

#endif
