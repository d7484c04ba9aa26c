/*
 * Conditional requests (RFC 9110, section 13): each field alone, the order in
 * which they win over each other, and If-Range.
 */
#include "test.h"

#include "server/http/conditional.h"

/* Every case is about this representation at this time. */
#define ETAG  "\"abc\""
#define MTIME 784111777
#define NOW   (MTIME + 60)

#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME   "Sun, 06 Nov 1994 08:49:37 GMT"
#define AFTER  "Sun, 06 Nov 1994 08:49:38 GMT"
#define AT_NOW "Sun, 06 Nov 1994 08:50:37 GMT"
#define FUTURE "Sun, 06 Nov 1994 08:50:38 GMT"

struct list_case {
	const char *lc_list;
	int lc_if_match;      /* status with it as If-Match */
	int lc_if_none_match; /* status with it as If-None-Match */
};

/* Strong comparison for If-Match, weak for If-None-Match. */
static const struct list_case lists[] = {
    {"\"abc\"", 0, 304},
    {"\"abd\"", 412, 0},
    {"\"ABC\"", 412, 0},
    {"\"ab\"", 412, 0},
    {"\"abcd\"", 412, 0},
    {"\"\"", 412, 0},
    {"W/\"abc\"", 412, 304},
    {"W/\"abd\"", 412, 0},
    {"*", 0, 304},
    {" * ", 0, 304},
    {"\t\"abc\" ", 0, 304},
    {"\"x\",\"abc\"", 0, 304},
    {"\"x\", \"abc\", \"y\"", 0, 304},
    {"\"x\" ,\t\"abc\"", 0, 304},
    {"\"abc\", \"x\"", 0, 304},
    {"\"x\", W/\"abc\"", 412, 304},
    {"W/\"abc\", \"abc\"", 0, 304},
    {"\"x\", \"y\"", 412, 0},
    /* a comma, a backslash and obs-text are bytes of a tag like others */
    {"\"x,y\", \"abc\"", 0, 304},
    {"\",\\\", \"abc\"", 0, 304},
    {"\"\xc3\xa9\", \"abc\"", 0, 304},
    {"\"*\"", 412, 0},
    /* empty members of a list are skipped */
    {", \"abc\"", 0, 304},
    {"\"abc\",", 0, 304},
    {",,\"x\",,\"abc\",,", 0, 304},
    {"", 412, 0},
    {" ", 412, 0},
    {",", 412, 0},
};

/* Would match, if it were read as far as it goes. */
static const struct list_case malformed_lists[] = {
    {"abc", 412, 0},
    {"\"abc", 412, 0},
    {"abc\"", 412, 0},
    {"\"", 412, 0},
    {"'abc'", 412, 0},
    {"\"abc\"x", 412, 0},
    {"\"abc\" \"x\"", 412, 0},
    {"\"abc\"\"x\"", 412, 0},
    {"\"abc\";q=1", 412, 0},
    {"\"abc\", x", 412, 0},
    {"x, \"abc\"", 412, 0},
    {"\"abc\", \"x", 412, 0},
    {"\"abc\", *", 412, 0},
    {"*, \"abc\"", 412, 0},
    {"**", 412, 0},
    {"w/\"abc\"", 412, 0},
    {"W\"abc\"", 412, 0},
    {"W/", 412, 0},
    {"W/abc", 412, 0},
    {"W/ \"abc\"", 412, 0},
    {"W/W/\"abc\"", 412, 0},
    {"\"x y\", \"abc\"", 412, 0},
    {"\"x\ty\", \"abc\"", 412, 0},
    {"\"x\x7fy\", \"abc\"", 412, 0},
    {"\"abc\", \"\x01\"", 412, 0},
};

struct date_case {
	const char *dc_date;
	int dc_modified;   /* status with it as If-Modified-Since */
	int dc_unmodified; /* status with it as If-Unmodified-Since */
};

static const struct date_case dates[] = {
    {BEFORE, 0, 412},
    {SAME, 304, 0},
    /* not that of this version: another one had it, which may come back */
    {AFTER, 0, 0},
    {AT_NOW, 0, 0},
    {FUTURE, 0, 0},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 0, 0},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0, 412},
    /* all three formats, white space around */
    {"Sunday, 06-Nov-94 08:49:37 GMT", 304, 0},
    {"Sun Nov  6 08:49:37 1994", 304, 0},
    {"Sun Nov  6 08:49:36 1994", 0, 412},
    {" " SAME "\t", 304, 0},
    /* ignored: not one date */
    {"", 0, 0},
    {"yesterday", 0, 0},
    {"784111776", 0, 0},
    {"\"abc\"", 0, 0},
    {"*", 0, 0},
    {"Sun, 06 Nov 1994 08:49:36", 0, 0},
    {"Mon, 31 Feb 1994 08:49:36 GMT", 0, 0},
    {BEFORE ", " BEFORE, 0, 0},
    {SAME "; length=3", 0, 0},
};

struct order_case {
	const char *oc_rule;
	const char *oc_match;
	const char *oc_unmodified;
	const char *oc_none_match;
	const char *oc_modified;
	int oc_status;
};

static const struct order_case order[] = {
    {"no precondition", NULL, NULL, NULL, NULL, 0},
    {"If-Match true: If-Unmodified-Since is not looked at", ETAG, BEFORE, NULL,
	NULL, 0},
    {"If-Match false: a true If-Unmodified-Since does not help", "\"x\"", SAME,
	NULL, NULL, 412},
    {"If-Match malformed: still not If-Unmodified-Since", "x", SAME, NULL, NULL,
	412},
    {"If-None-Match true: If-Modified-Since is not looked at", NULL, NULL,
	"\"x\"", SAME, 0},
    {"If-None-Match false wins over a modified date", NULL, NULL, ETAG, BEFORE,
	304},
    {"If-None-Match malformed: still not If-Modified-Since", NULL, NULL, "x",
	SAME, 0},
    {"If-None-Match empty: still not If-Modified-Since", NULL, NULL, "", SAME,
	0},
    {"412 comes before 304", "\"x\"", NULL, ETAG, NULL, 412},
    {"412 comes before 304, by dates", NULL, BEFORE, NULL, SAME, 412},
    {"412 by date comes before 304 by tag", NULL, BEFORE, ETAG, NULL, 412},
    {"If-Match true, then If-None-Match", ETAG, NULL, ETAG, NULL, 304},
    {"If-Match true, then If-None-Match true", ETAG, NULL, "\"x\"", NULL, 0},
    {"If-Match true, then If-Modified-Since", ETAG, NULL, NULL, SAME, 304},
    {"If-Match true, then modified", ETAG, NULL, NULL, BEFORE, 0},
    {"If-Unmodified-Since true, then If-None-Match", NULL, SAME, ETAG, NULL,
	304},
    {"If-Unmodified-Since true, then If-Modified-Since", NULL, SAME, NULL, SAME,
	304},
    {"a bad If-Unmodified-Since is as if absent", NULL, "x", NULL, SAME, 304},
    {"all four hold", ETAG, BEFORE, "\"x\"", SAME, 0},
    {"all four, nothing new", ETAG, SAME, ETAG, SAME, 304},
    {"all four, replaced", "\"x\"", BEFORE, "\"x\"", BEFORE, 412},
};

struct if_range_case {
	const char *ir_value;
	bool ir_honoured;
};

static const struct if_range_case if_ranges[] = {
    {NULL, true},
    {ETAG, true},
    {" " ETAG "\t", true},
    {SAME, true},
    {"Sunday, 06-Nov-94 08:49:37 GMT", true},
    {"Sun Nov  6 08:49:37 1994", true},
    /* exactly equal, not "not later" */
    {BEFORE, false},
    {AFTER, false},
    {FUTURE, false},
    {"W/" ETAG, false},
    {"\"x\"", false},
    {"\"ABC\"", false},
    {"\"abc", false},
    {"abc", false},
    {"*", false},
    {"", false},
    {" ", false},
    {ETAG ", \"x\"", false},
    {"\"x\", " ETAG, false},
    {"yesterday", false},
};

static struct str
slice(const char *s)
{
	return (struct str){s, s != NULL ? strlen(s) : 0};
}

#define FIELDS 5

/* Each field in a block of its own size: the sanitizer sees reads past it. */
static struct conditional
copy_fields(const struct conditional *pre, char *blocks[FIELDS])
{
	struct conditional copy = *pre;
	struct str *fields[FIELDS] = {&copy.pre_if_match,
	    &copy.pre_if_none_match, &copy.pre_if_modified_since,
	    &copy.pre_if_unmodified_since, &copy.pre_if_range};

	for (size_t i = 0; i < FIELDS; i++) {
		size_t n = fields[i]->s_len;

		blocks[i] = NULL;
		if (fields[i]->s_ptr == NULL)
			continue;
		blocks[i] = malloc(n + (n == 0));
		assert_non_null(blocks[i]);
		memcpy(blocks[i], fields[i]->s_ptr, n);
		fields[i]->s_ptr = blocks[i];
	}
	return copy;
}

static const struct validators validators = {
    {ETAG, sizeof(ETAG) - 1}, MTIME, true};

static int
eval(const struct conditional *pre)
{
	char *blocks[FIELDS];
	struct conditional copy = copy_fields(pre, blocks);
	int status = conditional_eval(&copy, &validators, NOW);

	for (size_t i = 0; i < FIELDS; i++)
		free(blocks[i]);
	return status;
}

static bool
if_range(const struct conditional *pre, time_t now)
{
	char *blocks[FIELDS];
	struct conditional copy = copy_fields(pre, blocks);
	bool honoured = conditional_if_range(&copy, &validators, now);

	for (size_t i = 0; i < FIELDS; i++)
		free(blocks[i]);
	return honoured;
}

static void
expect_list(const struct list_case *lc)
{
	struct conditional match = {.pre_if_match = slice(lc->lc_list)};
	struct conditional none = {.pre_if_none_match = slice(lc->lc_list)};
	int got = eval(&match);

	if (got != lc->lc_if_match)
		fail_msg("If-Match: %s: %d", lc->lc_list, got);
	got = eval(&none);
	if (got != lc->lc_if_none_match)
		fail_msg("If-None-Match: %s: %d", lc->lc_list, got);
}

TEST(if_match_is_strong_and_if_none_match_weak)
{
	for (size_t i = 0; i < COUNT(lists); i++)
		expect_list(&lists[i]);
}

TEST(malformed_list_of_tags_matches_nothing)
{
	for (size_t i = 0; i < COUNT(malformed_lists); i++)
		expect_list(&malformed_lists[i]);
}

TEST(dates_compare_to_the_second)
{
	for (size_t i = 0; i < COUNT(dates); i++) {
		struct str date = slice(dates[i].dc_date);
		struct conditional mod = {.pre_if_modified_since = date};
		struct conditional unmod = {.pre_if_unmodified_since = date};
		int got;

		got = eval(&mod);
		if (got != dates[i].dc_modified)
			fail_msg("If-Modified-Since: %s: %d", date.s_ptr, got);
		got = eval(&unmod);
		if (got != dates[i].dc_unmodified)
			fail_msg(
			    "If-Unmodified-Since: %s: %d", date.s_ptr, got);
	}
}

TEST(preconditions_are_evaluated_in_order)
{
	for (size_t i = 0; i < COUNT(order); i++) {
		const struct order_case *oc = &order[i];
		struct conditional pre = {
		    .pre_if_match = slice(oc->oc_match),
		    .pre_if_unmodified_since = slice(oc->oc_unmodified),
		    .pre_if_none_match = slice(oc->oc_none_match),
		    .pre_if_modified_since = slice(oc->oc_modified),
		};
		int got = eval(&pre);

		if (got != oc->oc_status)
			fail_msg("%s: %d", oc->oc_rule, got);
	}
}

TEST(without_a_date_conditions_by_date_do_not_hold)
{
	static const struct validators undated = {
	    {ETAG, sizeof(ETAG) - 1}, MTIME, false};

	for (size_t i = 0; i < COUNT(dates); i++) {
		struct str date = slice(dates[i].dc_date);
		struct conditional pre = {
		    .pre_if_modified_since = date,
		    .pre_if_unmodified_since = date,
		    .pre_if_range = date,
		};

		assert_int_equal(conditional_eval(&pre, &undated, NOW), 0);
		assert_int_equal(conditional_if_range(&pre, &undated, NOW),
		    strcmp(dates[i].dc_date, ETAG) == 0);
	}
}

TEST(entity_tag_is_known_when_seen)
{
	static const char *const tags[] = {"\"\"", "\"a\"", "W/\"a\"",
	    "\"a,b\"", "\"\\\"", "\"\x80\""},
				 *const others[] = {"", "a", "\"", "\"a", "a\"",
				     "W/", "w/\"a\"", "\"a\" ", " \"a\"",
				     "\"a b\"", "\"a\",", "\"a\",\"b\"", "*",
				     "W/W/\"a\"", "\"a\"b\""};

	for (size_t i = 0; i < COUNT(tags); i++)
		assert_true(conditional_is_etag(slice(tags[i])));
	for (size_t i = 0; i < COUNT(others); i++)
		if (conditional_is_etag(slice(others[i])))
			fail_msg("%s", others[i]);
}

TEST(if_range_needs_a_strong_equal_validator)
{
	for (size_t i = 0; i < COUNT(if_ranges); i++) {
		const char *value = if_ranges[i].ir_value;
		struct conditional pre = {.pre_if_range = slice(value)};

		if (if_range(&pre, NOW) != if_ranges[i].ir_honoured)
			fail_msg("If-Range: %s", value ? value : "absent");
	}
}

static int
eval_at(const struct conditional *pre, time_t now)
{
	return conditional_eval(pre, &validators, now);
}

TEST(a_date_of_the_last_two_seconds_matches_nothing)
{
	const struct conditional range = {.pre_if_range = STR(SAME)},
				 since = {.pre_if_modified_since = STR(SAME)},
				 until = {.pre_if_unmodified_since = STR(SAME)},
				 later = {
				     .pre_if_unmodified_since = STR(AFTER)};

	for (time_t now = MTIME - 1; now < MTIME + 4; now++) {
		bool strong = now >= MTIME + 2;

		assert_int_equal(if_range(&range, now), strong);
		assert_int_equal(eval_at(&since, now), strong ? 304 : 0);
		assert_int_equal(eval_at(&until, now), strong ? 0 : 412);
		assert_int_equal(eval_at(&later, now), 0);
	}
}

TEST(a_tag_is_not_bound_to_the_clock)
{
	const struct conditional range = {.pre_if_range = STR(ETAG)},
				 none = {.pre_if_none_match = STR(ETAG)};

	assert_true(if_range(&range, MTIME));
	assert_int_equal(eval_at(&none, MTIME), 304);
}

TEST(the_date_that_is_sent_will_not_be_that_of_another_version)
{
	assert_int_equal(conditional_date_sent(MTIME, MTIME + 60), MTIME);
	assert_int_equal(conditional_date_sent(MTIME, MTIME + 2), MTIME);
	assert_int_equal(conditional_date_sent(MTIME, MTIME + 1), MTIME - 1);
	assert_int_equal(conditional_date_sent(MTIME, MTIME), MTIME - 1);
	/* of the future */
	assert_int_equal(conditional_date_sent(MTIME + 9, MTIME), MTIME - 1);
}

TEST(if_range_does_not_take_part_in_the_status)
{
	struct conditional pre = {.pre_if_range = STR("\"x\"")};

	assert_int_equal(eval(&pre), 0);
	pre = (struct conditional){.pre_if_match = STR("\"x\"")};
	assert_true(if_range(&pre, NOW));
}
