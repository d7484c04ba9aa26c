/*
 * mime: see mime.h.
 */
#include "server/http/mime.h"
#include "server/util/text_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIME_TYPE_MAX 127	 /* maximum bytes of a media type */
#define MIME_FILE_MAX (4u << 20) /* maximum bytes of a table file */

static const char space[] = " \t\r\v\f";

/* Generated from conf/mime.types. */
extern const char mime_table[];

struct mime_entry {
	const char *me_ext;
	const char *me_type;
};

struct mime {
	char *mime_text;
	struct mime_entry *mime_entries;
	size_t mime_count;
	size_t mime_room;
};

static int
mime_add_entry(struct mime *m, const char *ext, const char *type)
{
	if (m->mime_count == m->mime_room) {
		size_t room = m->mime_room == 0 ? 256 : 2 * m->mime_room;
		struct mime_entry *e;

		e = reallocarray(m->mime_entries, room, sizeof(*e));
		if (e == NULL)
			return -ENOMEM;
		m->mime_entries = e;
		m->mime_room = room;
	}
	m->mime_entries[m->mime_count++] = (struct mime_entry){ext, type};
	return 0;
}

/*
 * Returns true if a response head can carry `type`: one line of visible ASCII with text on both
 * sides of '/'.
 */
bool
mime_type_valid(const char *type)
{
	size_t len = strcspn(type, "; ");
	const char *slash = memchr(type, '/', len);

	for (const char *p = type; *p != '\0'; p++)
		if ((*p < ' ' || *p >= 0x7f) || (*p == ' ' && p < type + len))
			return false;
	return slash != NULL && slash != type && slash + 1 < type + len &&
	       memchr(slash + 1, '/', len - (size_t)(slash + 1 - type)) ==
		   NULL &&
	       strlen(type) <= MIME_TYPE_MAX && type[len] != ' ' &&
	       type[strlen(type) - 1] != ';';
}

/*
 * Removes the type and its parameters (after ';') from the line.  Leaves one space after each ';'
 * and none before it.  Returns NULL if the line is empty.
 */
static char *
mime_take_type(char **line)
{
	char *type = *line + strspn(*line, space), *end, *rest;

	if (*type == '\0')
		return NULL;
	end = type + strcspn(type, space);
	rest = end + strspn(end, space);
	while (end[-1] == ';' || *rest == ';') {
		if (end[-1] != ';')
			*end++ = *rest++;
		rest += strspn(rest, space);
		if (*rest == '\0')
			break;
		if (end < rest)
			*end++ = ' ';
		while (*rest != '\0' && strchr(space, *rest) == NULL)
			*end++ = *rest++;
		rest += strspn(rest, space);
	}
	*line = rest;
	if (end == rest)
		*line = end; /* the line has no extensions */
	else
		*end = '\0';
	return type;
}

/* Parses a line.  Returns 0, or -errno with an error text in *what. */
static int
mime_parse_line(struct mime *m, char *line, const char **what)
{
	char *save, *type, *ext;

	line[strcspn(line, "#")] = '\0';
	type = mime_take_type(&line);
	if (type == NULL)
		return 0;
	if (!mime_type_valid(type)) {
		*what = "not a media type (type/subtype)";
		return -EINVAL;
	}
	for (; (ext = strtok_r(line, space, &save)) != NULL; line = NULL) {
		if (ext[0] == '.') {
			*what = "write the extension without its dot";
			return -EINVAL;
		}
		if (mime_add_entry(m, ext, type) != 0) {
			*what = strerror(ENOMEM);
			return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Compares extensions.  Equal extensions keep the order of the table, because their addresses have
 * that order.
 */
static int
mime_compare_entries(const void *a, const void *b)
{
	const struct mime_entry *x = a, *y = b;
	int order = strcasecmp(x->me_ext, y->me_ext);

	if (order != 0)
		return order;
	return (x->me_ext > y->me_ext) - (x->me_ext < y->me_ext);
}

static void
mime_sort_entries(struct mime *m)
{
	struct mime_entry *e = m->mime_entries;
	size_t kept = 0;

	if (m->mime_count == 0)
		return;
	qsort(e, m->mime_count, sizeof(*e), mime_compare_entries);
	for (size_t i = 1; i < m->mime_count; i++)
		if (strcasecmp(e[i].me_ext, e[kept].me_ext) != 0)
			e[++kept] = e[i];
	m->mime_count = kept + 1;
}

struct mime *
mime_parse(const char *text, const char *name, char *err, size_t errsize)
{
	struct mime *m = calloc(1, sizeof(*m));
	const char *what;
	unsigned number = 0;
	char *line, *next;

	if (m == NULL || (m->mime_text = strdup(text)) == NULL) {
		snprintf(err, errsize, "%s: %s", name, strerror(ENOMEM));
		goto fail;
	}
	for (next = m->mime_text; (line = strsep(&next, "\n")) != NULL;) {
		number++;
		if (mime_parse_line(m, line, &what) != 0) {
			snprintf(err, errsize, "%s:%u: %s", name, number, what);
			goto fail;
		}
	}
	mime_sort_entries(m);
	return m;
fail:
	mime_destroy(&m);
	return NULL;
}

/*
 * Reads the whole file into *text, which the caller must free.  Returns NULL on success, else an
 * error text.
 */
static const char *
mime_read_text(FILE *f, char **text)
{
	size_t size = 0, room = 0;
	char *p;

	do {
		room = room == 0 ? 16384 : 2 * room;
		if (room > MIME_FILE_MAX)
			return strerror(EFBIG);
		if ((p = realloc(*text, room)) == NULL)
			return strerror(ENOMEM);
		*text = p;
		size += fread(p + size, 1, room - 1 - size, f);
		if (ferror(f))
			return strerror(errno);
	} while (size == room - 1);
	p[size] = '\0';
	return strlen(p) == size ? NULL : "contains a NUL byte";
}

struct mime *
mime_load(const char *path, char *err, size_t errsize)
{
	struct mime *m = NULL;
	char *text = NULL;
	FILE *f = text_file_open(path);
	const char *what =
	    f != NULL ? mime_read_text(f, &text) : text_file_cause(errno);

	if (what != NULL)
		snprintf(err, errsize, "%s: %s", path, what);
	else
		m = mime_parse(text, path, err, errsize);
	free(text);
	if (f != NULL)
		fclose(f);
	return m;
}

struct mime *
mime_builtin(void)
{
	char err[128];

	return mime_parse(mime_table, "mime.types", err, sizeof(err));
}

static int
mime_compare_ext(const void *key, const void *entry)
{
	const struct mime_entry *e = entry;

	return strcasecmp(key, e->me_ext);
}

const char *
mime_type(const struct mime *m, const char *path, const char *other)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash != NULL ? slash + 1 : path;
	const char *dot = strrchr(base, '.');
	const struct mime_entry *e = NULL;

	if (dot != NULL && dot != base && m->mime_count > 0)
		e = bsearch(dot + 1, m->mime_entries, m->mime_count, sizeof(*e),
		    mime_compare_ext);
	return e != NULL ? e->me_type : other;
}

void
mime_destroy(struct mime **mp)
{
	struct mime *m = *mp;

	*mp = NULL;
	if (m == NULL)
		return;
	free(m->mime_entries);
	free(m->mime_text);
	free(m);
}
