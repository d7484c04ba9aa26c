/*
 * static_error: see static_error.h.
 */
#include <errno.h>

#include "server/content/exchange.h"
#include "server/content/file_error.h"
#include "server/content/static_error.h"

int
static_error_status(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return 404;
	case -EACCES:
	case -EPERM:
	case -EXDEV: /* link that leads out of the root */
	case -ELOOP:
		return 403;
	case -EAGAIN:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return 503;
	default:
		return 500;
	}
}

bool
static_error_send(struct exchange *ex, int error)
{
	int status = static_error_status(error);

	if (status >= 500 && error != -EAGAIN)
		file_error_tell(ex, error);
	response_error(ex, status);
	return true;
}
