/*
 * HTTP dates (RFC 9110, 5.6.7): what a server writes, the three formats it
 * reads, and everything that only looks like one of them.
 */
#include "test.h"

#include <limits.h>

#include "server/http/date.h"

#define NOW	  INT64_C(1795227234) /* Sat, 21 Nov 2026 02:13:54 GMT */
#define YEAR_0	  INT64_C(-62167219200)
#define YEAR_9999 INT64_C(253402300799)

struct date_case {
	const char *dc_text;
	int64_t dc_time;
};

static const struct date_case written[] = {
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Thu, 01 Jan 1970 00:00:01 GMT", 1},
    {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sat, 21 Nov 2026 02:13:54 GMT", NOW},
    {"Mon, 28 Feb 2000 23:59:59 GMT", 951782399},
    {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
    {"Wed, 01 Mar 2000 00:00:00 GMT", 951868800},
    {"Fri, 31 Dec 1999 23:59:59 GMT", 946684799},
    {"Sat, 01 Jan 2000 00:00:00 GMT", 946684800},
    {"Thu, 29 Feb 2024 12:00:00 GMT", 1709208000},
    {"Tue, 31 Dec 2024 00:00:00 GMT", 1735603200},
    {"Wed, 28 Feb 1900 00:00:00 GMT", -2203977600},
    {"Thu, 01 Mar 1900 00:00:00 GMT", -2203891200},
    {"Tue, 19 Jan 2038 03:14:07 GMT", INT32_MAX},
    {"Tue, 19 Jan 2038 03:14:08 GMT", INT64_C(2147483648)},
    {"Fri, 13 Dec 1901 20:45:52 GMT", INT32_MIN},
    {"Sat, 01 Jan 0000 00:00:00 GMT", YEAR_0},
    {"Fri, 31 Dec 9999 23:59:59 GMT", YEAR_9999},
};

static const struct date_case other_formats[] = {
    /* asctime: the day has two columns, and a zero is a digit too */
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Sun Nov 06 08:49:37 1994", 784111777},
    {"Wed Nov 16 08:49:37 1994", 784975777},
    {"Tue Feb 29 00:00:00 2000", 951782400},
    /* RFC 850, relative to November 2026 */
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Saturday, 21-Nov-26 02:13:54 GMT", NOW},
    {"Tuesday, 01-Jan-80 00:00:00 GMT", 315532800},
    {"Tuesday, 29-Feb-00 00:00:00 GMT", 951782400},
    {"Monday, 30-Dec-30 00:00:00 GMT", 1924819200},
    {"Wednesday, 01-Jan-76 00:00:00 GMT", INT64_C(3345062400)},
    /* exactly 50 years ahead is not more than 50; a second later is */
    {"Saturday, 21-Nov-76 02:13:54 GMT", INT64_C(3373150434)},
    {"Sunday, 21-Nov-76 02:13:55 GMT", 217390435},
    {"Saturday, 01-Jan-77 00:00:00 GMT", 220924800},
};

/* The name of a day that it was not. */
static const struct date_case other_days[] = {
    {"Mon, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Monday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Mon Nov  6 08:49:37 1994", 784111777},
    {"Sun, 31 Dec 2016 23:59:60 GMT", 1483228800},
    {"Mon, 29 Feb 2000 00:00:00 GMT", 951782400},
};

static const struct date_case leap_seconds[] = {
    {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
    {"Saturday, 31-Dec-16 23:59:60 GMT", 1483228800},
    {"Sat Dec 31 23:59:60 2016", 1483228800},
    {"Tue, 30 Jun 2015 23:59:60 GMT", 1435708800},
};

static const char *const not_dates[] = {
    "",
    " ",
    "0",
    "784111777",
    "Sun",
    "Sun, 06 Nov 1994 08:49:37 GM",
    "Sun, 06 Nov 1994 08:49:37 GMT ",
    " Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMTx",
    "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 +0000",
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 06 Nov 1994 08:49 GMT",
    "Sun,06 Nov 1994 08:49:37 GMT",
    "Sun 06 Nov 1994 08:49:37 GMT",
    "Sun,  6 Nov 1994 08:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 006 Nov 1994 08:49:37 GMT",
    "Sun, 06  Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 94 08:49:37 GMT",
    "Sun, 06 Nov 01994 08:49:37 GMT",
    "Sun, 06 Nov +994 08:49:37 GMT",
    "Sun, 06 Nov -994 08:49:37 GMT",
    "Sun, 06 Nov 1994 8:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:3x GMT",
    "Sun, 06\tNov 1994 08:49:37 GMT",
    "06 Nov 1994 08:49:37 GMT",
    /* case counts */
    "sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 nov 1994 08:49:37 GMT",
    "SUN, 06 NOV 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 gmt",
    /* names */
    "Sux, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nox 1994 08:49:37 GMT",
    "Sunday, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 November 1994 08:49:37 GMT",
    "Sun, 06-Nov-94 08:49:37 GMT",
    "Sunday, 06-Nov-1994 08:49:37 GMT",
    "Sunday, 06 Nov 94 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994",
    "Sun Nov   6 08:49:37 1994",
    "Sun Nov  16 08:49:37 1994",
    "Sun Nov  6 08:49:37 94",
    "Sat Jan  1 00:00:00 ", /* would be right for the year 0 */
    "Sun Nov  6 08:49:37 1994 GMT",
    "Sun, Nov  6 08:49:37 1994",
    "Sunday Nov  6 08:49:37 1994",
};

static const char *const impossible[] = {
    "Sun, 00 Nov 1994 08:49:37 GMT",
    "Fri, 31 Feb 2023 00:00:00 GMT",
    "Fri, 03 Mar 2023 24:00:00 GMT",
    "Wed, 31 Apr 2024 00:00:00 GMT",
    "Thu, 32 Jan 2026 00:00:00 GMT",
    "Fri, 32 Dec 2027 00:00:00 GMT",
    "Wed, 29 Feb 2023 00:00:00 GMT",
    "Thu, 29 Feb 1900 00:00:00 GMT",
    "Mon, 29 Feb 2100 00:00:00 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:60:00 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT",
    "Sun, 06 Nov 1994 99:99:99 GMT",
    "Sun Nov  0 08:49:37 1994",
    "Wednesday, 29-Feb-23 00:00:00 GMT",
    /* a leap second is the last one of a day */
    "Sun, 06 Nov 1994 08:49:60 GMT",
    "Sun, 06 Nov 1994 23:58:60 GMT",
    "Sun, 06 Nov 1994 23:59:61 GMT",
};

/* An exact copy on the heap: reading past its end is found by the sanitizer. */
static bool
parse(const char *text, time_t now, time_t *t)
{
	size_t n = strlen(text);
	SCOPED(free_at) char *copy = malloc(n + (n == 0));
	bool ok;

	assert_non_null(copy);
	memcpy(copy, text, n);
	ok = date_parse((struct str){copy, n}, now, t);
	return ok;
}

static void
expect_parsed(const struct date_case *cases, size_t count, time_t now)
{
	for (size_t i = 0; i < count; i++) {
		time_t t = 42;

		if (!parse(cases[i].dc_text, now, &t))
			fail_msg("refused: %s", cases[i].dc_text);
		if (t != cases[i].dc_time)
			fail_msg("%s: read as %lld, not %lld", cases[i].dc_text,
			    (long long)t, (long long)cases[i].dc_time);
	}
}

TEST(imf_fixdate_is_written)
{
	char buf[DATE_LEN + 1];

	for (size_t i = 0; i < COUNT(written); i++) {
		memset(buf, 'x', sizeof(buf));
		date_format(written[i].dc_time, buf);
		assert_string_equal(buf, written[i].dc_text);
		assert_int_equal(strlen(buf), DATE_LEN);
	}
}

TEST(years_without_four_digits_are_clamped)
{
	char buf[DATE_LEN + 1];

	date_format(YEAR_9999 + 1, buf);
	assert_string_equal(buf, "Fri, 31 Dec 9999 23:59:59 GMT");
	date_format(INT64_MAX, buf);
	assert_string_equal(buf, "Fri, 31 Dec 9999 23:59:59 GMT");
	date_format(YEAR_0 - 1, buf);
	assert_string_equal(buf, "Sat, 01 Jan 0000 00:00:00 GMT");
	date_format(INT64_MIN, buf);
	assert_string_equal(buf, "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(imf_fixdate_is_read)
{
	expect_parsed(written, COUNT(written), NOW);
}

TEST(asctime_and_rfc850_are_read)
{
	expect_parsed(other_formats, COUNT(other_formats), NOW);
}

TEST(day_need_not_be_that_of_the_date)
{
	expect_parsed(other_days, COUNT(other_days), NOW);
}

TEST(leap_second_is_the_next_second)
{
	expect_parsed(leap_seconds, COUNT(leap_seconds), NOW);
}

TEST(two_digit_year_is_at_most_50_years_ahead)
{
	static const struct {
		int64_t now;
		struct date_case date;
	} cases[] = {
	    {INT64_C(946684799), /* the last second of 1999 */
		{"Saturday, 01-Jan-00 00:00:00 GMT", 946684800}},
	    {INT64_C(946684800), /* a second later */
		{"Friday, 31-Dec-99 23:59:59 GMT", 946684799}},
	    {INT64_C(3786912000), /* 2090: its next decade is near */
		{"Wednesday, 01-Jan-10 00:00:00 GMT", INT64_C(4417977600)}},
	    {0, {"Wednesday, 01-Jan-20 00:00:00 GMT", 1577836800}},
	    {0, {"Thursday, 01-Jan-20 00:00:01 GMT", -1577923199}},
	    /* 29 Feb has no 50th anniversary: 1 Mar is it */
	    {INT64_C(1709164800),
		{"Thursday, 01-Mar-74 00:00:00 GMT", INT64_C(3287088000)}},
	    {INT64_C(1709164800),
		{"Friday, 01-Mar-74 00:00:01 GMT", 131328001}},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		expect_parsed(&cases[i].date, 1, cases[i].now);
}

static void
expect_refused(const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		time_t t = 42;

		if (parse(texts[i], NOW, &t))
			fail_msg("read as %lld: %s", (long long)t, texts[i]);
		assert_int_equal(t, 42);
	}
}

TEST(malformed_dates_are_refused)
{
	time_t t;

	expect_refused(not_dates, COUNT(not_dates));
	assert_false(date_parse((struct str){NULL, 0}, NOW, &t));
	assert_false(
	    date_parse(STR("Sun, 06 Nov 1994 08:49:37 GMT\0"), NOW, &t));
}

TEST(impossible_dates_are_refused)
{
	expect_refused(impossible, COUNT(impossible));
}

TEST(every_prefix_of_a_date_is_refused)
{
	static const char *const dates[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
	    "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"};
	char prefix[64];
	time_t t;

	for (size_t i = 0; i < COUNT(dates); i++)
		for (size_t n = 0; n < strlen(dates[i]); n++) {
			snprintf(
			    prefix, sizeof(prefix), "%.*s", (int)n, dates[i]);
			assert_false(parse(prefix, NOW, &t));
		}
}

static void
expect_round_trip(time_t t)
{
	static const char *const formats[] = {
	    "%a, %d %b %Y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"};
	char buf[DATE_LEN + 1], libc[64];
	struct tm tm;
	time_t back;

	assert_non_null(gmtime_r(&t, &tm));
	assert_int_equal(timegm(&tm), t);
	for (size_t i = 0; i < COUNT(formats); i++) {
		/* not every libc pads the year with zeros */
		assert_true(tm.tm_year + 1900 >= 1000);
		strftime(libc, sizeof(libc), formats[i], &tm);
		assert_true(parse(libc, NOW, &back));
		assert_int_equal(back, t);
		if (i == 0) {
			date_format(t, buf);
			assert_string_equal(buf, libc);
		}
	}
	strftime(libc, sizeof(libc), "%A, %d-%b-%y %H:%M:%S GMT", &tm);
	assert_true(parse(libc, t, &back));
	assert_int_equal(back, t);
}

TEST(random_times_agree_with_the_c_library)
{
	const int64_t first = INT64_C(-30610224000); /* year 1000 */
	uint64_t x = 20261121;

	for (int i = 0; i < 20000; i++) {
		uint64_t r = next_random(&x);

		expect_round_trip(
		    first + (int64_t)(r % (uint64_t)(YEAR_9999 - first)));
	}
}

TEST(every_day_of_the_unix_era_agrees_with_the_c_library)
{
	for (time_t day = 0; day <= INT32_MAX; day += 86400)
		expect_round_trip(day + 86399);
}
