/*
 * attribute_linux: see attribute.h; xattr(7).
 */
#include <errno.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "server/tool/attribute.h"

int
attribute_write(int fd, const char *name, const char *text, size_t len)
{
	char full[64];

	snprintf(full, sizeof(full), "user.%s", name);
	return fsetxattr(fd, full, text, len, 0) == -1 ? -errno : 0;
}
