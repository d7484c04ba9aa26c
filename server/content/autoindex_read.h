/*
 * autoindex_read: reads a directory into a page: as a whole and sorted, or block by block.
 * Waits for the disk, so on pool threads only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_READ_H
#define SERVER_CONTENT_AUTOINDEX_READ_H

#include <dirent.h>

#include "lib/pagewise.h"

#include "server/content/autoindex_validator.h"
#include "server/content/autoindex_view.h"
#include "server/util/buf.h"

/* Text of a page that comes as a whole: 3400 names of 16 bytes, about. */
#define AUTOINDEX_READ_WHOLE ((size_t)512 << 10)

/* A block ends behind the name that makes it that long; 64 KiB hold it. */
#define AUTOINDEX_READ_BLOCK ((size_t)60 << 10)

/*
 * A directory that is to be listed, as it was found.  A compressed sibling is not shown where
 * the name without its suffix is that of a file, or of a link, in the same directory.
 */
struct place {
	struct pw_root *pl_root;
	const char *pl_path;   /* below the root; ends in '/', or is "." */
	const char *pl_title;  /* the path as the client knows it */
	const char *pl_header; /* of the configuration, or NULL */
	bool pl_dotfiles; /* names that begin with a dot are shown, all ... */
	char *const
	    *pl_dotnames;     /* ... or these, of the configuration; or NULL */
	unsigned pl_siblings; /* not shown: bits 1 << enum coding */
	bool pl_digests;      /* those that files carry are in JSON */
	struct view pl_view;
	uint64_t pl_patience_us; /* for a slow disk, at most; 0: any */
	uint64_t pl_dev, pl_ino;
	struct timespec pl_mtime, pl_ctime;
};

/*
 * All of it, into an empty buffer, which the caller frees (free(3)), after an error as
 * well.  *same: it is the directory that was found.  -E2BIG: the text is longer than
 * AUTOINDEX_READ_WHOLE, or the disk took 5 s, or all patience.  The first has a validator if a
 * second is enough to look at all names; nothing else has one after an error.
 */
int autoindex_read_whole(
    const struct place *, struct buf *, bool *same, struct listing_validator *);

/* The caller closes it, where that may wait. */
int autoindex_read_open(const struct place *, DIR **);

/* What stands before the rows of a page, and behind them. */
void autoindex_read_begin(const struct place *, struct buf *, bool sorted);
void autoindex_read_end(const struct place *, struct buf *);

/*
 * Appends rows until the buffer holds AUTOINDEX_READ_BLOCK, or those that a second, or the
 * patience, has brought; at least one.  Of the place, neither title nor header.  first: no row
 * was before them.  *end: there are no more.
 */
int autoindex_read_block(
    DIR *, const struct place *, struct buf *, bool first, bool *end);

/* Empties a buffer and gives it memory for a block.  False: there is none. */
bool autoindex_read_room(struct buf *);

#endif
