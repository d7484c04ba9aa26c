/*
 * conf_fixture: loads a configuration as main does and keeps what it printed.
 * For the tests of conf*.c; each has a directory of its own while it runs.
 */
#ifndef TESTS_CONF_FIXTURE_H
#define TESTS_CONF_FIXTURE_H

#include "test.h"

#include <sys/stat.h>

#include "server/conf/conf.h"
#include "server/conf/conf_priv.h"

#define ARGS_MAX 16

static char dir[] = "/tmp/test_conf.XXXXXX";
static char file_path[64];
static char out_text[4096]; /* what the last load wrote to stdout */
static char err_text[4096]; /* and to stderr */

static inline void
write_file(const char *path, const void *text, size_t len)
{
	FILE *fp = fopen(path, "w");

	assert_non_null(fp);
	assert_int_equal(fwrite(text, 1, len, fp), len);
	assert_int_equal(fclose(fp), 0);
}

/* Sends fd into a file; returns what fd was before. */
static inline int
divert(FILE *stream, const char *name)
{
	char path[96];
	int saved, fd;

	fflush(stream);
	saved = dup(fileno(stream));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(saved >= 0 && fd >= 0);
	dup2(fd, fileno(stream));
	close(fd);
	return saved;
}

static inline void
restore(FILE *stream, int saved, char *text, size_t size)
{
	ssize_t n;

	fflush(stream);
	n = pread(fileno(stream), text, size - 1, 0);
	dup2(saved, fileno(stream));
	close(saved);
	assert_true(n >= 0);
	text[n] = '\0';
}

/* Loads with the arguments in words, which are separated by single spaces. */
static inline enum conf_action
load(const char *words, struct conf **conf)
{
	char *argv[ARGS_MAX + 1] = {strdup("pagewise")};
	char *copy = strdup(words), *rest = copy, *word;
	enum conf_action action;
	int argc = 1, out, err;

	while ((word = strsep(&rest, " ")) != NULL && words[0] != '\0') {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	word = argv[0];
	out = divert(stdout, "stdout");
	err = divert(stderr, "stderr");
	action = conf_load(argc, argv, NULL, conf);
	restore(stderr, err, err_text, sizeof(err_text));
	restore(stdout, out, out_text, sizeof(out_text));
	free(word);
	free(copy);
	return action;
}

/* Loads a file with this text, and more arguments if there are any. */
static inline enum conf_action
load_text(const char *text, const char *more, struct conf **conf)
{
	char words[256];

	write_file(file_path, text, strlen(text));
	snprintf(words, sizeof(words), "-c %s%s%s", file_path,
	    more[0] != '\0' ? " " : "", more);
	return load(words, conf);
}

/* The last ones, freed later. */
static struct conf *loaded[4];
static unsigned loads;

static inline struct conf *
keep(struct conf *conf)
{
	struct conf **place = &loaded[loads++ % COUNT(loaded)];

	conf_destroy(place);
	return *place = conf;
}

static inline struct conf *
must_load_text(const char *text, const char *more)
{
	struct conf *conf;
	enum conf_action action = load_text(text, more, &conf);

	if (action != CONF_RUN)
		fail_msg("not loaded: %s", err_text);
	assert_string_equal(err_text, "");
	assert_string_equal(out_text, "");
	return keep(conf);
}

static inline struct conf *
must_load(const char *words)
{
	struct conf *conf;

	if (load(words, &conf) != CONF_RUN)
		fail_msg("not loaded: %s", err_text);
	return keep(conf);
}

/* "pagewise: FILE" and then expected, a newline, and nothing else. */
static inline void
expect_file_error(const char *text, const char *expected)
{
	struct conf *conf;
	char whole[512];

	snprintf(whole, sizeof(whole), "pagewise: %s%s\n", file_path, expected);
	assert_int_equal(load_text(text, "", &conf), CONF_EXIT_ERROR);
	assert_string_equal(err_text, whole);
	assert_null(conf);
}

static inline void
expect_file_errors(const char *text, const char *first, const char *second)
{
	struct conf *conf;
	char whole[1024];

	snprintf(whole, sizeof(whole), "pagewise: %s%s\npagewise: %s%s\n",
	    file_path, first, file_path, second);
	assert_int_equal(load_text(text, "", &conf), CONF_EXIT_ERROR);
	assert_string_equal(err_text, whole);
	assert_null(conf);
}

static inline void
expect_usage_error(const char *words, const char *expected)
{
	struct conf *conf;
	char whole[512];

	snprintf(whole, sizeof(whole), "pagewise: %s\n", expected);
	assert_int_equal(load(words, &conf), CONF_EXIT_USAGE);
	assert_string_equal(err_text, whole);
	assert_null(conf);
}

#define SITE "site \"a\" { root = \".\" }\n"

int
teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(loaded); i++) {
		conf_destroy(&loaded[i]);
		assert_null(loaded[i]);
	}
	return 0;
}

int
setup_all(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(file_path, sizeof(file_path), "%s/test.conf", dir);
	return 0;
}

int
teardown_all(void **state)
{
	static const char *const names[] = {
	    "test.conf", "types", "plain", "closed", "stdout", "stderr"};
	char path[96];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		remove(path);
	}
	return rmdir(dir);
}

#endif
