/*
 * linux: what the os_linux*.c share.
 */
#ifndef LIB_OS_LINUX_H
#define LIB_OS_LINUX_H

#include <stdint.h>

/* The number that a file of /proc or /sys begins with; 0: there is no such file, or no number. */
uint64_t os_linux_number(const char *path);

/*
 * The facts that os_owner uses without cachestat(2).  It reads them itself; call these
 * where the answers change, or are not available later: the first reads /proc, the
 * second is about the calling thread.
 */
void os_linux_learn_ids(void);
void os_linux_learn_rights(void);

#endif
