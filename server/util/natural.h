/*
 * natural: the order of names in which "2" comes before "16".  Pure.
 */
#ifndef SERVER_UTIL_NATURAL_H
#define SERVER_UTIL_NATURAL_H

/*
 * Less than 0, 0 or more, as strcmp(3).  Digits that follow each other are compared as one
 * number of any length, everything else byte by byte; names that differ only in the zeros
 * before a number as strcmp does.  A total order, in the time that it takes to read both.
 */
int natural_compare(const char *, const char *);

#endif
