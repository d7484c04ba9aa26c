/*
 * server/http/mime.h against a search line by line.
 * Input: "PATH\n" and the table.
 */
#include "fuzz.h"
#include "server/http/mime.h"

static const char space[] = " \t\r\v\f";

static bool
type_valid(const char *type)
{
	static const char visible[] =
	    "!\"#$%&'()*+,-.0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
	    "abcdefghijklmnopqrstuvwxyz{|}~";
	size_t major = strspn(type, visible), minor;

	if (major == 0 || type[major] != '/')
		return false;
	minor = strspn(type + major + 1, visible);
	return minor > 0 && type[major + 1 + minor] == '\0';
}

static const char *
extension(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot;
	const char *base = slash == NULL ? path : slash + 1;

	dot = strrchr(base, '.');
	return dot == NULL || dot == base ? NULL : dot + 1;
}

/* One line; false: it is wrong.  *type: of the first that has the extension. */
static bool
search(char *line, const char *ext, char **type)
{
	char *word, *found = NULL, *first = NULL;

	line[strcspn(line, "#")] = '\0';
	while ((word = strsep(&line, space)) != NULL) {
		if (*word == '\0')
			continue;
		if (first == NULL) {
			first = word;
			if (!type_valid(word))
				return false;
			continue;
		}
		if (*word == '.')
			return false;
		if (ext != NULL && strcasecmp(word, ext) == 0)
			found = first;
	}
	if (*type == NULL && found != NULL)
		*type = found;
	return true;
}

/* The number of the first line that is wrong, or 0. */
static unsigned
naive(char *table, const char *path, char **type)
{
	const char *ext = extension(path);
	unsigned number = 0;
	char *line;

	*type = NULL;
	while ((line = strsep(&table, "\n")) != NULL) {
		number++;
		if (!search(line, ext, type))
			return number;
	}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	char *path = fuzz_text(line), *table = fuzz_text(in);
	char *copy = strdup(table), *type, err[200] = "", expected[40];
	struct mime *m = mime_parse(table, "t", err, sizeof(err));
	unsigned wrong;

	CHECK(copy != NULL);
	wrong = naive(copy, path, &type);
	CHECK((m == NULL) == (wrong != 0));
	if (wrong != 0) {
		snprintf(expected, sizeof(expected), "t:%u: ", wrong);
		CHECK(strncmp(err, expected, strlen(expected)) == 0);
		CHECK(strlen(err) > strlen(expected));
	} else {
		CHECK(
		    strcmp(mime_type(m, path, "application/octet-stream"),
			type != NULL ? type : "application/octet-stream") == 0);
		mime_destroy(&m);
	}
	free(copy);
	free(table);
	free(path);
	return 0;
}
