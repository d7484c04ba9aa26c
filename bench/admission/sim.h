/*
 * sim: caches and their policies, simulated.  An item is a file or a piece of one; sizes are in
 * pages of 4 KiB.  A policy is told of each request for an item and says whether the item was
 * there; where it was not, the policy decides whether it stays.
 */
#ifndef BENCH_ADMISSION_SIM_H
#define BENCH_ADMISSION_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PAGE 4096
#define SIM_GIB	 ((uint64_t)1 << 30)

/* Files 0 to tr_files - 1, in pieces of tr_piece pages; the last one is smaller. */
struct catalogue {
	uint32_t ca_files;
	uint32_t ca_items;
	uint32_t *ca_pages; /* of each item */
	uint32_t *ca_first; /* item of each file; ca_files + 1 of them */
};

/* len pages of a file, from off. */
struct request {
	uint32_t rq_file;
	uint32_t rq_off;
	uint32_t rq_len;
};

struct trace {
	struct request *tr_requests;
	size_t tr_n;
	size_t tr_warm;	    /* of them, that are not counted */
	uint32_t *tr_sizes; /* pages of each file */
	uint32_t tr_files;
};

/* What a policy may know of the future: only Belady's asks. */
struct setting {
	const struct catalogue *se_catalogue;
	uint64_t se_room; /* pages */
	const uint32_t
	    *se_next; /* of each request of an item: the next one's number */
	double se_parameter;
};

struct policy {
	const char *po_name;
	const char *po_text;
	void *(*po_create)(const struct setting *);
	bool (*po_request)(void *, uint32_t item); /* true: it was there */
	void (*po_destroy)(void *);
	/* Around the items of one request, or NULL. */
	void (*po_begin)(void *, uint32_t file, uint32_t pages);
	void (*po_end)(void *, uint32_t file);
	double po_parameter;
	bool po_offline;
	bool po_ours;
};

extern const struct policy policies[];
extern const size_t policies_n;

/* Those written by hand are read from a file: a line is "FILE PAGES [OFF LEN]". */
struct trace *trace_read(const char *path);
struct trace *trace_make(const char *name, unsigned scale, uint64_t seed);
void trace_free(struct trace **);
uint32_t trace_piece(const char *name); /* pages */

void *sim_alloc(
    size_t n, size_t size); /* zeroed; ends the program without memory */

#endif
