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
#define CODINGS 3 /* but for CODING_NONE */

/* As Content-Encoding has it (CODING_NONE: empty), and at the end of a file's name: ".zst". */
const char *coding_name(enum coding);
const char *coding_suffix(enum coding);

/* Of such an end without its dot; CODING_NONE: there is none. */
enum coding coding_of_suffix(const char *);

/* Of a file's name that ends in one, behind at least one byte; else CODING_NONE. */
enum coding coding_of_name(const char *name);

/*
 * The coding that files of this name and media type have by their format: gzip, if the name ends
 * in ".svgz" and the type is SVG's.
 */
enum coding coding_of_format(const char *name, const char *type);

/*
 * How much a client wants each, from the value of Accept-Encoding, which may be absent.  A
 * coding has a weight of 0 if it is not wanted, or wanted less than the file as it is.  Two
 * clients with the same number get the same answers.
 */
uint64_t coding_weights(struct str accept_encoding);

/* False if the client refuses the file as it is (identity;q=0). */
bool coding_takes_identity(struct str accept_encoding);

/* The weights of a client that wants this coding as much, and no other. */
uint64_t coding_only(uint64_t weights, enum coding);

/* 0 to 1000. */
unsigned coding_weight(uint64_t weights, enum coding);

#endif
