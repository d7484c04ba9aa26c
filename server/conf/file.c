/*
 * file: the configuration file.  libConfuse only gets to keep texts with
 * the line that they stand on; what they mean is asked afterwards, so that a
 * key's place in the file does not matter and every message has its line.
 */
#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/util/text_file.h"

struct conf_file {
	char *cf_path;
	char *cf_dir;  /* of the file; NULL: the working directory */
	char *cf_text; /* without comments */
	cfg_t *cf_cfg;
};

struct value {
	int val_line;
	char val_text[];
};

/* libConfuse's words for what is wrong, and ours: KEY: cause. */
static const struct {
	const char *ph_theirs;
	const char *ph_ours;
} phrases[] = {
    {"no sub-section title/index for '%s'", "%s: unknown key"},
    {"missing equal sign after option '%s'", "%s: '=' is missing"},
    {"missing opening brace for section '%s'", "%s: '{' is missing"},
    {"missing title for section '%s'", "%s: the name is missing"},
    {"found duplicate title '%s'", "%s: is already defined"},
    {"unexpected token '%s'",
	"%s: not expected here; a comma before it, or quotes, may be missing"},
    {"attempt to append to non-list option '%s'", "%s: is not a list"},
};

static unsigned
section_of(const cfg_t *cfg)
{
	if (strcmp(cfg->name, "location") == 0)
		return KEY_LOCATION;
	return strcmp(cfg->name, "site") == 0 ? KEY_SITE : KEY_TOP;
}

/* A key that this section does not know may be at home in another one. */
static void
unknown_key(const cfg_t *cfg, const char *key)
{
	const char *place = conf_key_place(key, section_of(cfg));
	const char *like = conf_key_like(key);

	if (place != NULL)
		conf_say(cfg->filename, cfg->line, "%s: %s", key, place);
	else if (like != NULL)
		conf_say(cfg->filename, cfg->line,
		    "%s: unknown key; did you mean %s?", key, like);
	else
		conf_say(cfg->filename, cfg->line, "%s: unknown key", key);
}

/* libConfuse says nothing of an empty key, as of a variable that is not set. */
static bool told;

static void
file_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	told = true;
	if (strcmp(fmt, "no such option '%s'") == 0) {
		unknown_key(cfg, va_arg(ap, const char *));
		return;
	}
	for (size_t i = 0; i < sizeof(phrases) / sizeof(*phrases); i++) {
		if (strcmp(phrases[i].ph_theirs, fmt) == 0)
			fmt = phrases[i].ph_ours;
	}
	conf_vsay(cfg->filename, cfg->line, fmt, ap);
}

static int
complain(const struct conf_file *file, int line, const char *key,
    const struct conf_why *why)
{
	conf_say(file->cf_path, line, "%s: %s", key, why->why_text);
	return -EINVAL;
}

static int
value_parse(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
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

#define SECTION(name, opts) \
	CFG_SEC(name, opts, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES)

/*
 * libConfuse forgets where a section began.  It parses defaults at that point,
 * so a section's first option has one, and its value keeps the line.
 */
#define OPENED CFG_PTR_CB("|", here, CFGF_NONE, value_parse, free)

static cfg_opt_t
grammar_key(const struct key *key)
{
	cfg_opt_t one =
	    CFG_PTR_CB(key->key_name, NULL, CFGF_NODEFAULT, value_parse, free);
	cfg_opt_t list = CFG_PTR_LIST_CB(
	    key->key_name, NULL, CFGF_NODEFAULT, value_parse, free);

	return key->key_clear != NULL ? list : one;
}

/* first: an option that is no key; inner: a section, or an end. */
static void
grammar_section(
    cfg_opt_t *opts, unsigned where, const cfg_opt_t *first, cfg_opt_t inner)
{
	size_t n = 0;

	if (first != NULL)
		opts[n++] = *first;
	for (const struct key *key = conf_keys; key->key_name != NULL; key++) {
		if ((key->key_where & where) != 0)
			opts[n++] = grammar_key(key);
	}
	opts[n++] = inner;
	opts[n] = (cfg_opt_t)CFG_END();
}

static cfg_t *
file_grammar(void)
{
	static char here[] = "here";
	const cfg_opt_t opened = OPENED, end = CFG_END();
	cfg_opt_t location[KEY_MAX + 2], site[KEY_MAX + 2], top[KEY_MAX + 2];
	cfg_opt_t locations = SECTION("location", location);
	cfg_opt_t sites = SECTION("site", site);

	grammar_section(location, KEY_LOCATION, &opened, end);
	grammar_section(site, KEY_SITE, &opened, locations);
	grammar_section(top, KEY_TOP, NULL, sites);
	return cfg_init(top, CFGF_NONE);
}

static int
opened_at(const cfg_t *section)
{
	const struct value *value = cfg_opt_getnptr(&section->opts[0], 0);

	return value != NULL ? value->val_line : section->line;
}

/* As far as libConfuse has come: a section that has an error keeps the line. */
static int
last_line(cfg_t *cfg)
{
	int line = cfg->line, inner;
	unsigned n;

	for (cfg_opt_t *opt = cfg->opts; opt->name != NULL; opt++) {
		n = opt->type == CFGT_SEC ? cfg_opt_size(opt) : 0;
		inner = n > 0 ? last_line(cfg_opt_getnsec(opt, n - 1)) : 0;
		if (inner > line)
			line = inner;
	}
	return line;
}

static int
file_parse(struct conf_file *file, char *text)
{
	FILE *fp;
	int error;

	file->cf_cfg = file_grammar();
	if (file->cf_cfg == NULL)
		return -ENOMEM;
	cfg_set_error_function(file->cf_cfg, file_error);
	file->cf_cfg->filename = strdup(file->cf_path);
	if (file->cf_cfg->filename == NULL)
		return -ENOMEM;
	fp = fmemopen(text, strlen(text), "r");
	if (fp == NULL)
		return -errno;
	told = false;
	error = cfg_parse_fp(file->cf_cfg, fp) == CFG_SUCCESS ? 0 : -EINVAL;
	fclose(fp);
	if (error != 0 && !told)
		conf_say(file->cf_path, last_line(file->cf_cfg), "%s",
		    "\"\": unknown key");
	return error;
}

/* A key that is wrong in a block without an end is often why it has none: tell both. */
static void
parse_closed(struct conf_file *file, unsigned open)
{
	size_t len = strlen(file->cf_text);
	char *closed = malloc(len + open + 2);

	if (closed == NULL)
		return;
	memcpy(closed, file->cf_text, len);
	memset(closed + len, '}', open);
	memcpy(closed + len + open, "\n", 2);
	file_parse(file, closed);
	free(closed);
}

static int
file_strip(struct conf_file *file)
{
	unsigned open;
	int error, line;
	struct conf_why why;

	error = conf_text_strip(file->cf_text, &line, &open, &why);
	if (error == 0)
		return 0;
	conf_say(file->cf_path, line, "%s", why.why_text);
	if (open > 0)
		parse_closed(file, open);
	return error;
}

static const char *
read_cause(int error)
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
file_unread(const char *path, int error)
{
	fprintf(stderr, "%spagewise: %s: %s\n", log_error_prefix(), path,
	    read_cause(error));
	return error;
}

int
conf_file_open(const char *path, struct conf_file **out)
{
	struct conf_file *file = calloc(1, sizeof(*file));
	int error = -ENOMEM;

	*out = file;
	if (file != NULL)
		error = file_name(file, path);
	if (error == 0)
		error = conf_text_read(path, &file->cf_text);
	if (error != 0)
		return file_unread(path, error);
	error = file_strip(file);
	if (error == 0)
		error = file_parse(file, file->cf_text);
	/* What is wrong with the text has been told. */
	return error == 0 || error == -EINVAL ? error
					      : file_unread(path, error);
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
	if (file->cf_cfg != NULL)
		cfg_free(file->cf_cfg);
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
	cfg_opt_t *opt = cfg_getopt(file->cf_cfg, "include");
	const struct value *value =
	    n < cfg_opt_size(opt) ? cfg_opt_getnptr(opt, n) : NULL;

	if (value == NULL)
		return false;
	*text = value->val_text;
	*line = value->val_line;
	return true;
}

const char *
conf_file_path(const struct conf_file *file)
{
	return file->cf_path;
}

static int
each_value(
    const struct conf_file *file, cfg_opt_t *opt, struct conf_scope *scope)
{
	struct conf_why why;

	for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
		const struct value *value = cfg_opt_getnptr(opt, i);

		scope->cs_line = value->val_line;
		if (conf_key_set(scope, opt->name, value->val_text, &why) != 0)
			return complain(file, value->val_line, opt->name, &why);
		conf_dump_value(scope, opt->name, value->val_text);
	}
	return 0;
}

/* Every key that the file has set: an empty list is set as well. */
static int
each_key(const struct conf_file *file, cfg_t *section, struct conf_scope *scope)
{
	int error;

	for (cfg_opt_t *opt = section->opts; opt->name != NULL; opt++) {
		if (opt->type == CFGT_SEC || !(opt->flags & CFGF_MODIFIED))
			continue;
		conf_key_clear(scope, opt->name);
		conf_dump_value(scope, opt->name, NULL);
		error = each_value(file, opt, scope);
		if (error != 0)
			return error;
	}
	return 0;
}

/* What is not a list has a value once it was set. */
static int
check_empty(const struct conf_file *file)
{
	struct conf_why why;

	for (cfg_opt_t *opt = file->cf_cfg->opts; opt->name != NULL; opt++) {
		if (opt->type == CFGT_SEC || !(opt->flags & CFGF_MODIFIED) ||
		    cfg_opt_size(opt) > 0)
			continue;
		if (conf_key_empty(opt->name, &why) != 0)
			return complain(file,
			    conf_text_empty(file->cf_text, opt->name),
			    opt->name, &why);
	}
	return 0;
}

int
conf_file_top(const struct conf_file *file, struct conf_scope *top)
{
	int error = each_key(file, file->cf_cfg, top);

	return error != 0 ? error : check_empty(file);
}

/* A message about a section as a whole. */
static int
complain_section(const struct conf_file *file, const cfg_t *section,
    const struct conf_why *why)
{
	char key[256];

	snprintf(key, sizeof(key), "%s \"%s\"", section->name, section->title);
	return complain(file, opened_at(section), key, why);
}

static int
read_location(
    const struct conf_file *file, cfg_t *section, const struct conf_scope *site)
{
	struct conf_scope scope = *site;
	struct location *loc;
	struct conf_why why;

	if (conf_location_add(site->cs_site, section->title, &loc, &why) != 0)
		return complain_section(file, section, &why);
	conf_dump_section(site->cs_conf, KEY_LOCATION, section->title);
	scope.cs_where = KEY_LOCATION;
	scope.cs_location = loc;
	scope.cs_set = &loc->loc_set;
	return each_key(file, section, &scope);
}

static int
read_site(
    const struct conf_file *file, cfg_t *section, const struct conf_scope *top)
{
	struct conf_scope scope = *top;
	struct conf_why why;
	struct site *site;
	int error;

	if (conf_site_add(top, section->title, &site, &why) != 0)
		return complain_section(file, section, &why);
	conf_dump_section(top->cs_conf, KEY_SITE, section->title);
	scope.cs_where = KEY_SITE;
	scope.cs_site = site;
	scope.cs_set = &site->site_set;
	error = each_key(file, section, &scope);
	if (error != 0)
		return error;
	if (site->site_root == NULL) {
		conf_why(&why, -EINVAL, "no root: write root = \"DIR\" in it");
		return complain_section(file, section, &why);
	}
	for (unsigned i = 0; i < cfg_size(section, "location"); i++) {
		error = read_location(
		    file, cfg_getnsec(section, "location", i), &scope);
		if (error != 0)
			return error;
	}
	conf_site_sort(site);
	return 0;
}

int
conf_file_sites(const struct conf_file *file, const struct conf_scope *top)
{
	unsigned n = cfg_size(file->cf_cfg, "site");
	int error;

	for (unsigned i = 0; i < n; i++) {
		error =
		    read_site(file, cfg_getnsec(file->cf_cfg, "site", i), top);
		if (error != 0)
			return error;
	}
	return 0;
}
