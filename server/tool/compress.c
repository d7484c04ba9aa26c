/*
 * compress: see compress.h.  Each coding has a row of functions; the rest of the code is common.
 */
#include "server/tool/compress.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#ifndef NO_ZSTD
#include <zstd.h>
#endif

#ifndef NO_BROTLI
/* brotli's prototypes declare array lengths, which -Wvla refuses. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvla"
#include <brotli/encode.h>
#pragma GCC diagnostic pop
#endif

#define BLOCK	    ((size_t)64 << 10) /* bytes per read and write */
#define ZSTD_WINDOW 23		       /* log2 of bytes: RFC 9659 */
#define ZSTD_SMALL  19	      /* highest level that uses no larger window */
#define GZIP_WINDOW (15 + 16) /* largest window, plus a gzip header */
#define GZIP_MEMORY 9	      /* maximum memory level of zlib */

/* Input that is not encoded yet, and free output space. */
struct step {
	const uint8_t *st_in;
	size_t st_in_len;
	uint8_t *st_out;
	size_t st_room;
	bool st_last; /* true if no more input follows */
};

struct codec {
	struct compress_levels co_levels;
	/* Creates an encoder for a file of `size` bytes.  Returns NULL if memory is short. */
	void *(*co_create)(int level, uint64_t size);
	/*
	 * Encodes the step's input into its output space.  Returns false on failure.  Sets *done
	 * once all output of the last step is written.
	 */
	bool (*co_step)(void *, struct step *, bool *done);
	void (*co_destroy)(void *);
};

static void *
tool_compress_gzip_create(int level, uint64_t size)
{
	z_stream *z = calloc(1, sizeof(*z));

	(void)size;
	if (z != NULL && deflateInit2(z, level, Z_DEFLATED, GZIP_WINDOW,
			     GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(z);
		return NULL;
	}
	return z;
}

static bool
tool_compress_gzip_step(void *arg, struct step *st, bool *done)
{
	z_stream *z = arg;
	int result;

	z->next_in = (Bytef *)(uintptr_t)st->st_in;
	z->avail_in = (uInt)st->st_in_len;
	z->next_out = st->st_out;
	z->avail_out = (uInt)st->st_room;
	result = deflate(z, st->st_last ? Z_FINISH : Z_NO_FLUSH);
	st->st_in = z->next_in;
	st->st_in_len = z->avail_in;
	st->st_out = z->next_out;
	st->st_room = z->avail_out;
	*done = result == Z_STREAM_END;
	return result == Z_OK || result == Z_STREAM_END ||
	       result == Z_BUF_ERROR;
}

static void
tool_compress_gzip_destroy(void *arg)
{
	deflateEnd(arg);
	free(arg);
}

#ifndef NO_BROTLI

/* Limits the window to the file's size, as a larger window only costs memory. */
static void *
tool_compress_br_create(int level, uint64_t size)
{
	BrotliEncoderState *b = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	uint32_t window = BROTLI_MIN_WINDOW_BITS;

	if (b == NULL)
		return NULL;
	while (window < BROTLI_MAX_WINDOW_BITS && (uint64_t)1 << window < size)
		window++;
	BrotliEncoderSetParameter(b, BROTLI_PARAM_QUALITY, (uint32_t)level);
	BrotliEncoderSetParameter(b, BROTLI_PARAM_LGWIN, window);
	BrotliEncoderSetParameter(b, BROTLI_PARAM_SIZE_HINT,
	    size > UINT32_MAX ? UINT32_MAX : (uint32_t)size);
	return b;
}

static bool
tool_compress_br_step(void *arg, struct step *st, bool *done)
{
	bool ok = BrotliEncoderCompressStream(arg,
	    st->st_last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS,
	    &st->st_in_len, &st->st_in, &st->st_room, &st->st_out, NULL);

	*done = BrotliEncoderIsFinished(arg);
	return ok;
}

static void
tool_compress_br_destroy(void *arg)
{
	BrotliEncoderDestroyInstance(arg);
}

#endif
#ifndef NO_ZSTD

static void *
tool_compress_zst_create(int level, uint64_t size)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();

	if (z == NULL)
		return NULL;
	ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setPledgedSrcSize(z, size);
	/* Higher levels would use larger windows for large files. */
	if (level > ZSTD_SMALL && size > (uint64_t)1 << ZSTD_WINDOW)
		ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, ZSTD_WINDOW);
	return z;
}

static bool
tool_compress_zst_step(void *arg, struct step *st, bool *done)
{
	ZSTD_inBuffer in = {st->st_in, st->st_in_len, 0};
	ZSTD_outBuffer out = {st->st_out, st->st_room, 0};
	size_t left = ZSTD_compressStream2(
	    arg, &out, &in, st->st_last ? ZSTD_e_end : ZSTD_e_continue);

	st->st_in += in.pos;
	st->st_in_len -= in.pos;
	st->st_out += out.pos;
	st->st_room -= out.pos;
	*done = st->st_last && left == 0;
	return !ZSTD_isError(left);
}

static void
tool_compress_zst_destroy(void *arg)
{
	ZSTD_freeCCtx(arg);
}

#endif

/* The row of a coding that is left out is empty. */
static const struct codec codecs[] = {
#ifndef NO_ZSTD
    [CODING_ZSTD] = {{1, 22, 19}, tool_compress_zst_create,
	tool_compress_zst_step, tool_compress_zst_destroy},
#endif
#ifndef NO_BROTLI
    [CODING_BR] = {{0, 11, 11}, tool_compress_br_create, tool_compress_br_step,
	tool_compress_br_destroy},
#endif
    [CODING_GZIP] = {{1, 9, 9}, tool_compress_gzip_create,
	tool_compress_gzip_step, tool_compress_gzip_destroy},
};

const struct compress_levels *
compress_levels(enum coding coding)
{
	return codecs[coding].co_create == NULL ? NULL
						: &codecs[coding].co_levels;
}

struct run {
	const struct codec *ru_codec;
	void *ru_state;
	int ru_in, ru_out;
	uint64_t ru_size, ru_read, ru_written;
	bool ru_done;
	uint8_t ru_inbuf[BLOCK];
	uint8_t ru_outbuf[BLOCK];
};

static int
tool_compress_write_all(int fd, const uint8_t *p, size_t len)
{
	ssize_t n;

	for (; len > 0; p += n, len -= (size_t)n) {
		n = write(fd, p, len);
		if (n == -1 && errno != EINTR)
			return -errno;
		if (n == -1)
			n = 0;
	}
	return 0;
}

/* Reads the next block of the file.  Returns 0 or -errno. */
static int
tool_compress_read_block(struct run *ru, struct step *st)
{
	uint64_t left = ru->ru_size - ru->ru_read;
	size_t want = left < BLOCK ? (size_t)left : BLOCK;
	ssize_t n = pread(ru->ru_in, ru->ru_inbuf, want, (off_t)ru->ru_read);

	if (n == -1)
		return errno == EINTR ? 0 : -errno;
	if (n == 0 && want > 0)
		return -ESTALE;
	ru->ru_read += (uint64_t)n;
	st->st_in = ru->ru_inbuf;
	st->st_in_len = (size_t)n;
	st->st_last = ru->ru_read == ru->ru_size;
	return 0;
}

/*
 * Compresses a block until its input is consumed or, if it is the last block, until all output is
 * written.  Returns 0 or -errno.
 */
static int
compress_block(struct run *ru, struct step *st)
{
	size_t len;
	int error;

	do {
		st->st_out = ru->ru_outbuf;
		st->st_room = BLOCK;
		if (!ru->ru_codec->co_step(ru->ru_state, st, &ru->ru_done))
			return -ENOMEM;
		len = BLOCK - st->st_room;
		ru->ru_written += len;
		if (ru->ru_written >= ru->ru_size)
			return -E2BIG;
		error = tool_compress_write_all(ru->ru_out, ru->ru_outbuf, len);
		if (error != 0)
			return error;
	} while (!ru->ru_done &&
		 (st->st_in_len > 0 || st->st_last || st->st_room == 0));
	return 0;
}

static int
compress_all(struct run *ru, bool (*stopped)(void))
{
	struct step st = {0};
	int error = 0;

	while (error == 0 && !ru->ru_done) {
		if (stopped())
			return -ECANCELED;
		error = tool_compress_read_block(ru, &st);
		if (error == 0)
			error = compress_block(ru, &st);
	}
	return error;
}

int
compress_file(enum coding coding, int level, int in, uint64_t size, int out,
    uint64_t *written, bool (*stopped)(void))
{
	struct run *ru = calloc(1, sizeof(*ru));
	int error;

	if (ru == NULL)
		return -ENOMEM;
	ru->ru_codec = &codecs[coding];
	ru->ru_in = in;
	ru->ru_out = out;
	ru->ru_size = size;
	ru->ru_state = ru->ru_codec->co_create(level, size);
	error = ru->ru_state == NULL ? -ENOMEM : compress_all(ru, stopped);
	*written = ru->ru_written;
	if (ru->ru_state != NULL)
		ru->ru_codec->co_destroy(ru->ru_state);
	free(ru);
	return error;
}
