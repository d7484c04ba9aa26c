/*
 * linux_memory: the memory that a process may use, according to its control groups (cgroups(7)).
 */
#ifndef LIB_OS_LINUX_MEMORY_H
#define LIB_OS_LINUX_MEMORY_H

#include "lib/os/os.h"

/*
 * Fills in the struct as os_memory does, but puts `root` before all file names, and uses `machine`
 * bytes if no group limits memory.  The lowest limit of the process's group and its ancestors
 * counts.
 */
void os_linux_memory(const char *root, uint64_t machine, struct os_memory *);

#endif
