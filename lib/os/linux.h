/*
 * linux: what the os_linux*.c share.
 */
#ifndef LIB_OS_LINUX_H
#define LIB_OS_LINUX_H

#include <stdint.h>

/* Returns the number at the beginning of a file of /proc or /sys, or 0 if there is none. */
uint64_t os_linux_number(const char *path);

/*
 * Refresh the facts that os_owner uses where there is no cachestat(2).  os_owner reads them itself; call
 * these where they change or cannot be read later: the first reads /proc, the second checks the
 * calling thread.
 */
void os_linux_learn_ids(void);
void os_linux_learn_rights(void);

#endif
