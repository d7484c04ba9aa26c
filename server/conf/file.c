/*
 * file: the configuration file.  syntax.c reads all values first; file.c then sets them in the
 * order of conf_keys, so that the order of keys in the file does not matter.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/syntax.h"
#include "server/util/text_file.h"

struct conf_file {
	struct conf *cf_conf;
	char *cf_path;
	char *cf_dir; /* directory of the file; NULL is the cwd */
	struct syntax cf_syntax;
};

static void
conf_file_complain(const struct conf_file *file, int line, const char *key,
    const struct conf_why *why)
{
	conf_say(
	    file->cf_conf, file->cf_path, line, "%s: %s", key, why->why_text);
}

static int
file_parse(struct conf_file *file, char *text)
{
	struct conf_why why;
	int line;

	if (conf_text_strip(text, &line, &why) != 0) {
		conf_say(
		    file->cf_conf, file->cf_path, line, "%s", why.why_text);
		text[0] = '\0';
	}
	return syntax_read(
	    file->cf_conf, file->cf_path, text, &file->cf_syntax);
}

static const char *
conf_file_read_cause(int error)
{
	if (error == -EILSEQ)
		return "is not a text file: it contains a NUL byte";
	return text_file_cause(-error);
}

static int
file_name(struct conf_file *file, const char *path)
{
	const char *slash = strrchr(path, '/');

	file->cf_path = strdup(path);
	if (file->cf_path == NULL)
		return -ENOMEM;
	if (slash == NULL)
		return 0;
	file->cf_dir =
	    slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	return file->cf_dir != NULL ? 0 : -ENOMEM;
}

static int
file_unread(struct conf *conf, const char *path, int error)
{
	conf->conf_faults++;
	fprintf(stderr, "%spagewise: %s: %s\n", log_error_prefix(), path,
	    conf_file_read_cause(error));
	return error;
}

int
conf_file_open(struct conf *conf, const char *path, struct conf_file **out)
{
	struct conf_file *file = calloc(1, sizeof(*file));
	char *text = NULL;
	int error;

	*out = file;
	if (file == NULL)
		return file_unread(conf, path, -ENOMEM);
	file->cf_conf = conf;
	error = file_name(file, path);
	if (error == 0)
		error = conf_text_read(path, &text);
	if (error == 0)
		error = file_parse(file, text);
	free(text);
	return error == 0 ? 0 : file_unread(conf, path, error);
}

const char *
conf_file_dir(const struct conf_file *file)
{
	return file->cf_dir;
}

void
conf_file_close(struct conf_file **filep)
{
	struct conf_file *file = *filep;

	if (file == NULL)
		return;
	conf_keep_free(&file->cf_syntax.sy_memory);
	free(file->cf_path);
	free(file->cf_dir);
	free(file);
	*filep = NULL;
}

bool
conf_file_include(
    const struct conf_file *file, unsigned n, const char **text, int *line)
{
	const struct value *value = file->cf_syntax.sy_sections->sec_values;
	const struct key *include = conf_key("include");

	for (; value != NULL; value = value->val_next) {
		if (value->val_key != include || value->val_text == NULL ||
		    n-- > 0)
			continue;
		*text = value->val_text;
		*line = value->val_line;
		return true;
	}
	return false;
}

const char *
conf_file_path(const struct conf_file *file)
{
	return file->cf_path;
}

static void
conf_file_set(const struct conf_file *file, const struct value *value,
    struct conf_scope *scope)
{
	const char *name = value->val_key->key_name;
	struct conf_why why;

	if (value->val_text == NULL) {
		conf_key_clear(scope, name);
	} else {
		scope->cs_line = value->val_line;
		if (conf_key_set(scope, name, value->val_text, &why) != 0)
			conf_file_complain(file, scope->cs_line, name, &why);
	}
	conf_dump_value(scope, name, value->val_text);
}

static void
conf_file_each_key(const struct conf_file *file, const struct section *sec,
    struct conf_scope *scope)
{
	const struct value *value;

	for (const struct key *key = conf_keys; key->key_name != NULL; key++)
		for (value = sec->sec_values; value != NULL;
		     value = value->val_next)
			if (value->val_key == key)
				conf_file_set(file, value, scope);
}

void
conf_file_top(const struct conf_file *file, struct conf_scope *top)
{
	conf_file_each_key(file, file->cf_syntax.sy_sections, top);
}

/* Logs a fault of a section as a whole. */
static void
conf_file_complain_section(const struct conf_file *file,
    const struct section *sec, const struct conf_why *why)
{
	char key[256];

	snprintf(key, sizeof(key), "%s \"%s\"",
	    sec->sec_where == KEY_SITE ? "site" : "location", sec->sec_title);
	conf_file_complain(file, sec->sec_line, key, why);
}

static void
conf_file_read_location(const struct conf_file *file, const struct section *sec,
    const struct conf_scope *site)
{
	struct conf_scope scope = *site;
	struct location *loc;
	struct conf_why why;

	if (conf_location_add(site->cs_site, sec->sec_title, &loc, &why) != 0) {
		conf_file_complain_section(file, sec, &why);
		return;
	}
	loc->loc_place =
	    conf_place_text(site->cs_conf, conf_file_path(file), sec->sec_line);
	conf_glob_warn(
	    conf_file_path(file), sec->sec_line, "location", sec->sec_title);
	conf_dump_section(site->cs_conf, KEY_LOCATION, sec->sec_title);
	scope.cs_where = KEY_LOCATION;
	scope.cs_location = loc;
	scope.cs_set = &loc->loc_set;
	conf_file_each_key(file, sec, &scope);
}

/* Reads a site and the locations that follow it. */
static void
conf_file_read_site(const struct conf_file *file, const struct section *sec,
    const struct conf_scope *top)
{
	const struct section *loc = sec->sec_next;
	struct conf_scope scope = *top;
	struct conf_why why;
	struct site *site;

	if (conf_site_add(top, sec->sec_title, &site, &why) != 0) {
		conf_file_complain_section(file, sec, &why);
		return;
	}
	conf_dump_section(top->cs_conf, KEY_SITE, sec->sec_title);
	scope.cs_where = KEY_SITE;
	scope.cs_site = site;
	scope.cs_set = &site->site_set;
	conf_file_each_key(file, sec, &scope);
	/* A missing root is not reported after a fault, as the faulty line may have set root. */
	if (site->site_root == NULL && top->cs_conf->conf_faults == 0) {
		conf_why(&why, -EINVAL,
		    "root is missing: add root = \"DIR\" to this site");
		conf_file_complain_section(file, sec, &why);
	}
	for (; loc != NULL && loc->sec_where == KEY_LOCATION;
	     loc = loc->sec_next)
		conf_file_read_location(file, loc, &scope);
	if (conf_site_sort(site) != 0) {
		conf_no_memory(&why);
		conf_file_complain_section(file, sec, &why);
	}
}

void
conf_file_sites(const struct conf_file *file, const struct conf_scope *top)
{
	const struct section *sec = file->cf_syntax.sy_sections;

	for (; sec != NULL; sec = sec->sec_next)
		if (sec->sec_where == KEY_SITE)
			conf_file_read_site(file, sec, top);
}
