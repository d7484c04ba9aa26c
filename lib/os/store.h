/*
 * store: files that a process keeps for itself, such as those of the tier.  Any thread may call
 * the functions.
 */
#ifndef LIB_OS_STORE_H
#define LIB_OS_STORE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * os_store_open opens or creates a file in the directory `dir` for reading and writing, and sets
 * *size to its size.  If `direct` is true, reads and writes bypass the page cache where the file
 * system permits that.  Returns a descriptor, or -errno; -EEXIST if the name is not a regular file
 * with a single link that the process owns.  os_store_extend extends the file to at least `size`
 * bytes.  Returns 0 or -errno; -ENOSPC if the file system has too little space.  Both may wait for
 * the disk.  Both return -EOPNOTSUPP on FreeBSD.
 */
int os_store_open(int dir, const char *name, bool direct, off_t *size);
int os_store_extend(int fd, off_t size);

#endif
