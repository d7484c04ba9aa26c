/*
 * coding: content codings of files that were compressed beforehand (RFC 9110, 8.4.1; RFC 7932
 * for br, RFC 8878 for zstd), and which of them a client takes.  Pure.
 */
#ifndef SERVER_HTTP_CODING_H
#define SERVER_HTTP_CODING_H

#include <stdbool.h>
#include <stdint.h>

#include "server/util/str.h"

enum coding { CODING_NONE, CODING_ZSTD, CODING_BR, CODING_GZIP };
#define CODINGS 3 /* without CODING_NONE */

/*
 * Return the name for Content-Encoding and the suffix of file names (".zst"); CODING_NONE has empty
 * ones.
 */
const char *coding_name(enum coding);
const char *coding_suffix(enum coding);

/* Returns the coding of a suffix without its dot, or CODING_NONE if no coding has it. */
enum coding coding_of_suffix(const char *);

/* Returns the coding of a file name that has a suffix after at least one byte, else CODING_NONE. */
enum coding coding_of_name(const char *name);

/*
 * Returns the coding that is part of the format of files with this name and media type: gzip if the
 * name ends in ".svgz" and the type is that of SVG, else CODING_NONE.
 */
enum coding coding_of_format(const char *name, const char *type);

/*
 * Returns how much a client wants each coding, from the value of Accept-Encoding, which may be
 * absent.  A coding has a weight of 0 if the client does not want it, or prefers the unencoded
 * file.  Two clients with the same number get the same responses.
 */
uint64_t coding_weights(struct str accept_encoding);

/* Returns false if the client refuses the unencoded file (identity;q=0). */
bool coding_takes_identity(struct str accept_encoding);

/* Returns the weights of a client that gives this coding the same weight and accepts no other. */
uint64_t coding_only(uint64_t weights, enum coding);

/* Returns the weight of a coding, 0 to 1000. */
unsigned coding_weight(uint64_t weights, enum coding);

#endif
