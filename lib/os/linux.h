/*
 * linux: functions that the linux*.c files share.
 */
#ifndef LIB_OS_LINUX_H
#define LIB_OS_LINUX_H

#include <stdint.h>

/* Returns the number at the beginning of a file of /proc or /sys, or 0 if there is none. */
uint64_t os_linux_number(const char *path);

/*
 * Read the facts about users and capabilities that os_owner depends on.  os_linux_learn_ids reads
 * /proc, and os_linux_learn_rights checks the calling thread.  Call both when these facts change,
 * and before the process loses the right to read them; otherwise os_owner reads them at its first
 * call.
 */
void os_linux_learn_ids(void);
void os_linux_learn_rights(void);

#endif
