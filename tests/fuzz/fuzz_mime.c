/*
 * server/http/mime.h against a search line by line.
 * Input: "PATH\n" and the table.
 */
#include "fuzz.h"
#include "server/http/mime.h"

static const char space[] = " \t\r\v\f";

/* A line's words, of which the first ones are the type with its parameters. */
struct words {
	char *wo_type; /* the words of the type, joined; NULL: an empty line */
	const char *wo_ext; /* the extension that is looked for, or NULL */
	bool wo_found;
	bool wo_dotted; /* an extension begins with its dot */
};

static bool
type_valid(const char *type)
{
	static const char token[] =
	    "!\"#$%&'()*+,-.0123456789:<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
	    "abcdefghijklmnopqrstuvwxyz{|}~";
	size_t major = strspn(type, token), len = strlen(type), minor, i;

	if (major == 0 || type[major] != '/')
		return false;
	minor = strspn(type + major + 1, token);
	if (minor == 0 ||
	    (type[major + 1 + minor] != '\0' && type[major + 1 + minor] != ';'))
		return false;
	for (i = 0; i < len; i++)
		if (strchr(token, type[i]) == NULL &&
		    strchr("/; ", type[i]) == NULL)
			return false;
	return type[len - 1] != ';' && len <= 127;
}

/* One space is behind each word that ends in ';', and none before a ';'. */
static void
join(char **type, const char *word)
{
	size_t room = strlen(*type) + strlen(word) + 3;
	char *longer = malloc(room);
	bool open = (*type)[strlen(*type) - 1] == ';';
	int n;

	CHECK(longer != NULL);
	n = snprintf(longer, room, "%s%s", *type, open ? " " : ";");
	if (!open && *++word != '\0')
		longer[n++] = ' ';
	strcpy(longer + n, word);
	free(*type);
	*type = longer;
}

/* A word belongs to the type if it begins with ';', or the one before it ends in ';'. */
static void
take_word(struct words *wo, const char *word, bool *in_type)
{
	if (wo->wo_type == NULL) {
		wo->wo_type = strdup(word);
		CHECK(wo->wo_type != NULL);
		*in_type = true;
		return;
	}
	if (*in_type &&
	    (wo->wo_type[strlen(wo->wo_type) - 1] == ';' || word[0] == ';')) {
		join(&wo->wo_type, word);
		return;
	}
	*in_type = false;
	wo->wo_dotted |= word[0] == '.';
	wo->wo_found |= wo->wo_ext != NULL && strcasecmp(word, wo->wo_ext) == 0;
}

static const char *
extension(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot;
	const char *base = slash == NULL ? path : slash + 1;

	dot = strrchr(base, '.');
	return dot == NULL || dot == base ? NULL : dot + 1;
}

/* One line; false: it is wrong.  *type: of the first that has the extension; the caller frees it. */
static bool
search(char *line, const char *ext, char **type)
{
	struct words wo = {.wo_ext = ext};
	bool in_type = false, valid;
	char *word;

	line[strcspn(line, "#")] = '\0';
	while ((word = strsep(&line, space)) != NULL)
		if (*word != '\0')
			take_word(&wo, word, &in_type);
	valid = wo.wo_type == NULL || (type_valid(wo.wo_type) && !wo.wo_dotted);
	if (*type == NULL && wo.wo_found)
		*type = wo.wo_type;
	else
		free(wo.wo_type);
	return valid;
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
	free(type);
	free(copy);
	free(table);
	free(path);
	return 0;
}
