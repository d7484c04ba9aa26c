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

/*
 * Returns the length of a pattern of a shell or a regular expression at the start of `text`: [a-z], {a,b} or
 * (a|b).  Returns 0 if there is none.
 */
static size_t
conf_glob_foreign(const char *text)
{
	static const char *const kinds[] = {"[]", "{},", "()|"};
	const char *end;
	size_t len;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (*text != kinds[i][0])
			continue;
		end = strchr(text, kinds[i][1]);
		len = end == NULL ? 0 : (size_t)(end - text);
		if (len > 1 && (kinds[i][2] == '\0' ||
				   memchr(text, kinds[i][2], len) != NULL))
			return len + 1;
	}
	return 0;
}

void
conf_glob_warn(const char *file, int line, const char *what, const char *glob)
{
	size_t len = 0;
	const char *p;

	for (p = glob; *p != '\0' && len == 0; p++)
		len = conf_glob_foreign(p);
	if (len > 0)
		conf_say_at(NULL, "",
		    "warning: %s:%d: %s \"%s\" matches \"%.*s\" byte by byte, "
		    "since only * and ? are special: write a %s for each "
		    "alternative, or ? for any byte",
		    file, line, what, glob, (int)len, p - 1, what);
}
