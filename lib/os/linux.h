/*
 * linux: functions that the linux*.c files share.
 */
#ifndef LIB_OS_LINUX_H
#define LIB_OS_LINUX_H

#include <stdint.h>

/* Returns the number at the beginning of a file of /proc or /sys, or 0 if there is none. */
uint64_t os_linux_number(const char *path);

/*
 * Read the facts about users and capabilities that os_owner depends on.  os_owner reads these at its
 * first call.  Call os_linux_learn_ids, which reads /proc, and os_linux_learn_rights, which checks the
 * calling thread, when the facts change, or before they can no longer be read.
 */
void os_linux_learn_ids(void);
void os_linux_learn_rights(void);

#endif
