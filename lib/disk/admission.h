/*
 * admission: decides which files keep a place in the page cache, for cache = auto.
 *
 * How often each file is asked for is counted in a sketch of fixed size, as in
 * TinyLFU (Einziger, Friedman, Manes: "TinyLFU: A Highly Efficient Cache Admission
 * Policy", ACM Transactions on Storage 13, 2017): ADMISSION_ROWS rows of
 * ADMISSION_COLUMNS counters, 256 KiB in all.  Counts age: after ADMISSION_SAMPLE times
 * as many bytes as memory may hold, or 4 times as many requests as there are columns,
 * all counters are halved.  That is twice the paper's: a file that has just earned its
 * place was requested two or three times within 16, and such small counts are largely
 * random.  (docs/design/admission-and-drop-behind.md has the figures.)
 *
 * TinyLFU compares a newcomer with what it would push out.  The kernel does not say
 * what that is; but beside the sketch we know how many bytes of files have been asked for
 * how often, and so how often a file must have been asked for, that all files which
 * have been as often fit into memory together.
 *
 * For the threads of all loops.  Requests are noted at the file first, which is its loop's
 * own, and added to the sketch a few times a second, or when there are many: so that
 * what is in memory is sent without writing anything that another thread writes.  The
 * lock is held for one file at a time, ADMISSION_MOST requests or so, and while counts
 * are halved for twenty microseconds more.
 */
#ifndef LIB_DISK_ADMISSION_H
#define LIB_DISK_ADMISSION_H

#include "lib/pagewise.h"

#define ADMISSION_ROWS	  4
#define ADMISSION_COLUMNS ((size_t)1 << 16)
#define ADMISSION_MOST	  31 /* requests that are counted of a file */
#define ADMISSION_SAMPLE  32
#define ADMISSION_NOTED	  64 /* files that a loop notes */

struct admission;

/* room is how many bytes of files memory may hold.  Returns NULL if memory is short. */
struct admission *admission_create(uint64_t room);
void admission_destroy(struct admission **);

/* Files of one loop with requests that are not counted yet.  Zeroed at first. */
struct noted {
	struct pw_file *nt_first;
	unsigned nt_files;
};

/*
 * len bytes of the file were requested: noted now, counted later, once for each full
 * length of the file.
 */
void admission_asked(
    struct admission *, struct noted *, struct pw_file *, off_t len);

/* Counts the requests of all noted files.  Call before one of them is freed. */
void admission_tell(struct admission *, struct noted *);

enum admission_verdict {
	ADMISSION_GOES,
	ADMISSION_TRIAL, /* stays, if the kernel does not take it for popular at once */
	ADMISSION_STAYS,
};

/*
 * Tells of the file, and what is to become of what has to be fetched of it.  A file of more
 * than a quarter of room always goes.
 */
enum admission_verdict admission_judge(struct admission *, struct pw_file *);

#endif
