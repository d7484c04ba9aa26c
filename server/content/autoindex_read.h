/*
 * autoindex_read: reads a directory into a page, either as a whole and sorted, or in blocks and
 * unsorted.  Reads the disk, so only disk threads may call these functions.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_READ_H
#define SERVER_CONTENT_AUTOINDEX_READ_H

#include <dirent.h>

#include "lib/pagewise.h"

#include "server/content/autoindex_validator.h"
#include "server/content/autoindex_view.h"
#include "server/util/buf.h"

/* Maximum bytes of a page that is made as a whole: about 3400 names of 16 bytes. */
#define AUTOINDEX_READ_WHOLE ((size_t)512 << 10)

/*
 * Length in bytes after which a block ends.  The last row may exceed this length, but a block fits
 * into 64 KiB.
 */
#define AUTOINDEX_READ_BLOCK ((size_t)60 << 10)

/*
 * Directory to list.  The listing omits a compressed sibling if the same directory has a file or a
 * symbolic link with the sibling's name without the suffix.
 */
struct place {
	struct pw_root *pl_root;
	const char *pl_path;   /* path below the root; ends in '/', or is "." */
	const char *pl_title;  /* path of the directory in the client's view */
	const char *pl_header; /* name of the header file, or NULL */
	bool pl_dotfiles;      /* true to show all names with a leading dot */
	/* names with a leading dot to show, NULL-terminated; NULL if none */
	char *const *pl_dotnames;
	unsigned pl_siblings; /* bits (1 << enum coding) of siblings to omit */
	bool pl_digests;      /* true to add stored digests to JSON */
	struct view pl_view;
	uint64_t pl_patience_us; /* maximum reading time, us; 0 if none */
	uint64_t pl_dev, pl_ino;
	struct timespec pl_mtime, pl_ctime;
};

/*
 * Writes the whole page into an empty buffer.  The caller must free the buffer with free(3), even
 * after an error.  Sets *same to true if the path still leads to the directory that was looked up.
 * Fails with -E2BIG if the text is longer than AUTOINDEX_READ_WHOLE, or if reading takes longer
 * than 5 s or pl_patience_us.  If all rows were read and only the text is too long, the validator
 * is complete (lv_whole), despite -E2BIG.
 */
int autoindex_read_whole(
    const struct place *, struct buf *, bool *same, struct listing_validator *);

/* Opens the directory.  The caller must close it on a thread that may wait for the disk. */
int autoindex_read_open(const struct place *, DIR **);

/*
 * autoindex_read_begin appends the text before the rows of a page.  autoindex_read_end appends the
 * text after the rows.
 */
void autoindex_read_begin(const struct place *, struct buf *, bool sorted);
void autoindex_read_end(const struct place *, struct buf *);

/*
 * Appends at least one row, until the buffer has AUTOINDEX_READ_BLOCK bytes, or a second or
 * pl_patience_us has passed.  Does not use the title and the header of the place.  `first` is true
 * if the listing has no row yet.  Sets *end to true if the directory has no more rows.  Returns 0
 * or -errno.
 */
int autoindex_read_block(
    DIR *, const struct place *, struct buf *, bool first, bool *end);

/* Empties a buffer, and reserves memory for a block.  Returns false if memory is short. */
bool autoindex_read_room(struct buf *);

#endif
