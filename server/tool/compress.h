/*
 * compress: compresses a file with zlib, brotli or zstd, as a stream.
 *
 * The output is decodable by all clients: gzip (RFC 1952) without name and time, so that the same
 * file gives the same bytes; brotli (RFC 7932) with windows up to 16 MiB; zstd with windows up to 8
 * MiB (RFC 9659).
 */
#ifndef SERVER_TOOL_COMPRESS_H
#define SERVER_TOOL_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/http/coding.h"

/* Range and default of a coding's compression levels. */
struct compress_levels {
	int cl_min, cl_max, cl_default;
};

/* Returns NULL if the build leaves the coding out (BROTLI=no, ZSTD=no). */
const struct compress_levels *compress_levels(enum coding);

/*
 * Compresses the first `size` bytes of the file `in` to the file `out`, and stores the number of
 * bytes written in *written.  Returns:
 *   0        success
 *   -E2BIG   the output is not smaller
 *   -ESTALE  the file is shorter than `size`
 *   -ECANCELED  stopped() returned true
 *   -ENOMEM, -EIO, -ENOSPC, ...
 */
int compress_file(enum coding, int level, int in, uint64_t size, int out,
    uint64_t *written, bool (*stopped)(void));

#endif
