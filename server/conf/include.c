/*
 * include: the configuration file and those that it names with `include`, each with a
 * grammar, line numbers and a directory of its own.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

#define DEPTH 8 /* of files that name others */

struct conf_files {
	struct conf_file *
	    *cfs_files; /* the first one is the one that was named */
	size_t cfs_count;
};

static int read_file(struct conf_files *, const char *path, int depth);

static int
complain(
    const struct conf_file *from, int line, const char *what, const char *cause)
{
	conf_say(conf_file_path(from), line, "include: %s: %s", what, cause);
	return -EINVAL;
}

static int
read_matches(struct conf_files *files, const glob_t *found, int depth)
{
	int error = 0;

	for (size_t i = 0; error == 0 && i < found->gl_pathc; i++)
		error = read_file(files, found->gl_pathv[i], depth);
	return error;
}

/* Nothing need match what has a '*'; a plain name has to be there. */
static int
read_pattern(struct conf_files *files, const struct conf_file *from,
    const char *pattern, int line, int depth)
{
	glob_t found = {0};
	int error;

	if (depth == DEPTH)
		return complain(from, line, pattern,
		    "files include each other more than 8 deep");
	switch (glob(pattern, GLOB_ERR | GLOB_BRACE, NULL, &found)) {
	case 0:
		error = read_matches(files, &found, depth + 1);
		break;
	case GLOB_NOMATCH:
		error = conf_is_glob(pattern)
			    ? 0
			    : complain(from, line, pattern, strerror(ENOENT));
		break;
	default:
		error = complain(
		    from, line, pattern, strerror(errno != 0 ? errno : EIO));
	}
	globfree(&found);
	return error;
}

static int
read_includes(struct conf_files *files, const struct conf_file *from, int depth)
{
	const char *text;
	char *pattern;
	int error = 0, line;

	for (unsigned i = 0;
	     error == 0 && conf_file_include(from, i, &text, &line); i++) {
		if (text[0] == '\0')
			return complain(
			    from, line, "\"\"", "the path is empty");
		pattern = conf_path(conf_file_dir(from), text);
		if (pattern == NULL)
			return complain(from, line, text, strerror(ENOMEM));
		error = read_pattern(files, from, pattern, line, depth);
		free(pattern);
	}
	return error;
}

static int
read_file(struct conf_files *files, const char *path, int depth)
{
	size_t n = files->cfs_count;
	struct conf_file **grown =
	    reallocarray(files->cfs_files, n + 1, sizeof(struct conf_file *));
	int error;

	if (grown == NULL) {
		fprintf(stderr, "%spagewise: %s\n", log_error_prefix(),
		    strerror(ENOMEM));
		return -ENOMEM;
	}
	files->cfs_files = grown;
	files->cfs_count++;
	error = conf_file_open(path, &grown[n]);
	return error != 0 ? error : read_includes(files, grown[n], depth);
}

int
conf_files_open(const char *path, struct conf_files **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL) {
		fprintf(stderr, "%spagewise: %s\n", log_error_prefix(),
		    strerror(ENOMEM));
		return -ENOMEM;
	}
	return read_file(*out, path, 0);
}

/* The first one last: what it sets itself counts. */
int
conf_files_top(const struct conf_files *files, struct conf_scope *top)
{
	int error = 0;

	for (size_t i = files->cfs_count; error == 0 && i-- > 0;) {
		top->cs_dir = conf_file_dir(files->cfs_files[i]);
		top->cs_file = conf_file_path(files->cfs_files[i]);
		error = conf_file_top(files->cfs_files[i], top);
	}
	top->cs_dir = NULL;
	top->cs_file = NULL;
	return error;
}

int
conf_files_sites(const struct conf_files *files, const struct conf_scope *top)
{
	struct conf_scope scope = *top;
	int error = 0;

	for (size_t i = 0; error == 0 && i < files->cfs_count; i++) {
		scope.cs_dir = conf_file_dir(files->cfs_files[i]);
		scope.cs_file = conf_file_path(files->cfs_files[i]);
		error = conf_file_sites(files->cfs_files[i], &scope);
	}
	if (error != 0 || top->cs_conf->conf_nsites > 0)
		return error;
	fprintf(stderr,
	    "%spagewise: %s: no site: write site \"NAME\" { root = "
	    "\"DIR\" }\n",
	    log_error_prefix(), conf_file_path(files->cfs_files[0]));
	return -EINVAL;
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
