/*
 * include: the configuration file and the files that it includes.  Each file is parsed separately,
 * with its own line numbers and its own directory for relative paths.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

#define DEPTH 8 /* maximum depth of includes */

struct conf_files {
	struct conf *cfs_conf;
	struct conf_file **cfs_files; /* the first one is the main file */
	size_t cfs_count;
};

static int conf_include_read_file(
    struct conf_files *, const char *path, int depth);

static void
conf_include_complain(const struct conf_files *files,
    const struct conf_file *from, int line, const char *what, const char *cause)
{
	conf_say(files->cfs_conf, conf_file_path(from), line, "include: %s: %s",
	    what, cause);
}

static int
conf_include_read_matches(
    struct conf_files *files, const glob_t *found, int depth)
{
	int error = 0;

	for (size_t i = 0; error == 0 && i < found->gl_pathc; i++)
		error =
		    conf_include_read_file(files, found->gl_pathv[i], depth);
	return error;
}

/*
 * Reads the files that match the pattern.  A pattern with wildcards may match no file; a plain name
 * must exist.
 */
static int
conf_include_read_pattern(struct conf_files *files,
    const struct conf_file *from, const char *pattern, int line, int depth)
{
	glob_t found = {0};
	int error = 0;

	if (depth == DEPTH) {
		conf_include_complain(files, from, line, pattern,
		    "includes are nested more than 8 deep: look for a file "
		    "that includes itself");
		return 0;
	}
	switch (glob(pattern, GLOB_ERR | GLOB_BRACE, NULL, &found)) {
	case 0:
		error = conf_include_read_matches(files, &found, depth + 1);
		break;
	case GLOB_NOMATCH:
		if (!conf_is_glob(pattern))
			conf_include_complain(
			    files, from, line, pattern, strerror(ENOENT));
		break;
	default:
		conf_include_complain(files, from, line, pattern,
		    strerror(errno != 0 ? errno : EIO));
	}
	globfree(&found);
	return error;
}

static int
conf_include_read_includes(
    struct conf_files *files, const struct conf_file *from, int depth)
{
	const char *text;
	char *pattern;
	int error = 0, line;

	for (unsigned i = 0;
	     error == 0 && conf_file_include(from, i, &text, &line); i++) {
		/* conf_set_include refuses an empty pattern later. */
		if (text[0] == '\0')
			continue;
		pattern = conf_path(conf_file_dir(from), text);
		if (pattern == NULL)
			return -ENOMEM;
		error = conf_include_read_pattern(
		    files, from, pattern, line, depth);
		free(pattern);
	}
	return error;
}

/*
 * Reads a file and its includes.  Skips a file that cannot be read, after a message.  Returns 0 or
 * -ENOMEM.
 */
static int
conf_include_read_file(struct conf_files *files, const char *path, int depth)
{
	size_t n = files->cfs_count;
	struct conf_file **grown =
	    reallocarray(files->cfs_files, n + 1, sizeof(struct conf_file *));

	if (grown == NULL)
		return -ENOMEM;
	files->cfs_files = grown;
	if (conf_file_open(files->cfs_conf, path, &grown[n]) != 0) {
		conf_file_close(&grown[n]);
		return 0;
	}
	files->cfs_count++;
	return conf_include_read_includes(files, grown[n], depth);
}

int
conf_files_open(struct conf *conf, const char *path, struct conf_files **out)
{
	int error = -ENOMEM;

	*out = calloc(1, sizeof(**out));
	if (*out != NULL) {
		(*out)->cfs_conf = conf;
		error = conf_include_read_file(*out, path, 0);
	}
	if (error != 0)
		fprintf(stderr, "%spagewise: %s\n", log_error_prefix(),
		    strerror(ENOMEM));
	return error;
}

/* Applies the main file last, so that its values take precedence. */
void
conf_files_top(const struct conf_files *files, struct conf_scope *top)
{
	for (size_t i = files->cfs_count; i-- > 0;) {
		top->cs_dir = conf_file_dir(files->cfs_files[i]);
		top->cs_file = conf_file_path(files->cfs_files[i]);
		conf_file_top(files->cfs_files[i], top);
	}
	top->cs_dir = NULL;
	top->cs_file = NULL;
}

void
conf_files_sites(const struct conf_files *files, const struct conf_scope *top)
{
	struct conf *conf = top->cs_conf;
	struct conf_scope scope = *top;

	for (size_t i = 0; i < files->cfs_count; i++) {
		scope.cs_dir = conf_file_dir(files->cfs_files[i]);
		scope.cs_file = conf_file_path(files->cfs_files[i]);
		conf_file_sites(files->cfs_files[i], &scope);
	}
	/* A missing site is not reported after a fault, as the faulty part may define a site. */
	if (conf->conf_nsites > 0 || conf->conf_faults > 0)
		return;
	conf->conf_faults++;
	fprintf(stderr,
	    "%spagewise: %s: no site is configured: add site \"NAME\" { "
	    "root = \"DIR\" }\n",
	    log_error_prefix(), conf_file_path(files->cfs_files[0]));
}

void
conf_files_close(struct conf_files **filesp)
{
	struct conf_files *files = *filesp;

	if (files == NULL)
		return;
	*filesp = NULL;
	for (size_t i = 0; i < files->cfs_count; i++)
		conf_file_close(&files->cfs_files[i]);
	free(files->cfs_files);
	free(files);
}
