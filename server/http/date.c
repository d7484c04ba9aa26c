/*
 * date: converts HTTP dates to and from seconds since the epoch.  Does not use strptime(3) and
 * strftime(3), because their results depend on the locale.  The first call of gmtime_r(3) or
 * timegm(3) in glibc reads files while it holds a lock, so main calls tzset(3) before any thread
 * starts.
 */
#include "server/http/date.h"

#include <stdint.h>

#define YEAR_BASE 1900 /* year for which tm_year is 0 */

/* Limits of the years with four digits. */
#define DATE_MIN INT64_C(-62167219200) /* 1 Jan 0000, 00:00:00 */
#define DATE_MAX INT64_C(253402300799) /* 31 Dec 9999, 23:59:59 */

static const char *const day_names[] = {"Sunday", "Monday", "Tuesday",
    "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"Jan", "Feb", "Mar", "Apr", "May",
    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

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
	struct tm w;
	char *p = buf;

	if (t < DATE_MIN)
		t = DATE_MIN;
	if (t > DATE_MAX)
		t = DATE_MAX;
	gmtime_r(&t, &w);
	p = date_put_text(p, day_names[w.tm_wday], 3);
	p = date_put_text(p, ", ", 2);
	p = date_put_digits(p, 2, w.tm_mday);
	p = date_put_text(p, " ", 1);
	p = date_put_text(p, month_names[w.tm_mon], 3);
	p = date_put_text(p, " ", 1);
	p = date_put_digits(p, 4, w.tm_year + YEAR_BASE);
	p = date_put_text(p, " ", 1);
	p = date_put_digits(p, 2, w.tm_hour);
	p = date_put_text(p, ":", 1);
	p = date_put_digits(p, 2, w.tm_min);
	p = date_put_text(p, ":", 1);
	p = date_put_digits(p, 2, w.tm_sec);
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

/*
 * Skips one of the names, and sets *v to its index.  Compares only `cut` bytes.  Case matters (RFC
 * 9110, 5.6.7).
 */
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
date_scan_conversion(struct str *s, char conversion, struct tm *w)
{
	switch (conversion) {
	case 'a':
		return date_scan_name(s, day_names, 7, 3, &w->tm_wday);
	case 'A':
		return date_scan_name(s, day_names, 7, SIZE_MAX, &w->tm_wday);
	case 'b':
		return date_scan_name(s, month_names, 12, 3, &w->tm_mon);
	case 'd':
		return date_scan_digits(s, 2, &w->tm_mday);
	case 'e':
		if (s->s_len == 0 || s->s_ptr[0] != ' ')
			return date_scan_digits(s, 2, &w->tm_mday);
		date_advance(s, 1);
		return date_scan_digits(s, 1, &w->tm_mday);
	case 'H':
		return date_scan_digits(s, 2, &w->tm_hour);
	case 'M':
		return date_scan_digits(s, 2, &w->tm_min);
	case 'S':
		return date_scan_digits(s, 2, &w->tm_sec);
	case 'y':
		return date_scan_digits(s, 2, &w->tm_year);
	case 'Y':
		return date_scan_digits(s, 4, &w->tm_year);
	}
	return false;
}

/* Parses a date as strptime(3) does, but without locale and without extra white space. */
static bool
date_scan(struct str s, const char *format, struct tm *w)
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

/* Returns true if the day and the time of day exist.  Ignores the day of the week. */
static bool
date_is_possible(const struct tm *w)
{
	bool leap = w->tm_hour == 23 && w->tm_min == 59 && w->tm_sec == 60;
	struct tm day = {
	    .tm_year = w->tm_year, .tm_mon = w->tm_mon, .tm_mday = w->tm_mday};

	/* timegm turns a 31st of June into the 1st of July, which changes tm_mon. */
	timegm(&day);
	return w->tm_mday >= 1 && day.tm_mon == w->tm_mon && w->tm_hour < 24 &&
	       w->tm_min < 60 && (w->tm_sec < 60 || leap);
}

static time_t
date_seconds(struct tm w)
{
	return timegm(&w);
}

/*
 * Replaces the two digits in tm_year by the latest year that ends in these digits and is at most 50
 * years after `now`.
 */
static void
date_complete_year(struct tm *w, time_t now)
{
	int digits = w->tm_year, limit;
	struct tm n;

	gmtime_r(&now, &n);
	limit = n.tm_year + 50;
	w->tm_year = limit - (limit + YEAR_BASE - digits) % 100;
	n.tm_year = limit;
	if (w->tm_year == limit && date_seconds(*w) > date_seconds(n))
		w->tm_year -= 100;
}

bool
date_parse(struct str s, time_t now, time_t *t)
{
	struct tm w = {0};

	if (s.s_ptr == NULL)
		return false;
	if (date_scan(s, "%A, %d-%b-%y %H:%M:%S GMT", &w))
		date_complete_year(&w, now);
	else if (date_scan(s, "%a, %d %b %Y %H:%M:%S GMT", &w) ||
		 date_scan(s, "%a %b %e %H:%M:%S %Y", &w))
		w.tm_year -= YEAR_BASE;
	else
		return false;

	if (!date_is_possible(&w))
		return false;
	*t = date_seconds(w);
	return true;
}
