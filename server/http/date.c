/*
 * date: HTTP dates to and from seconds since the epoch.  Calendar arithmetic is
 * done here, because strptime(3) follows the locale and gmtime(3) takes a lock.
 */
#include "server/http/date.h"

#include <stdint.h>

#define SECONDS_PER_DAY 86400
#define DAYS_PER_ERA	146097 /* 400 Gregorian years */

/* What fits into four digits of year. */
#define DATE_MIN INT64_C(-62167219200) /* 1 Jan 0000, 00:00:00 */
#define DATE_MAX INT64_C(253402300799) /* 31 Dec 9999, 23:59:59 */

struct when {
	int wh_year;
	int wh_mon; /* 0 to 11 */
	int wh_mday;
	int wh_wday; /* 0 is Sunday */
	int wh_hour;
	int wh_min;
	int wh_sec;
};

static const char *const day_names[] = {"Sunday", "Monday", "Tuesday",
    "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"Jan", "Feb", "Mar", "Apr", "May",
    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/*
 * Both conversions count years from March, which puts the leap day last, and in
 * eras of 400 years, after which the calendar repeats.
 */
static int64_t
days_from_date(int64_t year, int mon, int mday)
{
	int64_t y = mon < 2 ? year - 1 : year;
	int64_t era = floor_div(y, 400);
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * ((mon + 10) % 12) + 2) / 5 + mday - 1;

	return era * DAYS_PER_ERA + yoe * 365 + yoe / 4 - yoe / 100 + doy -
	       719468;
}

static void
date_from_days(int64_t days, struct when *w)
{
	int64_t era = floor_div(days + 719468, DAYS_PER_ERA);
	int64_t doe = days + 719468 - era * DAYS_PER_ERA;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	w->wh_mday = (int)(doy - (153 * mp + 2) / 5 + 1);
	w->wh_mon = (int)((mp + 2) % 12);
	w->wh_year = (int)(yoe + era * 400 + (w->wh_mon < 2));
}

static int
weekday(int64_t days)
{
	int64_t thursday = days + 4; /* that was 1 Jan 1970 */

	return (int)(thursday - floor_div(thursday, 7) * 7);
}

static void
break_down(int64_t t, struct when *w)
{
	int64_t days = floor_div(t, SECONDS_PER_DAY);
	int sec = (int)(t - days * SECONDS_PER_DAY);

	date_from_days(days, w);
	w->wh_wday = weekday(days);
	w->wh_hour = sec / 3600;
	w->wh_min = sec / 60 % 60;
	w->wh_sec = sec % 60;
}

static char *
put_digits(char *p, int n, int v)
{
	for (int i = n - 1; i >= 0; i--, v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + n;
}

static char *
put_text(char *p, const char *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}

void
date_format(time_t t, char buf[static DATE_LEN + 1])
{
	struct when w;
	int64_t v = t;
	char *p = buf;

	if (v < DATE_MIN)
		v = DATE_MIN;
	if (v > DATE_MAX)
		v = DATE_MAX;
	break_down(v, &w);
	p = put_text(p, day_names[w.wh_wday], 3);
	p = put_text(p, ", ", 2);
	p = put_digits(p, 2, w.wh_mday);
	p = put_text(p, " ", 1);
	p = put_text(p, month_names[w.wh_mon], 3);
	p = put_text(p, " ", 1);
	p = put_digits(p, 4, w.wh_year);
	p = put_text(p, " ", 1);
	p = put_digits(p, 2, w.wh_hour);
	p = put_text(p, ":", 1);
	p = put_digits(p, 2, w.wh_min);
	p = put_text(p, ":", 1);
	p = put_digits(p, 2, w.wh_sec);
	put_text(p, " GMT", 5);
}

static void
advance(struct str *s, size_t n)
{
	s->s_ptr += n;
	s->s_len -= n;
}

static bool
scan_digits(struct str *s, size_t n, int *v)
{
	*v = 0;
	if (s->s_len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s->s_ptr[i] < '0' || s->s_ptr[i] > '9')
			return false;
		*v = *v * 10 + (s->s_ptr[i] - '0');
	}
	advance(s, n);
	return true;
}

/* cut: how much of each name counts.  Case does (RFC 9110, 5.6.7). */
static bool
scan_name(
    struct str *s, const char *const *names, int count, size_t cut, int *v)
{
	for (*v = 0; *v < count; (*v)++) {
		size_t n = strnlen(names[*v], cut);

		if (s->s_len >= n && memcmp(s->s_ptr, names[*v], n) == 0) {
			advance(s, n);
			return true;
		}
	}
	return false;
}

static bool
scan_conversion(struct str *s, char conversion, struct when *w)
{
	switch (conversion) {
	case 'a':
		return scan_name(s, day_names, 7, 3, &w->wh_wday);
	case 'A':
		return scan_name(s, day_names, 7, SIZE_MAX, &w->wh_wday);
	case 'b':
		return scan_name(s, month_names, 12, 3, &w->wh_mon);
	case 'd':
		return scan_digits(s, 2, &w->wh_mday);
	case 'e':
		if (s->s_len == 0 || s->s_ptr[0] != ' ')
			return scan_digits(s, 2, &w->wh_mday);
		advance(s, 1);
		return scan_digits(s, 1, &w->wh_mday);
	case 'H':
		return scan_digits(s, 2, &w->wh_hour);
	case 'M':
		return scan_digits(s, 2, &w->wh_min);
	case 'S':
		return scan_digits(s, 2, &w->wh_sec);
	case 'y':
		return scan_digits(s, 2, &w->wh_year);
	case 'Y':
		return scan_digits(s, 4, &w->wh_year);
	}
	return false;
}

/* A strptime without locale and without tolerance for white space. */
static bool
scan(struct str s, const char *format, struct when *w)
{
	for (const char *f = format; *f != '\0'; f++) {
		if (*f == '%') {
			if (!scan_conversion(&s, *++f, w))
				return false;
		} else {
			if (s.s_len == 0 || *s.s_ptr != *f)
				return false;
			advance(&s, 1);
		}
	}
	return s.s_len == 0;
}

static int
days_in_month(int year, int mon)
{
	return (int)(days_from_date(year + (mon == 11), (mon + 1) % 12, 1) -
		     days_from_date(year, mon, 1));
}

/* The day of the week follows from the date: a wrong name says nothing. */
static bool
is_possible(const struct when *w)
{
	bool leap = w->wh_hour == 23 && w->wh_min == 59 && w->wh_sec == 60;

	return w->wh_mday >= 1 &&
	       w->wh_mday <= days_in_month(w->wh_year, w->wh_mon) &&
	       w->wh_hour < 24 && w->wh_min < 60 && (w->wh_sec < 60 || leap);
}

static int64_t
seconds_from_date(const struct when *w, int year)
{
	int64_t days = days_from_date(year, w->wh_mon, w->wh_mday);
	int64_t hours = days * 24 + w->wh_hour;

	return (hours * 60 + w->wh_min) * 60 + w->wh_sec;
}

/* The latest year with these two digits that is at most 50 years ahead. */
static int
full_year(const struct when *w, time_t now)
{
	struct when n;
	int limit, year;

	break_down(now, &n);
	limit = n.wh_year + 50;
	year = (int)floor_div(limit - w->wh_year, 100) * 100 + w->wh_year;
	if (year == limit &&
	    seconds_from_date(w, year) > seconds_from_date(&n, limit))
		year -= 100;
	return year;
}

bool
date_parse(struct str s, time_t now, time_t *t)
{
	struct when w;
	int64_t v;

	if (s.s_ptr == NULL)
		return false;
	if (scan(s, "%A, %d-%b-%y %H:%M:%S GMT", &w))
		w.wh_year = full_year(&w, now);
	else if (!scan(s, "%a, %d %b %Y %H:%M:%S GMT", &w) &&
		 !scan(s, "%a %b %e %H:%M:%S %Y", &w))
		return false;

	if (!is_possible(&w))
		return false;
	v = seconds_from_date(&w, w.wh_year);
	*t = (time_t)v;
	return *t == v;
}
