/*
 * Opens a directory below which no symbolic link is followed, or one with the usual rules if the system
 * lacks that rule.
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
