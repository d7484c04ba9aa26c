/*
 * date: HTTP dates (RFC 9110, section 5.6.7).  Pure: no clock, no locale.
 */
#ifndef SERVER_HTTP_DATE_H
#define SERVER_HTTP_DATE_H

#include <stdbool.h>
#include <time.h>

#include "server/util/str.h"

#define DATE_LEN 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/*
 * Writes an IMF-fixdate and a NUL into `buf`.  `t` is in seconds since the epoch; for times before
 * the year 0 or after 9999 writes the nearest date that has a year of four digits.
 */
void date_format(time_t t, char buf[static DATE_LEN + 1]);

/*
 * Reads any of the three formats that a server must accept (IMF-fixdate, RFC 850, asctime).  The
 * two digits of a year in RFC 850 mean the latest such year that puts the date at most 50 years
 * after `now`.  Returns false for anything that is not exactly a date, or is an impossible one (31
 * Feb).  The name of the day must be valid, but need not match the date.  A leap second, 23:59:60,
 * is read as the second after it.
 */
bool date_parse(struct str s, time_t now, time_t *t);

#endif
