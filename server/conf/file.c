/*
 * file: the configuration file.  libConfuse only gets to keep texts with
 * the line that they stand on, section by section; what they mean is asked
 * afterwards, so that a key's place in the file does not matter and every
 * message has its line.
 */
#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/syntax.h"
#include "server/util/text_file.h"

struct conf_file {
	struct conf *cf_conf;
	char *cf_path;
	char *cf_dir;  /* of the file; NULL: the working directory */
	char *cf_text; /* without comments */
	struct syntax cf_syntax;
};

struct value {
	int val_line; /* of the section, from 1 */
	char val_text[];
};

/* What libConfuse reads: it has no place for either. */
static struct {
	const struct conf_file *pa_file;
	const struct section *pa_section;
} parsing;

static int
file_line(const struct section *sec, int line)
{
	return sec->sec_line - 1 + line;
}

static void
file_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	conf_vsay(parsing.pa_file->cf_conf, parsing.pa_file->cf_path,
	    file_line(parsing.pa_section, cfg->line), fmt, ap);
}

static void
conf_file_complain(const struct conf_file *file, int line, const char *key,
    const struct conf_why *why)
{
	conf_say(
	    file->cf_conf, file->cf_path, line, "%s: %s", key, why->why_text);
}

static int
conf_file_value_parse(
    cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	size_t size = strlen(text) + 1;
	struct value *value = malloc(sizeof(*value) + size);

	if (value == NULL) {
		cfg_error(cfg, "%s: %s", cfg_opt_name(opt), strerror(ENOMEM));
		return -1;
	}
	value->val_line = cfg->line;
	memcpy(value->val_text, text, size);
	*(struct value **)result = value;
	return 0;
}

static cfg_opt_t
conf_file_grammar_key(const struct key *key)
{
	cfg_opt_t one = CFG_PTR_CB(
	    key->key_name, NULL, CFGF_NODEFAULT, conf_file_value_parse, free);
	cfg_opt_t list = CFG_PTR_LIST_CB(
	    key->key_name, NULL, CFGF_NODEFAULT, conf_file_value_parse, free);

	return key->key_clear != NULL ? list : one;
}

/* Its title, and the keys that it may have. */
static cfg_t *
conf_file_grammar_section(unsigned where)
{
	const cfg_opt_t title = CFG_PTR_CB(SYNTAX_TITLE, NULL, CFGF_NODEFAULT,
			    conf_file_value_parse, free),
			end = CFG_END();
	cfg_opt_t opts[KEY_MAX + 2];
	size_t n = 0;

	opts[n++] = title;
	for (const struct key *key = conf_keys; key->key_name != NULL; key++) {
		if ((key->key_where & where) != 0)
			opts[n++] = conf_file_grammar_key(key);
	}
	opts[n] = end;
	return cfg_init(opts, CFGF_NONE);
}

/* Removes it from the text of the section around it. */
static void
conf_file_blank(struct section *sec)
{
	for (char *p = sec->sec_text; p < sec->sec_end; p++)
		if (*p != '\n')
			*p = ' ';
	*sec->sec_end = ' ';
}

/* A fault that is left, as a bad escape sequence, is logged: then the rest of the section is not read. */
static int
conf_file_parse_section(const struct conf_file *file, struct section *sec)
{
	char *text = sec->sec_text;
	FILE *fp;

	sec->sec_values = conf_file_grammar_section(sec->sec_where);
	if (sec->sec_values == NULL)
		return -ENOMEM;
	cfg_set_error_function(sec->sec_values, file_error);
	parsing.pa_file = file;
	parsing.pa_section = sec;
	*sec->sec_end = '\0';
	fp = text == sec->sec_end ? NULL : fmemopen(text, strlen(text), "r");
	if (fp == NULL)
		return text == sec->sec_end ? 0 : -errno;
	cfg_parse_fp(sec->sec_values, fp);
	fclose(fp);
	return 0;
}

/* The inner ones first. */
static int
conf_file_parse_sections(struct conf_file *file)
{
	struct syntax *sy = &file->cf_syntax;
	int error = 0;

	for (size_t i = sy->sy_count; error == 0 && i-- > 0;) {
		error = conf_file_parse_section(file, &sy->sy_sections[i]);
		if (i > 0)
			conf_file_blank(&sy->sy_sections[i]);
	}
	return error;
}

static int
file_parse(struct conf_file *file)
{
	struct conf_why why;
	int error, line;

	if (conf_text_strip(file->cf_text, &line, &why) != 0) {
		conf_say(
		    file->cf_conf, file->cf_path, line, "%s", why.why_text);
		file->cf_text[0] = '\0';
	}
	error = syntax_check(
	    file->cf_conf, file->cf_path, file->cf_text, &file->cf_syntax);
	return error != 0 ? error : conf_file_parse_sections(file);
}

static const char *
conf_file_read_cause(int error)
{
	if (error == -EILSEQ)
		return "is not text";
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
	int error;

	*out = file;
	if (file == NULL)
		return file_unread(conf, path, -ENOMEM);
	file->cf_conf = conf;
	error = file_name(file, path);
	if (error == 0)
		error = conf_text_read(path, &file->cf_text);
	if (error == 0)
		error = file_parse(file);
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
	for (size_t i = 0; i < file->cf_syntax.sy_count; i++)
		if (file->cf_syntax.sy_sections[i].sec_values != NULL)
			cfg_free(file->cf_syntax.sy_sections[i].sec_values);
	free(file->cf_syntax.sy_sections);
	free(file->cf_path);
	free(file->cf_dir);
	free(file->cf_text);
	free(file);
	*filep = NULL;
}

bool
conf_file_include(
    const struct conf_file *file, unsigned n, const char **text, int *line)
{
	const struct section *top = file->cf_syntax.sy_sections;
	cfg_opt_t *opt = cfg_getopt(top->sec_values, "include");
	const struct value *value =
	    n < cfg_opt_size(opt) ? cfg_opt_getnptr(opt, n) : NULL;

	if (value == NULL)
		return false;
	*text = value->val_text;
	*line = file_line(top, value->val_line);
	return true;
}

const char *
conf_file_path(const struct conf_file *file)
{
	return file->cf_path;
}

static void
conf_file_each_value(const struct conf_file *file, const struct section *sec,
    cfg_opt_t *opt, struct conf_scope *scope)
{
	struct conf_why why;

	for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
		const struct value *value = cfg_opt_getnptr(opt, i);

		scope->cs_line = file_line(sec, value->val_line);
		if (conf_key_set(scope, opt->name, value->val_text, &why) != 0)
			conf_file_complain(
			    file, scope->cs_line, opt->name, &why);
		conf_dump_value(scope, opt->name, value->val_text);
	}
}

/* Every key that the file has set: an empty list is set as well.  The first option is the title. */
static void
conf_file_each_key(const struct conf_file *file, const struct section *sec,
    struct conf_scope *scope)
{
	cfg_opt_t *opt = sec->sec_values->opts + 1;

	for (; opt->name != NULL; opt++) {
		if (!(opt->flags & CFGF_MODIFIED))
			continue;
		conf_key_clear(scope, opt->name);
		conf_dump_value(scope, opt->name, NULL);
		conf_file_each_value(file, sec, opt, scope);
	}
}

void
conf_file_top(const struct conf_file *file, struct conf_scope *top)
{
	conf_file_each_key(file, file->cf_syntax.sy_sections, top);
}

static const char *
conf_file_title_of(const struct section *sec)
{
	cfg_opt_t *opt = sec->sec_values->opts;
	const struct value *value =
	    cfg_opt_size(opt) > 0 ? cfg_opt_getnptr(opt, 0) : NULL;

	return value != NULL ? value->val_text : "";
}

/* A message about a section as a whole. */
static void
conf_file_complain_section(const struct conf_file *file,
    const struct section *sec, const struct conf_why *why)
{
	char key[256];

	snprintf(key, sizeof(key), "%s \"%s\"",
	    sec->sec_where == KEY_SITE ? "site" : "location",
	    conf_file_title_of(sec));
	conf_file_complain(file, sec->sec_line, key, why);
}

static void
conf_file_read_location(const struct conf_file *file, const struct section *sec,
    const struct conf_scope *site)
{
	struct conf_scope scope = *site;
	struct location *loc;
	struct conf_why why;

	if (conf_location_add(
		site->cs_site, conf_file_title_of(sec), &loc, &why) != 0) {
		conf_file_complain_section(file, sec, &why);
		return;
	}
	conf_dump_section(site->cs_conf, KEY_LOCATION, conf_file_title_of(sec));
	scope.cs_where = KEY_LOCATION;
	scope.cs_location = loc;
	scope.cs_set = &loc->loc_set;
	conf_file_each_key(file, sec, &scope);
}

/* n sections, of which all but the first are its locations. */
static void
conf_file_read_site(const struct conf_file *file, const struct section *sec,
    size_t n, const struct conf_scope *top)
{
	struct conf_scope scope = *top;
	struct conf_why why;
	struct site *site;

	if (conf_site_add(top, conf_file_title_of(sec), &site, &why) != 0) {
		conf_file_complain_section(file, sec, &why);
		return;
	}
	conf_dump_section(top->cs_conf, KEY_SITE, conf_file_title_of(sec));
	scope.cs_where = KEY_SITE;
	scope.cs_site = site;
	scope.cs_set = &site->site_set;
	conf_file_each_key(file, sec, &scope);
	/* It may have been in a line that has a fault. */
	if (site->site_root == NULL && top->cs_conf->conf_faults == 0) {
		conf_why(&why, -EINVAL, "no root: write root = \"DIR\" in it");
		conf_file_complain_section(file, sec, &why);
	}
	for (size_t i = 1; i < n; i++)
		conf_file_read_location(file, sec + i, &scope);
	if (conf_site_sort(site) != 0) {
		conf_no_memory(&why);
		conf_file_complain_section(file, sec, &why);
	}
}

void
conf_file_sites(const struct conf_file *file, const struct conf_scope *top)
{
	const struct section *secs = file->cf_syntax.sy_sections;
	size_t i, n, count = file->cf_syntax.sy_count;

	for (i = 1; i < count; i += n) {
		for (n = 1; i + n < count; n++)
			if (secs[i + n].sec_where == KEY_SITE)
				break;
		conf_file_read_site(file, secs + i, n, top);
	}
}
