/*
 * glob: patterns of paths.  There are no regular expressions, so that matching time is bounded.
 */
#include <string.h>

#include "server/conf/conf_priv.h"

bool
conf_is_glob(const char *text)
{
	return strpbrk(text, "*?") != NULL;
}

/*
 * Matches a path.  On a mismatch extends the text of the last '*' by one byte; an earlier '*' needs
 * no backtracking.
 */
bool
conf_glob(const char *glob, const char *path, size_t len)
{
	const char *end = path + len, *star = NULL, *taken = NULL;

	while (path < end) {
		if (*glob == '*') {
			star = ++glob;
			taken = path;
		} else if (*glob != '\0' && (*glob == '?' || *glob == *path)) {
			glob++;
			path++;
		} else if (star != NULL) {
			glob = star;
			path = ++taken;
		} else
			return false;
	}
	return glob[strspn(glob, "*")] == '\0';
}
