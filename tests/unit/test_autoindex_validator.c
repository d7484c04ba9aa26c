/*
 * The entity tag and the date of a listing (server/content/autoindex_validator.h): one of each for
 * what is shown, and another one if anything of that is another.
 */
#include "test.h"

#include "server/content/autoindex_validator.h"

#define NOW ((time_t)1000000)

static const struct row rows[] = {
    {.row_name = (char[]){"a"},
	.row_known = true,
	.row_size = 7,
	.row_mtime = 5,
	.row_changed = 900},
    {.row_name = (char[]){"b"}, .row_type = ROW_DIRECTORY, .row_known = true},
    {.row_name = (char[]){"c"}, .row_type = ROW_OTHER},
};

static struct listing_validator
begin(time_t changed)
{
	struct stat st = {0};
	struct listing_validator lv;

	st.st_mtim.tv_sec = 100;
	st.st_ctim.tv_sec = changed;
	validator_begin(&lv, &st, (struct view){0}, NOW);
	return lv;
}

static uint64_t
sum_of(struct row row)
{
	struct listing_validator lv = begin(200);

	validator_row(&lv, &row);
	return lv.lv_sum;
}

TEST(rows_in_another_order_have_the_same_tag)
{
	struct listing_validator up = begin(200), down = begin(200);
	char text[VALIDATOR_ETAG], other[VALIDATOR_ETAG];
	size_t i, n = sizeof(rows) / sizeof(rows[0]);

	for (i = 0; i < n; i++) {
		validator_row(&up, &rows[i]);
		validator_row(&down, &rows[n - 1 - i]);
	}
	assert_int_equal(validator_etag(&up, text), 20);
	assert_int_equal(validator_etag(&down, other), 20);
	assert_string_equal(text, other);
	assert_memory_equal(text, "W/\"", 3);
	assert_int_equal(text[19], '"');
}

TEST(each_thing_that_is_shown_makes_another_tag)
{
	uint64_t sums[8];
	struct row row = rows[0];
	size_t i, j, n = 0;

	sums[n++] = sum_of(row);
	row.row_size++;
	sums[n++] = sum_of(row);
	row.row_mtime++;
	sums[n++] = sum_of(row);
	row.row_name = rows[1].row_name;
	sums[n++] = sum_of(row);
	row.row_type = ROW_DIRECTORY;
	sums[n++] = sum_of(row);
	row.row_known = false;
	sums[n++] = sum_of(row);
	row.row_digest[0] = 'x';
	sums[n++] = sum_of(row);
	sums[n++] = begin(200).lv_sum;
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			assert_int_not_equal(sums[i], sums[j]);
	/* The rest is not shown: a change of it alone leaves the page as it was. */
	row.row_changed++;
	assert_int_equal(sum_of(row), sums[n - 2]);
}

TEST(each_view_and_each_heading_has_another_tag)
{
	const struct view views[] = {{0}, {.vw_json = true},
	    {.vw_descending = true}, {.vw_sort = VIEW_TIME},
	    {.vw_sort = VIEW_SIZE}};
	uint64_t sums[2 * sizeof(views) / sizeof(views[0])];
	const struct stat st = {0};
	struct listing_validator lv;
	size_t i, j, n = 0;

	for (i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		validator_begin(&lv, &st, views[i], NOW);
		sums[n++] = lv.lv_sum;
		validator_text(&lv, "/d/", 3);
		sums[n++] = lv.lv_sum;
	}
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			assert_int_not_equal(sums[i], sums[j]);
}

TEST(the_date_is_the_newest_change)
{
	struct listing_validator lv = begin(200);

	assert_int_equal(validator_date(&lv), 200);
	validator_row(&lv, &rows[0]);
	validator_row(&lv, &rows[1]);
	assert_int_equal(lv.lv_newest, 900);
	assert_int_equal(validator_date(&lv), 900);
	lv = begin(50);
	assert_int_equal(validator_date(&lv), 100);
}

/* A second change in that second would have the same date. */
TEST(the_date_of_what_has_just_changed_is_before_that)
{
	struct listing_validator lv = begin(NOW - 2);

	assert_int_equal(validator_date(&lv), NOW - 2);
	lv = begin(NOW - 1);
	assert_int_equal(validator_date(&lv), NOW - 2);
	lv = begin(NOW);
	assert_int_equal(validator_date(&lv), NOW - 1);
	/* By another clock. */
	lv = begin(NOW + 3600);
	assert_int_equal(validator_date(&lv), NOW - 1);
	assert_int_equal(lv.lv_newest, NOW + 3600);
}
