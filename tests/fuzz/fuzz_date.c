/*
 * server/http/date.h against sscanf(3), timegm(3) and snprintf(3): a text is a date if
 * it is what comes out when what was read from it is written again with one of the days' names.
 * Input: "NOW\n" and the text; NOW is also written as a date, and read again.
 */
#include <time.h>

#include "fuzz.h"
#include "server/http/date.h"

#define MIN INT64_C(-62167219200) /* 1 Jan 0000 */
#define MAX INT64_C(253402300799) /* 31 Dec 9999 */

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday",
    "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

enum format { IMF, RFC850, ASCTIME, ASCTIME_ZERO, FORMATS };

static void
write_date(const struct tm *tm, enum format format, char buf[static 128])
{
	const char *day = days[tm->tm_wday], *month = months[tm->tm_mon];
	int year = tm->tm_year + 1900;

	if (format == IMF)
		snprintf(buf, 128, "%.3s, %02d %s %04d %02d:%02d:%02d GMT", day,
		    tm->tm_mday, month, year, tm->tm_hour, tm->tm_min,
		    tm->tm_sec);
	else if (format == RFC850)
		snprintf(buf, 128, "%s, %02d-%s-%02d %02d:%02d:%02d GMT", day,
		    tm->tm_mday, month, year % 100, tm->tm_hour, tm->tm_min,
		    tm->tm_sec);
	else
		snprintf(buf, 128,
		    format == ASCTIME ? "%.3s %s %2d %02d:%02d:%02d %04d"
				      : "%.3s %s %02d %02d:%02d:%02d %04d",
		    day, month, tm->tm_mday, tm->tm_hour, tm->tm_min,
		    tm->tm_sec, year);
}

static bool
read_month(const char *name, struct tm *tm)
{
	for (tm->tm_mon = 0; tm->tm_mon < 12; tm->tm_mon++)
		if (strcmp(months[tm->tm_mon], name) == 0)
			return true;
	return false;
}

static bool
read_date(const char *text, enum format format, struct tm *tm)
{
	static const char *const patterns[] = {
	    "%*[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d",
	    "%*[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d",
	    "%*[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d"};
	char month[4];
	int n;

	*tm = (struct tm){0};
	if (format == IMF || format == RFC850)
		n = sscanf(text, patterns[format], &tm->tm_mday, month,
		    &tm->tm_year, &tm->tm_hour, &tm->tm_min, &tm->tm_sec);
	else
		n = sscanf(text, patterns[ASCTIME], month, &tm->tm_mday,
		    &tm->tm_hour, &tm->tm_min, &tm->tm_sec, &tm->tm_year);
	return n == 6 && tm->tm_year >= 0 && read_month(month, tm);
}

/* The same date and time, not the day of the week, is later. */
static bool
later(const struct tm *a, const struct tm *b)
{
	const int x[] = {a->tm_year, a->tm_mon, a->tm_mday, a->tm_hour,
	    a->tm_min, a->tm_sec};
	const int y[] = {b->tm_year, b->tm_mon, b->tm_mday, b->tm_hour,
	    b->tm_min, b->tm_sec};

	for (size_t i = 0; i < COUNT(x); i++)
		if (x[i] != y[i])
			return x[i] > y[i];
	return false;
}

/* tm_year: from two digits to years since 1900. */
static void
century(struct tm *tm, time_t now)
{
	struct tm limit;

	gmtime_r(&now, &limit);
	limit.tm_year += 50;
	tm->tm_year += (limit.tm_year + 1900) / 100 * 100 + 200 - 1900;
	while (later(tm, &limit))
		tm->tm_year -= 100;
}

static bool
naive(const char *text, enum format format, time_t now, time_t *t)
{
	struct tm tm, back;
	char again[128];
	bool leap;

	if (!read_date(text, format, &tm))
		return false;
	if (format == RFC850)
		century(&tm, now);
	else
		tm.tm_year -= 1900;
	leap = tm.tm_hour == 23 && tm.tm_min == 59 && tm.tm_sec == 60;
	tm.tm_sec -= leap;
	*t = timegm(&tm);
	gmtime_r(t, &back);
	back.tm_sec += leap;
	*t += leap;
	for (back.tm_wday = 0; back.tm_wday < 7; back.tm_wday++) {
		write_date(&back, format, again);
		if (strcmp(text, again) == 0)
			return true;
	}
	return false;
}

static void
check_format(time_t t)
{
	time_t clamped = t < MIN ? MIN : t > MAX ? MAX : t, back;
	char buf[DATE_LEN + 1], expected[128];
	struct tm tm;

	date_format(t, buf);
	gmtime_r(&clamped, &tm);
	write_date(&tm, IMF, expected);
	CHECK(strcmp(buf, expected) == 0);
	CHECK(date_parse(fuzz_str(buf), t, &back) && back == clamped);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	time_t now = fuzz_number(&line, 784111777), t, expected = 0;
	char *text = fuzz_text(in);
	bool one = false;
	int format;

	check_format(now);
	if (now < 0 || now > MAX)
		now = 0;
	for (format = 0; !one && format < FORMATS; format++)
		one = strlen(text) == in.s_len &&
		      naive(text, (enum format)format, now, &expected);
	CHECK(date_parse(in, now, &t) == one);
	if (one)
		CHECK(t == expected);
	free(text);
	return 0;
}
