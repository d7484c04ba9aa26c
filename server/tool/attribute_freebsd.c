/*
 * attribute_freebsd: see attribute.h; extattr(2).
 */
#include <sys/types.h>
#include <sys/extattr.h>

#include <errno.h>

#include "server/tool/attribute.h"

int
attribute_write(int fd, const char *name, const char *text, size_t len)
{
	ssize_t n = extattr_set_fd(fd, EXTATTR_NAMESPACE_USER, name, text, len);

	return n == -1 ? -errno : 0;
}
