/*
 * natural: compares names so that "2" comes before "16".  Pure.
 */
#ifndef SERVER_UTIL_NATURAL_H
#define SERVER_UTIL_NATURAL_H

/*
 * Returns less than 0, 0, or more than 0, as strcmp(3) does.  A sequence of digits is compared as
 * one number of any length, everything else byte by byte; names that differ only in leading zeros
 * are ordered by strcmp.  The order is total, and the time is linear in the lengths of the names.
 */
int natural_compare(const char *, const char *);

#endif
