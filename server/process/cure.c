/*
 * cure: see cure.h.
 */
#include <errno.h>

#include "server/process/cure.h"

const char *
cure_of(int error)
{
	switch (error) {
	case -EMFILE:
		return "; raise ulimit -n";
	case -ENFILE:
		return "; raise the sysctl fs.file-max";
	case -ENOMEM:
		return "; give the server more memory, or lower workers";
	case -EAGAIN:
		return "; raise ulimit -u, or TasksMax of the unit";
	default:
		return "";
	}
}
