/*
 * coding: content codings of precompressed files (RFC 9110, 8.4.1; RFC 7932 for br, RFC 8878 for
 * zstd), and the weights of these codings in Accept-Encoding.  Pure.
 */
#ifndef SERVER_HTTP_CODING_H
#define SERVER_HTTP_CODING_H

#include <stdbool.h>
#include <stdint.h>

#include "server/util/str.h"

enum coding { CODING_NONE, CODING_ZSTD, CODING_BR, CODING_GZIP };
#define CODINGS 3 /* number of codings, CODING_NONE excluded */

/*
 * coding_name returns the name of a coding in Content-Encoding.  coding_suffix returns the suffix
 * of its file names (".zst").  Both return an empty text for CODING_NONE.
 */
const char *coding_name(enum coding);
const char *coding_suffix(enum coding);

/* Returns the coding with this suffix, given without the dot, or CODING_NONE. */
enum coding coding_of_suffix(const char *);

/*
 * Returns the coding whose suffix the file name has, or CODING_NONE.  A name that is only a suffix
 * (".gz") has no coding.
 */
enum coding coding_of_name(const char *name);

/*
 * Returns the coding that the file format itself includes: gzip for a name in ".svgz" with the
 * media type of SVG, else CODING_NONE.
 */
enum coding coding_of_format(const char *name, const char *type);

/*
 * Returns the weights of all codings, packed into one number.  `accept_encoding` is the field
 * value, which may be absent.  A coding has weight 0 if the client does not accept it or prefers
 * the unencoded file.  Clients with the same number get the same responses.
 */
uint64_t coding_weights(struct str accept_encoding);

/* Returns false if the client refuses an unencoded file ("identity;q=0", or "*;q=0" alone). */
bool coding_takes_identity(struct str accept_encoding);

/* Returns the packed weights with every weight set to 0 except that of the coding. */
uint64_t coding_only(uint64_t weights, enum coding);

/* Returns the weight of one coding, 0 to 1000, from the packed weights. */
unsigned coding_weight(uint64_t weights, enum coding);

#endif
