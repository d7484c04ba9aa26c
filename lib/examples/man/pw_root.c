/*
 * Opens a root that follows no symbolic link, or a root with the default rule if the system lacks
 * that rule.
 */
#include <errno.h>
#include <pagewise.h>

int
root_open(const char *directory, struct pw_root **root)
{
	int error = pw_root_open_with(directory, PW_ROOT_NO_LINKS, root);

	if (error == -EOPNOTSUPP)
		error = pw_root_open(directory, root);
	return error;
}
