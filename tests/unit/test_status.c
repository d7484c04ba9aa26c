/*
 * What to answer (server/http/status.h): preconditions before If-Range before Range,
 * which only GET has.  Dates and tags have tables of their own: test_conditional.c,
 * test_range.c.
 */

#include "test.h"

#include "server/http/status.h"

/* Every case is about this representation at this time. */
#define ETAG  "\"abc\""
#define SIZE  1000
#define MTIME 784111777
#define NOW   (MTIME + 60)

#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME   "Sun, 06 Nov 1994 08:49:37 GMT"

#define MAX 3

struct plan_case {
	const char *pc_range;
	const char *pc_if_range;
	const char *pc_if_match;
	const char *pc_if_none_match;
	const char *pc_if_modified;
	const char *pc_if_unmodified;
	int pc_status; /* of a GET, and of a HEAD */
};

#define NONE NULL

static const struct plan_case plans[] = {
    {NONE, NONE, NONE, NONE, NONE, NONE, 200},
    {"bytes=0-9", NONE, NONE, NONE, NONE, NONE, 206},
    {"bytes=1000-", NONE, NONE, NONE, NONE, NONE, 416},
    {"bytes=-0", NONE, NONE, NONE, NONE, NONE, 416},
    {"bytes=9-0", NONE, NONE, NONE, NONE, NONE, 200},
    {"lines=0-9", NONE, NONE, NONE, NONE, NONE, 200},
    {"", NONE, NONE, NONE, NONE, NONE, 200},
    /* more than MAX ranges: those that overlap are not worth it */
    {"bytes=0-0,2-2,2-4", NONE, NONE, NONE, NONE, NONE, 206},
    {"bytes=0-0,2-2,4-4,6-6", NONE, NONE, NONE, NONE, NONE, 206},
    {"bytes=0-0,2-2,4-6,6-6", NONE, NONE, NONE, NONE, NONE, 200},
    /* preconditions alone */
    {NONE, NONE, ETAG, NONE, NONE, NONE, 200},
    {NONE, NONE, "\"x\"", NONE, NONE, NONE, 412},
    {NONE, NONE, NONE, ETAG, NONE, NONE, 304},
    {NONE, NONE, NONE, "\"x\"", NONE, NONE, 200},
    {NONE, NONE, NONE, NONE, SAME, NONE, 304},
    {NONE, NONE, NONE, NONE, BEFORE, NONE, 200},
    {NONE, NONE, NONE, NONE, NONE, SAME, 200},
    {NONE, NONE, NONE, NONE, NONE, BEFORE, 412},
    /* they come before Range, even one that cannot be satisfied */
    {"bytes=0-9", NONE, "\"x\"", NONE, NONE, NONE, 412},
    {"bytes=0-9", NONE, NONE, ETAG, NONE, NONE, 304},
    {"bytes=0-9", NONE, NONE, NONE, SAME, NONE, 304},
    {"bytes=0-9", NONE, NONE, NONE, NONE, BEFORE, 412},
    {"bytes=1000-", NONE, "\"x\"", NONE, NONE, NONE, 412},
    {"bytes=1000-", NONE, NONE, ETAG, NONE, NONE, 304},
    {"bytes=0-9", NONE, ETAG, "\"x\"", BEFORE, SAME, 206},
    {"bytes=1000-", NONE, ETAG, "\"x\"", NONE, NONE, 416},
    /* If-Range that does not hold: as if there were no Range */
    {"bytes=0-9", ETAG, NONE, NONE, NONE, NONE, 206},
    {"bytes=0-9", "\"x\"", NONE, NONE, NONE, NONE, 200},
    {"bytes=0-9", "W/" ETAG, NONE, NONE, NONE, NONE, 200},
    {"bytes=0-9", SAME, NONE, NONE, NONE, NONE, 206},
    {"bytes=0-9", BEFORE, NONE, NONE, NONE, NONE, 200},
    {"bytes=0-9", "", NONE, NONE, NONE, NONE, 200},
    {"bytes=1000-", "\"x\"", NONE, NONE, NONE, NONE, 200},
    {"bytes=1000-", ETAG, NONE, NONE, NONE, NONE, 416},
    {NONE, "\"x\"", NONE, NONE, NONE, NONE, 200},
    /* and does not matter to preconditions */
    {"bytes=0-9", "\"x\"", NONE, ETAG, NONE, NONE, 304},
    {"bytes=0-9", ETAG, "\"x\"", NONE, NONE, NONE, 412},
};

static const struct validators validators = {
    {ETAG, sizeof(ETAG) - 1}, MTIME, true};

static struct str
str(const char *text)
{
	return (struct str){text, text == NULL ? 0 : strlen(text)};
}

static struct request
request_of(const struct plan_case *pc, enum method method)
{
	return (struct request){
	    .rq_method = method,
	    .rq_range = str(pc->pc_range),
	    .rq_pre = {.pre_if_range = str(pc->pc_if_range),
		.pre_if_match = str(pc->pc_if_match),
		.pre_if_none_match = str(pc->pc_if_none_match),
		.pre_if_modified_since = str(pc->pc_if_modified),
		.pre_if_unmodified_since = str(pc->pc_if_unmodified)},
	};
}

static int
status_of(const struct plan_case *pc, enum method method)
{
	struct range ranges[RANGE_MOST];
	struct plan pl = {.pl_ranges = ranges, .pl_max = MAX, .pl_nranges = 77};
	struct request rq = request_of(pc, method);

	status_decide(&pl, &rq, SIZE, &validators, NOW);
	/* Ranges belong to 206, and it has at least one. */
	assert_int_equal(pl.pl_nranges > 0, pl.pl_status == 206);
	return pl.pl_status;
}

TEST(fields_win_over_each_other_in_the_order_of_the_rfc)
{
	int get, head;

	for (size_t i = 0; i < COUNT(plans); i++) {
		get = status_of(&plans[i], METHOD_GET);
		head = status_of(&plans[i], METHOD_HEAD);
		if (get != plans[i].pc_status || head != get)
			fail_msg("case %zu: GET %d, HEAD %d", i, get, head);
	}
}

TEST(ranges_are_those_of_the_field)
{
	const struct plan_case pc = {.pc_range = "bytes=5-6,-10,2000-"};
	struct request rq = request_of(&pc, METHOD_GET);
	struct range ranges[RANGE_MOST];
	struct plan pl = {.pl_ranges = ranges, .pl_max = MAX};

	status_decide(&pl, &rq, SIZE, &validators, NOW);
	assert_int_equal(pl.pl_status, 206);
	assert_int_equal(pl.pl_nranges, 2);
	assert_int_equal(ranges[0].rng_off, 5);
	assert_int_equal(ranges[0].rng_len, 2);
	assert_int_equal(ranges[1].rng_off, SIZE - 10);
	assert_int_equal(ranges[1].rng_len, 10);
}

TEST(empty_file_has_no_ranges)
{
	static const struct {
		const char *range;
		int status;
	} t[] = {{"bytes=0-", 200}, {"bytes=0-0", 200}, {"bytes=-1", 200}};
	struct range ranges[RANGE_MOST];
	struct plan pl = {.pl_ranges = ranges, .pl_max = MAX};
	struct request rq;

	for (size_t i = 0; i < COUNT(t); i++) {
		rq = request_of(
		    &(struct plan_case){.pc_range = t[i].range}, METHOD_GET);
		status_decide(&pl, &rq, 0, &validators, NOW);
		assert_int_equal(pl.pl_status, t[i].status);
		assert_int_equal(pl.pl_nranges, 0);
	}
}

/* What was modified in this second may be once more: no strong validator. */
TEST(a_file_of_this_second_has_no_date_for_if_range)
{
	const struct plan_case pc = {
	    .pc_range = "bytes=0-9", .pc_if_range = SAME};
	struct request rq = request_of(&pc, METHOD_GET);
	struct range ranges[RANGE_MOST];
	struct plan pl = {.pl_ranges = ranges, .pl_max = MAX};

	status_decide(&pl, &rq, SIZE, &validators, MTIME);
	assert_int_equal(pl.pl_status, 200);
	status_decide(&pl, &rq, SIZE, &validators, MTIME + 2);
	assert_int_equal(pl.pl_status, 206);
}
