/*
 * What a file's fields announce (server/content/representation.h), by its times and the clock.
 */
#include "test.h"

#include "server/content/representation.h"
#include "server/http/mime.h"

#define MTIME 784111777
#define DATE  "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER "Sun, 06 Nov 1994 08:49:38 GMT"

struct fixture {
	struct conf fx_conf;
	struct settings fx_set;
	struct pw_file fx_file;
};

static struct fixture *fx; /* of the test that runs */

int
setup(void **state)
{
	*state = fx = calloc(1, sizeof(*fx));
	assert_non_null(fx);
	fx->fx_conf.conf_mime = mime_builtin();
	fx->fx_set.set_default_type = "application/octet-stream";
	fx->fx_file = (struct pw_file){
	    .fil_size = 16,
	    .fil_mtime = {MTIME, 0},
	    .fil_ctime = {MTIME, 5},
	    .fil_ino = 0xabc,
	};
	return 0;
}

int
teardown(void **state)
{
	(void)state;

	free(fx->fx_file.fil_user);
	mime_destroy(&fx->fx_conf.conf_mime);
	free(fx);
	return 0;
}

void *__real_calloc(size_t, size_t);
void *__wrap_calloc(size_t, size_t);
static bool short_of_memory;

void *
__wrap_calloc(size_t n, size_t size)
{
	return short_of_memory ? NULL : __real_calloc(n, size);
}

static const struct representation *
at(time_t now)
{
	const struct representation *rp = representation_of(
	    &fx->fx_file, &fx->fx_conf, &fx->fx_set, "f.txt", CODING_NONE, now);

	assert_non_null(rp);
	assert_int_equal(rp->rp_len, strlen(rp->rp_lines));
	return rp;
}

static void
assert_tag(const struct representation *rp, const char *tag)
{
	assert_string_equal(rp->rp_tag, tag);
	assert_int_equal(rp->rp_announced.va_etag.s_len, strlen(tag));
}

static bool
is_modified_since(const struct representation *rp, const char *date, time_t now)
{
	const struct conditional pre = {
	    .pre_if_modified_since = {date, strlen(date)}};

	return conditional_eval(&pre, &rp->rp_announced, now) != 304;
}

TEST(last_modified_is_never_later_than_the_clock)
{
	const struct representation *rp = at(MTIME + 100);

	assert_non_null(strstr(rp->rp_lines, "Last-Modified: " DATE "\r\n"));
	assert_false(is_modified_since(rp, DATE, MTIME + 100));
	assert_tag(rp, "\"2ebc98a1.0-10\"");
	/* The clock goes back: a kept representation has a date of the future. */
	fx->fx_file.fil_mtime.tv_sec = MTIME + 50;
	free(fx->fx_file.fil_user);
	fx->fx_file.fil_user = NULL;
	(void)at(MTIME + 100);
	rp = at(MTIME + 1);
	assert_non_null(strstr(rp->rp_lines, "Last-Modified: " DATE "\r\n"));
	/* What was sent in its place is no version that a client could have. */
	assert_true(is_modified_since(rp, DATE, MTIME + 1));
	assert_true(is_modified_since(rp, DATE, MTIME + 2));
	rp = at(MTIME + 2);
	assert_non_null(strstr(rp->rp_lines, "Last-Modified: " LATER "\r\n"));
	/* The date of the version itself will be. */
	assert_true(
	    is_modified_since(rp, "Sun, 06 Nov 1994 08:50:27 GMT", MTIME + 2));
	assert_false(
	    is_modified_since(rp, "Sun, 06 Nov 1994 08:50:27 GMT", MTIME + 52));
}

TEST(time_of_a_reproducible_build_is_not_announced)
{
	static const time_t times[] = {1, 0, -1};
	const struct representation *rp;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		fx->fx_file.fil_mtime.tv_sec = times[i];
		fx->fx_set.set_etag = ETAG_AUTO;
		free(fx->fx_file.fil_user);
		fx->fx_file.fil_user = NULL;
		rp = at(MTIME + 2);
		assert_null(strstr(rp->rp_lines, "Last-Modified"));
		assert_true(is_modified_since(rp, DATE, MTIME + 2));
		assert_non_null(strstr(rp->rp_tag, ".0-10-abc-2ebc98a1.5\""));
		assert_int_equal(rp->rp_tag[0], '"');
		/* Another version may have the same times until then. */
		free(fx->fx_file.fil_user);
		fx->fx_file.fil_user = NULL;
		assert_int_equal(at(MTIME + 1)->rp_tag[0], 'W');
	}
	fx->fx_file.fil_mtime.tv_sec = 2;
	rp = at(MTIME + 2);
	assert_tag(rp, "\"2.0-10\"");
	assert_true(rp->rp_announced.va_dated);
}

TEST(rule_of_the_configuration_replaces_the_validator)
{
	const struct representation *rp;

	fx->fx_set.set_last_modified = STR(LATER);
	fx->fx_set.set_entity_tag = STR("W/\"v1\"");
	fx->fx_file.fil_mtime.tv_sec = 1;
	rp = at(MTIME + 10);
	assert_non_null(strstr(rp->rp_lines, "Last-Modified: " LATER "\r\n"));
	assert_false(is_modified_since(rp, LATER, MTIME + 10));
	assert_true(is_modified_since(rp, DATE, MTIME + 10));
	assert_tag(rp, "W/\"v1\"");
	rp = representation_of(&fx->fx_file, &fx->fx_conf, &fx->fx_set, "f.txt",
	    CODING_BR, MTIME + 10);
	assert_tag(rp, "W/\"v1-br\"");
}

/* As a file is closed: fil_user_free is called with whatever fil_user is. */
TEST(file_without_memory_for_its_representation_is_closed)
{
	short_of_memory = true;
	assert_null(representation_of(&fx->fx_file, &fx->fx_conf, &fx->fx_set,
	    "f.txt", CODING_NONE, MTIME));
	short_of_memory = false;
	assert_null(fx->fx_file.fil_user);
	fx->fx_file.fil_user_free(fx->fx_file.fil_user);
}
