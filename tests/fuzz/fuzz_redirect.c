/*
 * conf_redirect of server/conf/conf.h against a naive search.
 * Input: "PATH\n", then lines: rules.
 */
#include "fuzz.h"
#include "server/conf/conf_priv.h"
#include "server/http/target.h"

#define MANY 64

struct rule {
	char *rl_from; /* decoded; it has a '*', or none */
	const struct redirect *rl_made;
};

static struct rule rules[MANY];
static size_t count;

/* As the path of a request; empty: it is none. */
static char *
decoded(const char *text)
{
	size_t size = strlen(text) + 3;
	char *raw = malloc(size), *buf = malloc(size);
	struct target tgt;
	bool bare = text[0] == '*';

	CHECK(raw != NULL && buf != NULL);
	snprintf(raw, size, "%s%s", bare ? "/" : "", text);
	if (target_parse((struct str){raw, strlen(raw)}, buf, size, &tgt) != 0)
		buf[0] = '\0';
	else if (bare)
		memmove(buf, buf + 1, strlen(buf));
	free(raw);
	return buf;
}

static void
add(struct conf_scope *scope, const char *line)
{
	char *words = strdup(line), *from = strtok(words, " \t");
	struct conf_why why = {.why_text = ""};
	struct str star;

	if (conf_key_set(scope, "redirect", line, &why) != 0) {
		CHECK(why.why_text[0] != '\0');
		free(words);
		return;
	}
	CHECK(from != NULL && strchr(from, '?') == NULL);
	rules[count].rl_from = decoded(from);
	CHECK(rules[count].rl_from[0] != '\0');
	/* What has no '*' is found at once. */
	if (strchr(rules[count].rl_from, '*') == NULL) {
		rules[count].rl_made = conf_redirect(scope->cs_set,
		    (struct str){
			rules[count].rl_from, strlen(rules[count].rl_from)},
		    &star);
		CHECK(rules[count].rl_made != NULL);
	}
	count++;
	free(words);
}

/* The rule for path, or -1; and where its '*' begins, and how long it is. */
static int
naive(const char *path, size_t *at, size_t *len)
{
	size_t i, n = strlen(path), before, after;
	const char *star;

	*at = *len = 0;
	for (i = 0; i < count; i++)
		if (strchr(rules[i].rl_from, '*') == NULL &&
		    strcmp(rules[i].rl_from, path) == 0)
			return (int)i;
	for (i = 0; i < count; i++) {
		star = strchr(rules[i].rl_from, '*');
		if (star == NULL)
			continue;
		before = (size_t)(star - rules[i].rl_from);
		after = strlen(star + 1);
		if (n < before + after ||
		    strncmp(path, rules[i].rl_from, before) != 0 ||
		    strcmp(path + n - after, star + 1) != 0)
			continue;
		*at = before;
		*len = n - before - after;
		return (int)i;
	}
	return -1;
}

static void
check(const struct settings *set, const char *path)
{
	struct str star;
	const struct redirect *rd =
	    conf_redirect(set, (struct str){path, strlen(path)}, &star);
	size_t at, len;
	int i = naive(path, &at, &len);

	CHECK((i >= 0) == (rd != NULL));
	if (rd == NULL)
		return;
	CHECK(rd->rd_status >= 301 && rd->rd_status <= 308);
	CHECK((rd->rd_after.s_ptr != NULL) ==
	      (strchr(rules[i].rl_from, '*') != NULL));
	if (rd->rd_after.s_ptr == NULL) {
		CHECK(rd == rules[i].rl_made && star.s_len == 0);
		return;
	}
	CHECK(star.s_ptr == path + at && star.s_len == len);
	CHECK(strncmp(rules[i].rl_from, rd->rd_before.s_ptr, at) == 0 &&
	      rd->rd_before.s_len == at);
	/* No text of a client gets into a host. */
	CHECK(rd->rd_rest.s_ptr == NULL || rd->rd_to.s_len > 0);
	if (rd->rd_rest.s_ptr != NULL && rd->rd_scheme.s_ptr == NULL &&
	    rd->rd_to.s_ptr[0] != '/')
		CHECK(memchr(rd->rd_to.s_ptr + 8, '/', rd->rd_to.s_len - 8) !=
			  NULL ||
		      memchr(rd->rd_to.s_ptr, '?', rd->rd_to.s_len) != NULL ||
		      rd->rd_to.s_ptr[7] != '/');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	char *path = fuzz_text(fuzz_line(&in)), *line;
	struct conf *conf = calloc(1, sizeof(*conf));
	struct settings set = {0};
	struct conf_scope scope = {
	    .cs_where = KEY_TOP, .cs_conf = conf, .cs_set = &set};

	CHECK(conf != NULL);
	for (count = 0; in.s_len > 0 && count < MANY;) {
		line = fuzz_text(fuzz_line(&in));
		add(&scope, line);
		free(line);
	}
	check(&set, path);
	while (count > 0)
		free(rules[--count].rl_from);
	conf_keep_free(&conf->conf_memory);
	free(conf);
	free(path);
	return 0;
}
