/*
 * admission: decides which files may stay in the page cache, for cache = auto.
 *
 * Counts the requests of each file in a sketch of fixed size, as in TinyLFU
 * (Einziger, Friedman, Manes: "TinyLFU: A Highly Efficient Cache Admission
 * Policy", ACM Transactions on Storage 13, 2017): ADMISSION_ROWS rows of
 * ADMISSION_COLUMNS counters, 256 KiB in all.  Counts age: all counters are halved
 * when ADMISSION_SAMPLE times as many bytes were sent as memory may hold,
 * or after 4 times as many requests as there are columns.  The factor ADMISSION_SAMPLE is
 * twice that of the paper: with the paper's 16, a file that is just admitted has a count
 * of two or three, and such small counts are largely random.
 * (docs/admission.md has the figures.)
 *
 * TinyLFU compares a new file with the one that would be evicted for it.  The kernel does not
 * report which file that is.  So beside the sketch, admission keeps the sum of the sizes of the
 * files with each count.  From these sums it computes the lowest count for which all files with
 * this count or more fit into memory together.
 *
 * The threads of all loops call these functions.  A loop first notes a request in its own
 * struct pw_file.  The loop adds noted requests to the sketch at its next tick, or earlier
 * when ADMISSION_NOTED files are noted, one file has ADMISSION_MOST requests, or a function
 * below decides about the file.  So a loop sends resident data without writing to memory
 * that other threads write.  The lock is held for one file at a time, while about
 * ADMISSION_MOST requests at most are counted, and for 20 us more when all counters are
 * halved.
 */
#ifndef LIB_DISK_ADMISSION_H
#define LIB_DISK_ADMISSION_H

#include "lib/pagewise.h"

#define ADMISSION_ROWS	  4
#define ADMISSION_COLUMNS ((size_t)1 << 16)
#define ADMISSION_MOST	  31 /* maximum count of a file */
#define ADMISSION_SAMPLE  32
#define ADMISSION_NOTED	  64 /* maximum number of noted files */

struct admission;

/*
 * Creates the policy.  `room` is the number of bytes of files that memory may hold.  Returns NULL
 * if memory is short.
 */
struct admission *admission_create(uint64_t room);
void admission_destroy(struct admission **);

/* List of one loop's files with requests that are not counted yet.  All zeros at first. */
struct noted {
	struct pw_file *nt_first;
	unsigned nt_files;
};

/*
 * Notes that `len` bytes of the file were sent.  admission_tell counts them later, as one request
 * for each full length of the file.
 */
void admission_sent(
    struct admission *, struct noted *, struct pw_file *, off_t len);

/* Counts the requests of all noted files.  Call before one of them is freed. */
void admission_tell(struct admission *, struct noted *);

enum admission_verdict {
	ADMISSION_GOES, /* fetched pages are dropped after they were sent */
	/* fetched pages stay, but are read as small pages (send_fetch_how) */
	ADMISSION_TRIAL,
	ADMISSION_STAYS, /* fetched pages stay */
};

/*
 * Counts the noted requests of the file, and decides whether pages that are fetched of it may stay in the
 * page cache, once `len` more bytes, which are not noted, are sent.  Returns ADMISSION_GOES for every file of
 * more than a quarter of the `room` of admission_create.
 */
enum admission_verdict admission_judge(
    struct admission *, struct pw_file *, off_t len);

#endif
