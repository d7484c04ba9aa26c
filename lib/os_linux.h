/*
 * os_linux: what the os_linux*.c share.
 */
#ifndef LIB_OS_LINUX_H
#define LIB_OS_LINUX_H

#include <stdint.h>

/* The number that a file of /proc or /sys begins with; 0: there is no such file, or no number. */
uint64_t os_linux_number(const char *path);

#endif
