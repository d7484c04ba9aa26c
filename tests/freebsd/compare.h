/*
 * compare: send paths beside each other, in turns: calls and context switches of the server's threads
 * per MiB of uncached files, and how long its loop sleeps.
 */
#ifndef TESTS_FREEBSD_COMPARE_H
#define TESTS_FREEBSD_COMPARE_H

/* Prints TAP.  Returns the status to exit with. */
int compare(unsigned rounds);

#endif
