/* autoindex_view: the format and the order that a client requests for a listing.  Pure. */
#ifndef SERVER_CONTENT_AUTOINDEX_VIEW_H
#define SERVER_CONTENT_AUTOINDEX_VIEW_H

#include <sys/types.h>
#include <time.h>

#include "server/http/digest.h"
#include "server/util/str.h"

enum view_sort { VIEW_NAME, VIEW_TIME, VIEW_SIZE };

/* View of a listing; all zero for HTML sorted by name. */
struct view {
	bool vw_json;
	bool vw_descending;
	enum view_sort vw_sort;
};

enum row_type { ROW_FILE, ROW_DIRECTORY, ROW_OTHER };

struct row {
	char *row_name;
	enum row_type row_type;
	bool row_known;	  /* true if row_size and row_mtime are valid */
	off_t row_size;	  /* size of a file in bytes, else 0 */
	time_t row_mtime; /* modification time, seconds since the epoch */
	/*
	 * newest st_ctim of the name and of its link's target, seconds since the epoch; 0 if
	 * unknown
	 */
	time_t row_changed;
	/* SHA-256 of a file in base64; empty if unknown */
	char row_digest[DIGEST_BASE64];
};

/* Returns the name that a query uses for this order, such as "time". */
const char *view_sort_name(enum view_sort);

/*
 * Parses "sort=name|time|size", "order=asc|desc" and "format=json|html" in the query.  If a member
 * is repeated, the last counts; other members are ignored.  Without a format, JSON is chosen if
 * Accept gives it a higher weight than HTML.  Either argument may be absent.
 */
struct view view_parse(struct str query, struct str accept);

bool view_same(struct view, struct view);

/*
 * Compares two rows.  Returns a negative number if the first row precedes the second in this view,
 * and 0 only for equal names.  Directories come first in both directions.  Rows without the
 * compared time or size come last.  Equal rows are sorted by name (natural.h).
 */
int view_compare(struct view, const struct row *, const struct row *);

#endif
