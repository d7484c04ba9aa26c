/*
 * autoindex_read: reads a directory into a page: as a whole and sorted, or block by block and
 * unsorted.  Reads the disk, so call it on disk threads only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_READ_H
#define SERVER_CONTENT_AUTOINDEX_READ_H

#include <dirent.h>

#include "lib/pagewise.h"

#include "server/content/autoindex_validator.h"
#include "server/content/autoindex_view.h"
#include "server/util/buf.h"

/* Limit in bytes of a page that is made as a whole: about 3400 names of 16 bytes. */
#define AUTOINDEX_READ_WHOLE ((size_t)512 << 10)

/* Length in bytes at which a block ends.  The last row may exceed it; a block fits in 64 KiB. */
#define AUTOINDEX_READ_BLOCK ((size_t)60 << 10)

/*
 * A directory to list, as the lookup found it.  The listing leaves out a compressed sibling if the
 * name without its suffix is a file, or a symbolic link, in the same directory.
 */
struct place {
	struct pw_root *pl_root;
	const char *pl_path;   /* path below the root; ends in '/', or is "." */
	const char *pl_title;  /* the path as the client knows it */
	const char *pl_header; /* name of the header file, or NULL */
	bool pl_dotfiles; /* true if all names with a leading dot are shown */
	char *const *pl_dotnames; /* dot names to show, or NULL */
	unsigned pl_siblings; /* bits (1 << enum coding) of siblings to omit */
	bool pl_digests; /* true if JSON has the digests that files carry */
	struct view pl_view;
	uint64_t pl_patience_us; /* limit of the reading time, or 0 for none */
	uint64_t pl_dev, pl_ino;
	struct timespec pl_mtime, pl_ctime;
};

/*
 * Writes the whole page into an empty buffer.  The caller frees the buffer with free(3), after an
 * error as well.  Sets *same to true if the path still names the directory that was looked up.
 * Fails with -E2BIG if the text is longer than AUTOINDEX_READ_WHOLE, or if reading takes longer
 * than 5 s or pl_patience_us.  The validator is complete (lv_whole) if only the rendering found the
 * page too long, and incomplete if not all rows were read.
 */
int autoindex_read_whole(
    const struct place *, struct buf *, bool *same, struct listing_validator *);

/* Opens the directory.  The caller closes it on a thread that may wait for the disk. */
int autoindex_read_open(const struct place *, DIR **);

/*
 * autoindex_read_begin appends the text before the rows of a page, autoindex_read_end the text
 * after them.
 */
void autoindex_read_begin(const struct place *, struct buf *, bool sorted);
void autoindex_read_end(const struct place *, struct buf *);

/*
 * Appends rows until the buffer holds AUTOINDEX_READ_BLOCK bytes, or until a second or
 * pl_patience_us has passed, but at least one row.  Does not use title and header of the place.
 * `first` is true if the listing has no row yet.  Sets *end to true if there are no more rows.
 * Returns 0 or -errno.
 */
int autoindex_read_block(
    DIR *, const struct place *, struct buf *, bool first, bool *end);

/* Empties a buffer and reserves memory for a block.  Returns false if memory is short. */
bool autoindex_read_room(struct buf *);

#endif
