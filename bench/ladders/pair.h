/*
 * pair: a child that writes into a pipe and this process that reads from it,
 * each on a core of its own.
 */
#ifndef BENCH_LADDERS_PAIR_H
#define BENCH_LADDERS_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "huge.h"

struct plan {
	bool pl_vmsplice, pl_splice, pl_huge, pl_busy;
	bool pl_untouched; /* the writer never wrote to its pages */
};

struct job {
	size_t jb_size;	   /* of the buffer; vmsplice takes half at a time */
	size_t jb_pipe;	   /* asked for; then what the kernel granted */
	double jb_seconds; /* 0: until jb_limit */
	uint64_t jb_limit; /* bytes */
	bool jb_numbered;  /* each chunk holds numbers that go on */
	int jb_sink;	   /* spliced to; what is read is written, too ... */
	bool jb_keep;	   /* ... if this is set */
	int jb_cpus[2];	   /* writer, reader */
	enum page_kind jb_huge; /* the kind of pl_huge */
};

void pair_pin(int cpu);

/*
 * Bytes per second (0 without jb_seconds) and voluntary context switches of
 * both sides per byte; or -1 and why in pair_why().  jb_pipe becomes what the
 * kernel granted.  Exits if a byte was written that was not read.
 */
double pair_measure(const struct plan *, struct job *, double *switches);
const char *pair_why(void);

#endif
