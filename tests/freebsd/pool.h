/*
 * pool: a ZFS pool on a disk of its own.
 */
#ifndef TESTS_FREEBSD_POOL_H
#define TESTS_FREEBSD_POOL_H

#include <stdbool.h>

#define POOL_ROOT "data/zfs" /* where the pool's file system is mounted */

/* Returns true if the system has zpool(8). */
bool pool_is_possible(void);

/* Makes the pool and mounts it.  zpool(8) loads the kernel module. */
bool pool_make(void);

/* Exports and imports the pool, so that nothing of it is in memory.  No file may be open. */
bool pool_evict(void);

/* Returns the bytes of the ARC, ZFS' own cache. */
long pool_arc_bytes(void);

#endif
