/*
 * attribute: writes an extended attribute of a file in the namespace of users; os_attribute
 * (lib/os/os.h) reads it.
 */
#ifndef SERVER_TOOL_ATTRIBUTE_H
#define SERVER_TOOL_ATTRIBUTE_H

#include <stddef.h>

/*
 * 0, or -errno: -EOPNOTSUPP: the file system has none for users; -EACCES, -EPERM: this user may
 * not write the file, which the descriptor need not be open for.
 */
int attribute_write(int fd, const char *name, const char *text, size_t len);

#endif
