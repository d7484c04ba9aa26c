/*
 * attribute: writes an extended attribute of a file in the user namespace; os_attribute
 * (lib/os/os.h) reads it.
 */
#ifndef SERVER_TOOL_ATTRIBUTE_H
#define SERVER_TOOL_ATTRIBUTE_H

#include <stddef.h>

/*
 * Writes the attribute.  Returns 0 or -errno: -EOPNOTSUPP if the file system has no user
 * attributes; -EACCES or -EPERM if this user may not write the file.  The descriptor need not be
 * open for writing.
 */
int attribute_write(int fd, const char *name, const char *text, size_t len);

#endif
