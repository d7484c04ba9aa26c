/*
 * text: the configuration file as text, made fit for libConfuse's lexer
 * (3.3), whose idea of words and strings this follows.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/util/text_file.h"

#define TEXT_MAX   ((size_t)16 << 20)
#define TEXT_CHUNK ((size_t)64 << 10)

/* place: "FILE:LINE: ", or empty. */
static void
say_at(const char *place, const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	for (char *p = text; *p != '\0'; p++) {
		if (iscntrl((unsigned char)*p))
			*p = '?';
	}
	fprintf(stderr, "%spagewise: %s%s\n", log_error_prefix(), place, text);
}

void
conf_vsay(const char *path, int line, const char *fmt, va_list ap)
{
	char place[PATH_MAX + sizeof(":2147483647: ")];

	snprintf(place, sizeof(place), "%s:%d: ", path, line);
	say_at(place, fmt, ap);
}

void
conf_say(const char *path, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	conf_vsay(path, line, fmt, ap);
	va_end(ap);
}

void
conf_say_at(const char *place, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_at(place, fmt, ap);
	va_end(ap);
}

static int
read_all(FILE *fp, char **text)
{
	char *grown, *buf = NULL;
	size_t len = 0, n;

	do {
		grown = realloc(buf, len + TEXT_CHUNK + 2);
		if (grown == NULL) {
			free(buf);
			return -ENOMEM;
		}
		buf = grown;
		n = fread(buf + len, 1, TEXT_CHUNK, fp);
		len += n;
	} while (n == TEXT_CHUNK && len < TEXT_MAX);
	memcpy(buf + len, "\n", 2);
	*text = buf;
	if (ferror(fp))
		return errno != 0 ? -errno : -EIO;
	if (len >= TEXT_MAX)
		return -EFBIG;
	return strlen(buf) != len + 1 ? -EILSEQ : 0;
}

int
conf_text_read(const char *path, char **text)
{
	FILE *fp;
	int error;

	*text = NULL;
	errno = 0;
	fp = text_file_open(path);
	if (fp == NULL)
		return -errno;
	error = read_all(fp, text);
	fclose(fp);
	if (error != 0) {
		free(*text);
		*text = NULL;
	}
	return error;
}

static char *
blank_line(char *p)
{
	size_t len = strcspn(p, "\n");

	memset(p, ' ', len);
	return p + len;
}

/* NULL if it does not end. */
static char *
blank_block(char *p, int *line)
{
	char *end = strstr(p + 2, "*/");

	if (end == NULL)
		return NULL;
	for (end += 2; p < end; p++) {
		if (*p == '\n')
			(*line)++;
		else
			*p = ' ';
	}
	return end;
}

/* Over "${NAME}" or "${NAME:-default}", which may have quotes in it. */
static char *
skip_variable(char *p)
{
	char *end = strchr(p, '}');

	return end != NULL ? end + 1 : p + 1;
}

/* NULL if it does not end. */
static char *
skip_string(char *p, int *line)
{
	char quote = *p++;

	for (; *p != quote; p++) {
		if (quote == '"' && p[0] == '$' && p[1] == '{')
			p = skip_variable(p) - 1;
		else if (p[0] == '\\' && p[1] != '\0')
			p++;
		if (*p == '\0')
			return NULL;
		if (*p == '\n')
			(*line)++;
	}
	return p + 1;
}

/* One word, or one character that is no part of a word. */
static char *
skip_word(char *p)
{
	size_t len = strcspn(p, " \t\r\n#\"'={}()+,*");

	return p + (len > 0 ? len : 1);
}

/* A string, comment or word; NULL if it does not end, and then what it is. */
static char *
skip_token(char *p, int *line, const char **what)
{
	if (*p == '#' || strncmp(p, "//", 2) == 0)
		return blank_line(p);
	if (strncmp(p, "/*", 2) == 0) {
		*what = "comment";
		return blank_block(p, line);
	}
	if (*p == '"' || *p == '\'') {
		*what = "string";
		return skip_string(p, line);
	}
	if (strncmp(p, "${", 2) == 0)
		return skip_variable(p);
	return skip_word(p);
}

/* Is the token from p to end this word, with quotes or without? */
static bool
is_word(const char *p, const char *end, const char *word)
{
	size_t len = strlen(word);

	if (*p == '"' || *p == '\'') {
		p++;
		end--;
	}
	return (size_t)(end - p) == len && memcmp(p, word, len) == 0;
}

int
conf_text_empty(char *text, const char *key)
{
	/* What came last: something else, the key, its '=', its '{'. */
	enum { OTHER, KEY, EQUAL, OPEN } last = OTHER;
	int line = 1, opened = 0, found = 0, depth = 0;
	const char *what;
	char *p, *end;

	for (p = text; *p != '\0'; p = end) {
		if (*p == '\n')
			line++;
		end = skip_token(p, &line, &what);
		if (strchr(" \t\r\n+*", *p) != NULL)
			continue;
		if (*p == '}' && last == OPEN)
			found = opened;
		if (*p == '{' && depth == 0)
			opened = line;
		if (depth == 0 && is_word(p, end, key))
			last = KEY;
		else if (*p == '=' && last == KEY)
			last = EQUAL;
		else if (*p == '{' && last == EQUAL)
			last = OPEN;
		else
			last = OTHER;
		depth += (*p == '{') - (*p == '}');
	}
	return found;
}

/* ${NAME} without a default.  libConfuse makes nothing of one that is not set. */
static int
check_variable(const char *p, struct conf_why *why)
{
	size_t len = strcspn(p + 2, "}:\n");
	char name[128];

	if (len >= sizeof(name) || p[2 + len] != '}')
		return 0;
	memcpy(name, p + 2, len);
	name[len] = '\0';
	if (getenv(name) != NULL)
		return 0;
	return conf_why(why, -EINVAL,
	    "${%s}: the environment has no %s; set it, or write "
	    "${%s:-default}",
	    name, name, name);
}

/* What libConfuse would take, but nobody means: the token from p to end. */
static int
check_token(const char *p, const char *end, struct conf_why *why)
{
	bool string = *p == '"';

	if (p[0] == '+' && p[1] == '=')
		return conf_why(
		    why, -EINVAL, "+=: write the whole list, with '='");
	if (*p == '\'' || *p == ' ')
		return 0;
	if (end[-1] == ';' && !string)
		return conf_why(why, -EINVAL,
		    "%.*s: remove the ';', or put the value in quotes",
		    (int)(end - p), p);
	for (; p < end; p++) {
		if (p[0] == '$' && p[1] == '{' && check_variable(p, why) != 0)
			return -EINVAL;
		if (string && *p == '\\')
			p++;
	}
	return 0;
}

/* What stands before the brace at p: site "a". */
static int
no_end(const char *text, const char *p, struct conf_why *why)
{
	const char *end = p;

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	for (p = end; p > text && p[-1] != '\n' && p[-1] != '{';)
		p--;
	while (p < end && isspace((unsigned char)*p))
		p++;
	/* Nothing may stand there. */
	return conf_why(why, -EINVAL, "%.*s: the block has no end: add '}'",
	    p < end ? (int)(end - p) : 1, p < end ? p : "{");
}

int
conf_text_strip(char *text, int *line, unsigned *open, struct conf_why *why)
{
	const char *what = NULL, *opened = text;
	int now = 1, opened_at = 0;
	unsigned depth = 0;
	char *p = text, *end;

	*open = 0;
	for (; *p != '\0'; p = end) {
		*line = now;
		if (*p == '\n')
			now++;
		else if (*p == '{' && depth++ == 0) {
			opened = p;
			opened_at = now;
		} else if (*p == '}' && depth > 0)
			depth--;
		end = skip_token(p, &now, &what);
		if (end == NULL)
			return conf_why(why, -EINVAL, "%s: has no end", what);
		if (check_token(p, end, why) != 0)
			return -EINVAL;
	}
	if (depth == 0)
		return 0;
	*open = depth;
	*line = opened_at;
	return no_end(text, opened, why);
}
