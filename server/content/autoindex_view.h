/*
 * autoindex_view: how a client wants a listing: its format and its order.  Pure.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_VIEW_H
#define SERVER_CONTENT_AUTOINDEX_VIEW_H

#include <sys/types.h>
#include <time.h>

#include "server/http/digest.h"
#include "server/util/str.h"

enum view_sort { VIEW_NAME, VIEW_TIME, VIEW_SIZE };

/* All zeros: as HTML, by name. */
struct view {
	bool vw_json;
	bool vw_descending;
	enum view_sort vw_sort;
};

enum row_type { ROW_FILE, ROW_DIRECTORY, ROW_OTHER };

/* A name in a directory. */
struct row {
	char *row_name;
	enum row_type row_type;
	bool row_known;	  /* the rest is */
	off_t row_size;	  /* of a file */
	time_t row_mtime; /* seconds since the epoch, as the next */
	time_t
	    row_changed; /* its newest change, or that of its link; 0: not known */
	char row_digest[DIGEST_BASE64]; /* of a file, or empty */
};

/* As in a request: "time". */
const char *view_sort_name(enum view_sort);

/*
 * Of "sort=name|time|size", "order=asc|desc" and "format=json|html" in the query the last one
 * of each counts; whatever else is in it is ignored.  Without a format the Accept field
 * decides: JSON, if it has more weight there than HTML.  Both may be absent.
 */
struct view view_parse(struct str query, struct str accept);

bool view_same(struct view, struct view);

/*
 * Less than 0 or more: which row comes first.  Directories, in either direction; what is not
 * known, last; what is otherwise the same, by name (natural.h).  Never 0 for two names.
 */
int view_compare(struct view, const struct row *, const struct row *);

#endif
