/*
 * server/http/accept.h against a naive reading: members are copied out and looked at with
 * regular expressions.
 * Input: "NAME\n" and the value.
 */
#include <regex.h>

#include "fuzz.h"
#include "server/http/accept.h"
#include "server/http/chars.h"

#define TOKEN	  "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
#define QUOTED	  "\"([^\"\\]|\\\\.)*\""
#define PARAMETER "(" TOKEN "=(" TOKEN "|" QUOTED "))"
#define WEIGHT	  "(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?)"

static bool
matches(const char *text, const char *pattern)
{
	regex_t re;
	int error;

	CHECK(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) == 0);
	error = regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return error == 0;
}

/* Replaces what stands in quotes, so that a separator in it is none; false: no end. */
static bool
hide_quoted(char *text)
{
	bool in = false;

	for (; *text != '\0'; text++) {
		if (in && *text == '\\' && text[1] != '\0') {
			*text++ = 'x';
			*text = 'x';
		} else if (*text == '"')
			in = !in;
		else if (in)
			*text = 'x';
	}
	return !in;
}

static char *
trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	for (end = text + strlen(text);
	     end > text && strchr(" \t", end[-1]) != NULL; end--)
		end[-1] = '\0';
	return text;
}

/* The weight of parameters, ";a=b;q=0.5", or -1. */
static int
parameters(char *text)
{
	int weight = 1000;
	char *part;

	while ((part = strsep(&text, ";")) != NULL) {
		part = trim(part);
		if (*part == '\0')
			continue;
		if (!matches(part, "^" PARAMETER "$"))
			return -1;
		if (strncasecmp(part, "q=", 2) != 0)
			continue;
		if (!matches(part + 2, "^" WEIGHT "$"))
			return -1;
		weight = (int)(strtod(part + 2, NULL) * 1000 + 0.5);
	}
	return weight;
}

static int
closeness(const char *range, const char *name)
{
	char wild[256];

	if (strcasecmp(range, name) == 0 ||
	    (strcasecmp(name, "gzip") == 0 && strcasecmp(range, "x-gzip") == 0))
		return 3;
	if (strchr(name, '/') == NULL)
		return strcmp(range, "*") == 0;
	snprintf(wild, sizeof(wild), "%.*s/*", (int)strcspn(name, "/"), name);
	return strcasecmp(range, wild) == 0 ? 2
	       : strcmp(range, "*/*") == 0  ? 1
					    : 0;
}

static int
naive(char *list, const char *name)
{
	int best[4] = {-1, -1, -1, -1}, weight, close;
	char *member, *range, *cut = list;

	/* From an opening quote without an end on, nothing is a member. */
	if (!hide_quoted(list)) {
		cut = strrchr(list, '"');
		while (cut > list && cut[-1] != ',')
			cut--;
		*cut = '\0';
	}
	while ((member = strsep(&list, ",")) != NULL) {
		range = strsep(&member, ";");
		close = closeness(trim(range), name);
		weight = member == NULL ? 1000 : parameters(member);
		if (weight > best[close])
			best[close] = weight;
	}
	for (close = 3; close > 0; close--)
		if (best[close] >= 0)
			return best[close];
	return -1;
}

/* A name has no parameters, and a value no NUL and no control character. */
static bool
is_asked(struct str name, struct str value)
{
	size_t i, slashes = 0;

	for (i = 0; i < name.s_len; i++) {
		slashes += name.s_ptr[i] == '/';
		if (name.s_ptr[i] == '*' ||
		    (name.s_ptr[i] != '/' &&
			!chars_is(name.s_ptr[i], CHAR_TOKEN)))
			return false;
	}
	for (i = 0; i < value.s_len; i++)
		if (!chars_is(value.s_ptr[i], CHAR_TEXT))
			return false;
	return name.s_len > 0 && name.s_len < 100 && slashes < 2 &&
	       name.s_ptr[0] != '/' && name.s_ptr[name.s_len - 1] != '/';
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	char *name, *text, *copy;

	if (!is_asked(line, in))
		return 0;
	name = fuzz_text(line);
	text = fuzz_text(in);
	copy = fuzz_copy(in);
	CHECK(accept_weight((struct str){copy, in.s_len}, line) ==
	      naive(text, name));
	free(copy);
	free(text);
	free(name);
	return 0;
}
