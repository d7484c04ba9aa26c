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

typedef int set_f(
    void *target, const char *key, const char *text, struct conf_why *);

/* libConfuse's words for what is wrong, and ours: KEY: cause. */
static const struct {
	const char *ph_theirs;
	const char *ph_ours;
} phrases[] = {
    {"no sub-section title/index for '%s'", "%s: unknown key"},
    {"missing equal sign after option '%s'", "%s: '=' is missing"},
    {"missing opening brace for section '%s'", "%s: '{' is missing"},
    {"missing title for section '%s'", "%s: its name is missing"},
    {"found duplicate title '%s'", "%s: is defined already"},
    {"unexpected token '%s'",
	"%s: not expected here; a comma before it, or quotes, may be missing"},
    {"attempt to append to non-list option '%s'", "%s: is not a list"},
};

/* A key that this section does not know may be at home in another one. */
static void
unknown_key(const cfg_t *cfg, const char *key)
{
	const char *place = conf_key_place(key, cfg->name);
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

#define ONE(name) CFG_PTR_CB(name, NULL, CFGF_NODEFAULT, value_parse, free)
#define LIST(name) \
	CFG_PTR_LIST_CB(name, NULL, CFGF_NODEFAULT, value_parse, free)
#define INHERITED                                                           \
	ONE("send_path"), ONE("readahead"), ONE("cache"), ONE("autoindex"), \
	    ONE("dotfiles"), LIST("index")
#define SECTION(name, opts) \
	CFG_SEC(name, opts, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES)

/*
 * libConfuse forgets where a section began.  It parses defaults at that point,
 * so a section's first option has one, and its value keeps the line.
 */
#define OPENED CFG_PTR_CB("|", here, CFGF_NONE, value_parse, free)

static cfg_t *
file_grammar(void)
{
	static char here[] = "here";
	cfg_opt_t location[] = {OPENED, INHERITED, CFG_END()};
	cfg_opt_t site[] = {OPENED, LIST("names"), ONE("root"), INHERITED,
	    SECTION("location", location), CFG_END()};
	cfg_opt_t top[] = {LIST("listen"), ONE("workers"), ONE("threads"),
	    ONE("admin"), ONE("access_log"), ONE("log_format"), ONE("user"),
	    ONE("group"), ONE("chroot"), ONE("sandbox"), ONE("keep_fowner"),
	    ONE("stall_log"), ONE("busy_poll"), ONE("mime_types"),
	    ONE("head_timeout"), ONE("keepalive_timeout"), ONE("send_timeout"),
	    ONE("disk_timeout"), ONE("shutdown_timeout"), ONE("max_head_size"),
	    ONE("max_target_size"), ONE("max_fields"), ONE("max_ranges"),
	    ONE("max_requests"), ONE("max_connections"),
	    ONE("max_connections_per_address"), ONE("min_send_rate"),
	    ONE("tcp_memory"), ONE("open_files"), ONE("hot_set"), INHERITED,
	    SECTION("site", site), CFG_END()};

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

static int
file_strip(const struct conf_file *file, char *text)
{
	const char *what;
	int error, line;

	error = conf_text_strip(text, &line, &what);
	if (error != 0)
		conf_say(file->cf_path, line, "%s: has no end", what);
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
	fprintf(stderr, "pagewise: %s: %s\n", path, read_cause(error));
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
	error = file_strip(file, file->cf_text);
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

/* Calls set with every value of an option. */
static int
each_value(const struct conf_file *file, cfg_opt_t *opt, set_f *set, void *arg)
{
	struct conf_why why;

	for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
		const struct value *value = cfg_opt_getnptr(opt, i);

		if (set(arg, opt->name, value->val_text, &why) != 0)
			return complain(file, value->val_line, opt->name, &why);
	}
	return 0;
}

/*
 * Calls clear, then set, for every option that the file has set: an empty list
 * is set as well.  Sections are not options.
 */
static int
each_option(const struct conf_file *file, cfg_t *section,
    void (*clear)(void *, const char *), set_f *set, void *arg)
{
	int error;

	for (cfg_opt_t *opt = section->opts; opt->name != NULL; opt++) {
		if (opt->type == CFGT_SEC || !(opt->flags & CFGF_MODIFIED))
			continue;
		clear(arg, opt->name);
		error = each_value(file, opt, set, arg);
		if (error != 0)
			return error;
	}
	return 0;
}

static void
top_clear(void *arg, const char *key)
{
	conf_clear_top(arg, key);
}

static int
top_set(void *arg, const char *key, const char *text, struct conf_why *why)
{
	return conf_set_top(arg, key, text, why);
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
		if (conf_empty_top(opt->name, &why) != 0)
			return complain(file,
			    conf_text_empty(file->cf_text, opt->name),
			    opt->name, &why);
	}
	return 0;
}

int
conf_file_top(const struct conf_file *file, struct conf_build *b)
{
	int error = each_option(file, file->cf_cfg, top_clear, top_set, b);

	return error != 0 ? error : check_empty(file);
}

static void
location_clear(void *arg, const char *key)
{
	struct location *loc = arg;

	conf_clear_inherited(&loc->loc_set, key);
}

static int
location_set(void *arg, const char *key, const char *text, struct conf_why *why)
{
	struct location *loc = arg;

	return conf_set_inherited(&loc->loc_set, key, text, why);
}

/* A site that is being read. */
struct reading {
	struct conf_build *rd_build;
	struct site *rd_site;
};

static void
site_clear(void *arg, const char *key)
{
	struct reading *rd = arg;

	conf_clear_inherited(&rd->rd_site->site_set, key);
}

static int
site_set(void *arg, const char *key, const char *text, struct conf_why *why)
{
	struct reading *rd = arg;
	struct conf_build *b = rd->rd_build;

	if (strcmp(key, "names") == 0)
		return conf_site_name(b->cb_conf, rd->rd_site, text, why);
	if (strcmp(key, "root") == 0)
		return conf_site_root(rd->rd_site, b->cb_dir, text, why);
	return conf_set_inherited(&rd->rd_site->site_set, key, text, why);
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
read_location(const struct conf_file *file, cfg_t *section, struct site *site)
{
	struct location *loc;
	struct conf_why why;

	if (conf_location_add(site, section->title, &loc, &why) != 0)
		return complain_section(file, section, &why);
	return each_option(file, section, location_clear, location_set, loc);
}

static int
read_site(const struct conf_file *file, cfg_t *section, struct conf_build *b)
{
	struct reading rd = {.rd_build = b};
	struct conf_why why;
	int error;

	if (conf_site_add(
		b->cb_conf, section->title, &b->cb_set, &rd.rd_site, &why) != 0)
		return complain_section(file, section, &why);
	error = each_option(file, section, site_clear, site_set, &rd);
	if (error != 0)
		return error;
	if (rd.rd_site->site_root == NULL) {
		conf_why(&why, -EINVAL,
		    "it has no root: write root = \"DIR\" in it");
		return complain_section(file, section, &why);
	}
	for (unsigned i = 0; i < cfg_size(section, "location"); i++) {
		error = read_location(
		    file, cfg_getnsec(section, "location", i), rd.rd_site);
		if (error != 0)
			return error;
	}
	conf_site_sort(rd.rd_site);
	return 0;
}

int
conf_file_sites(const struct conf_file *file, struct conf_build *b)
{
	unsigned n = cfg_size(file->cf_cfg, "site");
	int error;

	if (n == 0) {
		fprintf(stderr,
		    "pagewise: %s: it has no site: write site \"NAME\" "
		    "{ root = \"DIR\" }\n",
		    file->cf_path);
		return -EINVAL;
	}
	for (unsigned i = 0; i < n; i++) {
		error =
		    read_site(file, cfg_getnsec(file->cf_cfg, "site", i), b);
		if (error != 0)
			return error;
	}
	return 0;
}
