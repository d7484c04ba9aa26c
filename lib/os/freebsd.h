/*
 * freebsd: a function that the files freebsd*.c share.
 */
#ifndef LIB_OS_FREEBSD_H
#define LIB_OS_FREEBSD_H

/* Returns the value of a sysctl(3) that is an int, or -errno.  Capsicum refuses most of them. */
int os_freebsd_sysctl(const char *name);

#endif
