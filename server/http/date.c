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
date_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/*
 * Both conversions count years from March, which puts the leap day last, and in
 * eras of 400 years, after which the calendar repeats.
 */
static int64_t
date_days_from_date(int64_t year, int mon, int mday)
{
	int64_t y = mon < 2 ? year - 1 : year;
	int64_t era = date_floor_div(y, 400);
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * ((mon + 10) % 12) + 2) / 5 + mday - 1;

	return era * DAYS_PER_ERA + yoe * 365 + yoe / 4 - yoe / 100 + doy -
	       719468;
}

static void
date_from_days(int64_t days, struct when *w)
{
	int64_t era = date_floor_div(days + 719468, DAYS_PER_ERA);
	int64_t doe = days + 719468 - era * DAYS_PER_ERA;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	w->wh_mday = (int)(doy - (153 * mp + 2) / 5 + 1);
	w->wh_mon = (int)((mp + 2) % 12);
	w->wh_year = (int)(yoe + era * 400 + (w->wh_mon < 2));
}

static int
date_weekday(int64_t days)
{
	int64_t thursday = days + 4; /* that was 1 Jan 1970 */

	return (int)(thursday - date_floor_div(thursday, 7) * 7);
}

static void
date_break_down(int64_t t, struct when *w)
{
	int64_t days = date_floor_div(t, SECONDS_PER_DAY);
	int sec = (int)(t - days * SECONDS_PER_DAY);

	date_from_days(days, w);
	w->wh_wday = date_weekday(days);
	w->wh_hour = sec / 3600;
	w->wh_min = sec / 60 % 60;
	w->wh_sec = sec % 60;
}

static char *
date_put_digits(char *p, int n, int v)
{
	for (int i = n - 1; i >= 0; i--, v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + n;
}

static char *
date_put_text(char *p, const char *s, size_t n)
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
	date_break_down(v, &w);
	p = date_put_text(p, day_names[w.wh_wday], 3);
	p = date_put_text(p, ", ", 2);
	p = date_put_digits(p, 2, w.wh_mday);
	p = date_put_text(p, " ", 1);
	p = date_put_text(p, month_names[w.wh_mon], 3);
	p = date_put_text(p, " ", 1);
	p = date_put_digits(p, 4, w.wh_year);
	p = date_put_text(p, " ", 1);
	p = date_put_digits(p, 2, w.wh_hour);
	p = date_put_text(p, ":", 1);
	p = date_put_digits(p, 2, w.wh_min);
	p = date_put_text(p, ":", 1);
	p = date_put_digits(p, 2, w.wh_sec);
	date_put_text(p, " GMT", 5);
}

static void
date_advance(struct str *s, size_t n)
{
	s->s_ptr += n;
	s->s_len -= n;
}

static bool
date_scan_digits(struct str *s, size_t n, int *v)
{
	*v = 0;
	if (s->s_len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s->s_ptr[i] < '0' || s->s_ptr[i] > '9')
			return false;
		*v = *v * 10 + (s->s_ptr[i] - '0');
	}
	date_advance(s, n);
	return true;
}

/* cut: how much of each name counts.  Case does (RFC 9110, 5.6.7). */
static bool
date_scan_name(
    struct str *s, const char *const *names, int count, size_t cut, int *v)
{
	for (*v = 0; *v < count; (*v)++) {
		size_t n = strnlen(names[*v], cut);

		if (s->s_len >= n && memcmp(s->s_ptr, names[*v], n) == 0) {
			date_advance(s, n);
			return true;
		}
	}
	return false;
}

static bool
date_scan_conversion(struct str *s, char conversion, struct when *w)
{
	switch (conversion) {
	case 'a':
		return date_scan_name(s, day_names, 7, 3, &w->wh_wday);
	case 'A':
		return date_scan_name(s, day_names, 7, SIZE_MAX, &w->wh_wday);
	case 'b':
		return date_scan_name(s, month_names, 12, 3, &w->wh_mon);
	case 'd':
		return date_scan_digits(s, 2, &w->wh_mday);
	case 'e':
		if (s->s_len == 0 || s->s_ptr[0] != ' ')
			return date_scan_digits(s, 2, &w->wh_mday);
		date_advance(s, 1);
		return date_scan_digits(s, 1, &w->wh_mday);
	case 'H':
		return date_scan_digits(s, 2, &w->wh_hour);
	case 'M':
		return date_scan_digits(s, 2, &w->wh_min);
	case 'S':
		return date_scan_digits(s, 2, &w->wh_sec);
	case 'y':
		return date_scan_digits(s, 2, &w->wh_year);
	case 'Y':
		return date_scan_digits(s, 4, &w->wh_year);
	}
	return false;
}

/* A strptime without locale and without tolerance for white space. */
static bool
date_scan(struct str s, const char *format, struct when *w)
{
	for (const char *f = format; *f != '\0'; f++) {
		if (*f == '%') {
			if (!date_scan_conversion(&s, *++f, w))
				return false;
		} else {
			if (s.s_len == 0 || *s.s_ptr != *f)
				return false;
			date_advance(&s, 1);
		}
	}
	return s.s_len == 0;
}

static int
date_days_in_month(int year, int mon)
{
	return (
	    int)(date_days_from_date(year + (mon == 11), (mon + 1) % 12, 1) -
		 date_days_from_date(year, mon, 1));
}

/* The day of the week follows from the date: a wrong name says nothing. */
static bool
date_is_possible(const struct when *w)
{
	bool leap = w->wh_hour == 23 && w->wh_min == 59 && w->wh_sec == 60;

	return w->wh_mday >= 1 &&
	       w->wh_mday <= date_days_in_month(w->wh_year, w->wh_mon) &&
	       w->wh_hour < 24 && w->wh_min < 60 && (w->wh_sec < 60 || leap);
}

static int64_t
date_seconds_from_date(const struct when *w, int year)
{
	int64_t days = date_days_from_date(year, w->wh_mon, w->wh_mday);
	int64_t hours = days * 24 + w->wh_hour;

	return (hours * 60 + w->wh_min) * 60 + w->wh_sec;
}

/* The latest year with these two digits that is at most 50 years ahead. */
static int
date_full_year(const struct when *w, time_t now)
{
	struct when n;
	int limit, year;

	date_break_down(now, &n);
	limit = n.wh_year + 50;
	year = (int)date_floor_div(limit - w->wh_year, 100) * 100 + w->wh_year;
	if (year == limit &&
	    date_seconds_from_date(w, year) > date_seconds_from_date(&n, limit))
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
	if (date_scan(s, "%A, %d-%b-%y %H:%M:%S GMT", &w))
		w.wh_year = date_full_year(&w, now);
	else if (!date_scan(s, "%a, %d %b %Y %H:%M:%S GMT", &w) &&
		 !date_scan(s, "%a %b %e %H:%M:%S %Y", &w))
		return false;

	if (!date_is_possible(&w))
		return false;
	v = date_seconds_from_date(&w, w.wh_year);
	*t = (time_t)v;
	return *t == v;
}
