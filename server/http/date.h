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
 * Writes IMF-fixdate and a NUL into buf.  t is seconds since the epoch; before
 * the year 0 and after 9999 the nearest date that has four digits is written.
 */
void date_format(time_t t, char buf[static DATE_LEN + 1]);

/*
 * Reads any of the three formats a server must accept (IMF-fixdate, RFC 850,
 * asctime).  now decides the century of RFC 850's two digits: it is the latest
 * one that does not put the date more than 50 years ahead.  False for anything
 * that is not exactly a date, impossible ones (31 Feb) included.  The name of
 * the day must be one, but need not be that of the date.  A leap second,
 * 23:59:60, is the second after it.
 */
bool date_parse(struct str s, time_t now, time_t *t);

#endif
