/*
 * coding: content codings of files that were compressed beforehand (RFC 9110, 8.4.1; RFC 7932 for
 * br, RFC 8878 for zstd), and the client's weights for them.  Pure.
 */
#ifndef SERVER_HTTP_CODING_H
#define SERVER_HTTP_CODING_H

#include <stdbool.h>
#include <stdint.h>

#include "server/util/str.h"

enum coding { CODING_NONE, CODING_ZSTD, CODING_BR, CODING_GZIP };
#define CODINGS 3 /* without CODING_NONE */

/*
 * coding_name returns a coding's name in Content-Encoding, coding_suffix its suffix of file names
 * (".zst").  Both return an empty text for CODING_NONE.
 */
const char *coding_name(enum coding);
const char *coding_suffix(enum coding);

/* Returns the coding that has this suffix, written without its dot, or CODING_NONE. */
enum coding coding_of_suffix(const char *);

/*
 * Returns the coding of a file name by its suffix, or CODING_NONE.  A name that is only a suffix
 * (".gz") has no coding.
 */
enum coding coding_of_name(const char *name);

/*
 * Returns the coding that is part of the format of files with this name and media type: gzip if the
 * name ends in ".svgz" and the type is that of SVG, else CODING_NONE.
 */
enum coding coding_of_format(const char *name, const char *type);

/*
 * Returns the weights of all codings, packed into one number, from the value of Accept-Encoding,
 * which may be absent.  The weight of a coding is 0 if the client does not accept it, or prefers
 * the unencoded file.  Two clients with the same number get the same responses.
 */
uint64_t coding_weights(struct str accept_encoding);

/* Returns false if the client refuses the unencoded file (identity;q=0). */
bool coding_takes_identity(struct str accept_encoding);

/* Returns the weights with those of all other codings set to 0. */
uint64_t coding_only(uint64_t weights, enum coding);

/* Returns the weight of one coding, 0 to 1000, from the packed weights. */
unsigned coding_weight(uint64_t weights, enum coding);

#endif
