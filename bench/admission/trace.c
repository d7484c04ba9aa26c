/*
 * trace: requests of a week, drawn with a fixed seed.  docs/admission.md says where each number
 * comes from.
 *
 * Each kind of content has a catalogue whose ranks are asked for by Zipf's law.  Which file has a
 * rank changes: each day a share of all ranks gets a new file, at any time.  And one half of the
 * catalogue is asked for by day, the other by night.
 */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/admission/sim.h"

#define DAYS   7
#define PARTS  3
#define HALVES 2
#define TIDE   0.4 /* 0.5 +- TIDE of the requests are for one half */
#define LEAST  1   /* page */
#define MOST   (SIM_GIB / SIM_PAGE)
#define WARM   4 /* the first quarter is not counted */

struct kind {
	const char *ki_name;
	double ki_share;  /* of the requests */
	double ki_zipf;	  /* exponent */
	double ki_fresh;  /* ranks that get a new file, a day */
	double ki_median; /* KiB */
	double ki_sigma;  /* of the size's logarithm */
	double ki_ranges; /* requests for a part of a file */
	uint32_t ki_ranks;
};

struct mix {
	const char *mi_name;
	size_t mi_requests;
	uint32_t mi_piece; /* pages */
	struct kind mi_kinds[PARTS];
};

#define PHOTO(share, ranks)                                 \
	{                                                   \
		"photo", share, 0.9, 0.1, 15, 0.9, 0, ranks \
	}
#define MEDIA(share, ranks)                                  \
	{                                                    \
		"media", share, 1.0, 0.1, 50, 1.75, 0, ranks \
	}
#define VIDEO(share, ranks)                                     \
	{                                                       \
		"video", share, 0.8, 0.1, 4096, 1.8, 0.3, ranks \
	}

static const struct mix mixes[] = {
    {"photo", 2000000, 256, {PHOTO(1, 300000)}},
    {"media", 1500000, 64, {MEDIA(1, 24000)}},
    {"video", 100000, 256, {VIDEO(1, 26000)}},
    {"mix", 1000000, 256,
	{PHOTO(0.60, 90000), MEDIA(0.35, 6000), VIDEO(0.05, 14000)}},
};

/* One kind's ranks. */
struct ranks {
	const struct kind *ra_kind;
	double *
	    ra_until; /* of each rank of a half: share of it and those before */
	uint32_t *ra_files[HALVES];
	uint32_t ra_n; /* of a half */
};

struct maker {
	struct trace *ma_trace;
	uint64_t ma_random;
	struct ranks ma_ranks[PARTS];
	uint32_t ma_room; /* for files */
};

static uint64_t
next(struct maker *ma)
{
	uint64_t x = ma->ma_random += 0x9e3779b97f4a7c15U;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
	x = (x ^ x >> 27) * 0x94d049bb133111ebU;
	return x ^ x >> 31;
}

/* Below 1. */
static double
chance(struct maker *ma)
{
	return (double)(next(ma) >> 11) / (double)(UINT64_C(1) << 53);
}

/* Log-normal. */
static uint32_t
draw_size(struct maker *ma, const struct kind *ki)
{
	double u = chance(ma), v = chance(ma), pages;

	pages = ki->ki_median * 1024 / SIM_PAGE *
		exp(ki->ki_sigma * sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v));
	if (pages < LEAST)
		return LEAST;
	return pages > (double)MOST ? (uint32_t)MOST : (uint32_t)ceil(pages);
}

static uint32_t
new_file(struct maker *ma, const struct kind *ki)
{
	struct trace *tr = ma->ma_trace;

	if (tr->tr_files == ma->ma_room) {
		ma->ma_room = ma->ma_room * 2 + 1024;
		tr->tr_sizes =
		    realloc(tr->tr_sizes, ma->ma_room * sizeof(*tr->tr_sizes));
		if (tr->tr_sizes == NULL)
			err(1, NULL);
	}
	tr->tr_sizes[tr->tr_files] = draw_size(ma, ki);
	return tr->tr_files++;
}

static void
ranks_init(
    struct maker *ma, struct ranks *ra, const struct kind *ki, unsigned scale)
{
	double sum = 0;
	uint32_t i, h;

	ra->ra_kind = ki;
	ra->ra_n = ki->ki_ranks / scale / HALVES + 1;
	ra->ra_until = sim_alloc(ra->ra_n, sizeof(double));
	for (i = 0; i < ra->ra_n; i++)
		ra->ra_until[i] = sum += pow(i + 1, -ki->ki_zipf);
	for (i = 0; i < ra->ra_n; i++)
		ra->ra_until[i] /= sum;
	for (h = 0; h < HALVES; h++) {
		ra->ra_files[h] = sim_alloc(ra->ra_n, sizeof(uint32_t));
		for (i = 0; i < ra->ra_n; i++)
			ra->ra_files[h][i] = new_file(ma, ki);
	}
}

static uint32_t
draw_rank(struct maker *ma, const struct ranks *ra)
{
	double u = chance(ma);
	uint32_t low = 0, high = ra->ra_n - 1, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (ra->ra_until[middle] > u)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* A range is of 8 MiB on the average. */
static struct request
draw_request(struct maker *ma, const struct ranks *ra, double now)
{
	double half = 0.5 + TIDE * sin(2 * M_PI * DAYS * now);
	uint32_t file, size;
	struct request rq;

	file = ra->ra_files[chance(ma) < half][draw_rank(ma, ra)];
	size = ma->ma_trace->tr_sizes[file];
	rq = (struct request){file, 0, size};
	if (ra->ra_kind->ki_ranges > 0 && chance(ma) < ra->ra_kind->ki_ranges) {
		rq.rq_off = (uint32_t)(chance(ma) * size);
		rq.rq_len = (uint32_t)ceil(-2048 * log(1 - chance(ma)) + 1e-9);
		if (rq.rq_len > size - rq.rq_off)
			rq.rq_len = size - rq.rq_off;
	}
	return rq;
}

/* Some ranks get a new file, in the time of one request. */
static void
renew(struct maker *ma, struct ranks *ra, double part)
{
	double due = ra->ra_kind->ki_fresh * ra->ra_n * HALVES * DAYS * part;
	uint64_t where;

	for (; due > 0; due--)
		if (due >= 1 || chance(ma) < due) {
			where = next(ma);
			ra->ra_files[where % HALVES][(where >> 8) % ra->ra_n] =
			    new_file(ma, ra->ra_kind);
		}
}

static void
fill(struct maker *ma, const struct mix *mi)
{
	struct trace *tr = ma->ma_trace;
	double u;
	size_t i, part, p;

	for (i = 0; i < tr->tr_n; i++) {
		u = chance(ma);
		for (part = 0;
		     part < PARTS - 1 && u >= mi->mi_kinds[part].ki_share;
		     part++)
			u -= mi->mi_kinds[part].ki_share;
		for (p = 0; p < PARTS; p++)
			if (ma->ma_ranks[p].ra_kind != NULL)
				renew(ma, &ma->ma_ranks[p],
				    1.0 / (double)tr->tr_n);
		if (ma->ma_ranks[part].ra_kind == NULL)
			part = 0;
		tr->tr_requests[i] = draw_request(
		    ma, &ma->ma_ranks[part], (double)i / (double)tr->tr_n);
	}
}

static const struct mix *
find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++)
		if (strcmp(mixes[i].mi_name, name) == 0)
			return &mixes[i];
	errx(2, "%s: no such trace", name);
}

struct trace *
trace_make(const char *name, unsigned scale, uint64_t seed)
{
	const struct mix *mi = find(name);
	struct maker ma = {.ma_random = seed};
	size_t p, h;

	ma.ma_trace = sim_alloc(1, sizeof(*ma.ma_trace));
	ma.ma_trace->tr_n = mi->mi_requests / scale;
	ma.ma_trace->tr_warm = ma.ma_trace->tr_n / WARM;
	ma.ma_trace->tr_requests =
	    sim_alloc(ma.ma_trace->tr_n, sizeof(struct request));
	for (p = 0; p < PARTS; p++)
		if (mi->mi_kinds[p].ki_name != NULL)
			ranks_init(
			    &ma, &ma.ma_ranks[p], &mi->mi_kinds[p], scale);
	fill(&ma, mi);
	for (p = 0; p < PARTS; p++) {
		free(ma.ma_ranks[p].ra_until);
		for (h = 0; h < HALVES; h++)
			free(ma.ma_ranks[p].ra_files[h]);
	}
	return ma.ma_trace;
}

uint32_t
trace_piece(const char *name)
{
	return find(name)->mi_piece;
}

/* A file's size is that of its first line. */
struct trace *
trace_read(const char *path)
{
	struct trace *tr = sim_alloc(1, sizeof(*tr));
	FILE *f = fopen(path, "re");
	uint32_t file, size, off, len;
	char line[128];
	int n;

	if (f == NULL)
		err(1, "%s", path);
	tr->tr_requests = sim_alloc(1 << 16, sizeof(struct request));
	tr->tr_sizes = sim_alloc(1 << 16, sizeof(uint32_t));
	while (tr->tr_n < 1 << 16 && fgets(line, sizeof(line), f) != NULL) {
		n = sscanf(line, "%u %u %u %u", &file, &size, &off, &len);
		if ((n != 2 && n != 4) || file >= 1 << 16 || size == 0)
			errx(2, "%s: FILE PAGES [OFF LEN], not %s", path, line);
		if (tr->tr_sizes[file] == 0)
			tr->tr_sizes[file] = size;
		if (file >= tr->tr_files)
			tr->tr_files = file + 1;
		size = tr->tr_sizes[file];
		if (n == 2) {
			off = 0;
			len = size;
		}
		if (len == 0 || off >= size || len > size - off)
			errx(2, "%s: not a part of %u pages: %s", path, size,
			    line);
		tr->tr_requests[tr->tr_n++] = (struct request){file, off, len};
	}
	fclose(f);
	return tr;
}

void
trace_free(struct trace **trp)
{
	free((*trp)->tr_requests);
	free((*trp)->tr_sizes);
	free(*trp);
	*trp = NULL;
}
