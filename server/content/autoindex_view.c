/*
 * autoindex_view: see autoindex_view.h.
 */
#include "server/content/autoindex_view.h"

#include "server/http/accept.h"
#include "server/util/natural.h"

static const char *const sort_names[] = {
    [VIEW_NAME] = "name",
    [VIEW_TIME] = "time",
    [VIEW_SIZE] = "size",
};

#define SORTS (sizeof(sort_names) / sizeof(sort_names[0]))

const char *
view_sort_name(enum view_sort sort)
{
	return sort_names[sort];
}

static bool
autoindex_view_is(struct str s, const char *text)
{
	return str_eq(s, (struct str){text, strlen(text)});
}

static void
autoindex_view_set(struct view *vw, struct str member)
{
	unsigned i;

	if (autoindex_view_is(member, "format=json") ||
	    autoindex_view_is(member, "format=html"))
		vw->vw_json = autoindex_view_is(member, "format=json");
	else if (autoindex_view_is(member, "order=asc") ||
		 autoindex_view_is(member, "order=desc"))
		vw->vw_descending = autoindex_view_is(member, "order=desc");
	else if (str_skip(&member, STR("sort=")))
		for (i = 0; i < SORTS; i++)
			if (autoindex_view_is(member, sort_names[i]))
				vw->vw_sort = i;
}

/* Returns true if Accept prefers JSON.  A client that accepts neither JSON nor HTML gets HTML. */
static bool
autoindex_view_prefers_json(struct str accept)
{
	int json = accept_weight(accept, STR("application/json"));
	int html = accept_weight(accept, STR("text/html"));

	return json > ACCEPT_NOT && json > html;
}

struct view
view_parse(struct str query, struct str accept)
{
	struct view vw = {.vw_json = autoindex_view_prefers_json(accept)};
	struct str member;
	const char *end;

	while (query.s_ptr != NULL) {
		member = query;
		end = memchr(query.s_ptr, '&', query.s_len);
		if (end != NULL)
			member.s_len = (size_t)(end - query.s_ptr);
		query.s_ptr = end == NULL ? NULL : end + 1;
		query.s_len -= end == NULL ? 0 : member.s_len + 1;
		autoindex_view_set(&vw, member);
	}
	return vw;
}

bool
view_same(struct view a, struct view b)
{
	return a.vw_json == b.vw_json && a.vw_sort == b.vw_sort &&
	       a.vw_descending == b.vw_descending;
}

/* Compares two known rows by time or by size.  Directories have no size. */
static int
autoindex_view_compare_key(
    enum view_sort sort, const struct row *a, const struct row *b)
{
	if (sort == VIEW_TIME)
		return (a->row_mtime > b->row_mtime) -
		       (a->row_mtime < b->row_mtime);
	if (a->row_type == ROW_DIRECTORY)
		return 0;
	return (a->row_size > b->row_size) - (a->row_size < b->row_size);
}

int
view_compare(struct view vw, const struct row *a, const struct row *b)
{
	bool adir = a->row_type == ROW_DIRECTORY;
	int by = 0;

	if (adir != (b->row_type == ROW_DIRECTORY))
		return adir ? -1 : 1;
	if (vw.vw_sort == VIEW_NAME)
		by = natural_compare(a->row_name, b->row_name);
	else if (a->row_known != b->row_known)
		return a->row_known ? -1 : 1;
	else if (a->row_known)
		by = autoindex_view_compare_key(vw.vw_sort, a, b);
	if (by == 0)
		return natural_compare(a->row_name, b->row_name);
	return vw.vw_descending ? -by : by;
}
