/*
 * linux_memory: the memory that a process may have, cgroups(7).
 */
#ifndef LIB_OS_LINUX_MEMORY_H
#define LIB_OS_LINUX_MEMORY_H

#include "lib/os/os.h"

/*
 * As os_memory, with root before the names of all files and machine bytes of memory.  The least limit
 * of the process's group and of the groups above it counts.
 */
void os_linux_memory(const char *root, uint64_t machine, struct os_memory *);

#endif
