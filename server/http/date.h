/* date: parses and writes HTTP dates (RFC 9110, section 5.6.7).  Pure: no clock, no locale. */
#ifndef SERVER_HTTP_DATE_H
#define SERVER_HTTP_DATE_H

#include <stdbool.h>
#include <time.h>

#include "server/util/str.h"

#define DATE_LEN 29 /* bytes of "Sun, 06 Nov 1994 08:49:37 GMT" */

/*
 * Writes an IMF-fixdate and a NUL into `buf`.  `t` is in seconds since the epoch.  For a time
 * outside the years 0 to 9999, writes the nearest date in these years.
 */
void date_format(time_t t, char buf[static DATE_LEN + 1]);

/*
 * Parses a date in one of the three formats that a server must accept: IMF-fixdate, RFC 850 and
 * asctime.  Two digits of a year (RFC 850) mean the latest year that ends in these digits and for
 * which the date is at most 50 years after `now`.  Returns false if the text is not exactly a date,
 * or if the date is impossible (31 Feb).  The name of the day must be valid, but need not match the
 * date.  The leap second 23:59:60 becomes the next second.
 */
bool date_parse(struct str s, time_t now, time_t *t);

#endif
