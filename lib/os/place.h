/*
 * place: where the bytes of a file are on a disk, for disks that seek (lib/disk/sweep.h).
 */
#ifndef LIB_OS_PLACE_H
#define LIB_OS_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns true if the device is a disk that rotates, or a virtual one that pretends to.  Reads sysfs. */
bool os_rotates(dev_t dev);

/*
 * Sets *place to the place on its device of the file's byte at `off`.  May wait for the disk.  Returns 0
 * or -errno.
 */
int os_place(int fd, off_t off, uint64_t *place);

#endif
