/*
 * text: the configuration file as text: its comments, words and strings.
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

#define FAULTS	   10 /* maximum number of logged faults */
#define TEXT_MAX   ((size_t)16 << 20)
#define TEXT_CHUNK ((size_t)64 << 10)

/* Logs a message.  `place` is "FILE:LINE: ", or empty. */
static void
conf_text_say_at(const char *place, const char *fmt, va_list ap)
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
conf_vsay(
    struct conf *conf, const char *path, int line, const char *fmt, va_list ap)
{
	char place[PATH_MAX + sizeof(":2147483647: ")];

	snprintf(place, sizeof(place), "%s:%d: ", path, line);
	if (conf->conf_faults++ < FAULTS)
		conf_text_say_at(place, fmt, ap);
}

void
conf_say(struct conf *conf, const char *path, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	conf_vsay(conf, path, line, fmt, ap);
	va_end(ap);
}

void
conf_say_at(struct conf *conf, const char *place, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (conf == NULL || conf->conf_faults++ < FAULTS)
		conf_text_say_at(place, fmt, ap);
	va_end(ap);
}

static int
conf_text_read_all(FILE *fp, char **text)
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
	error = conf_text_read_all(fp, text);
	fclose(fp);
	if (error != 0) {
		free(*text);
		*text = NULL;
	}
	return error;
}

static char *
conf_text_blank_line(char *p)
{
	size_t len = strcspn(p, "\n");

	memset(p, ' ', len);
	return p + len;
}

/* Blanks a comment.  Returns its end, or NULL if the comment is not terminated. */
static char *
conf_text_blank_block(char *p, int *line)
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

/* Skips "${NAME}" or "${NAME:-default}", which may contain quotes. */
static char *
conf_text_skip_variable(char *p)
{
	char *end = strchr(p, '}');

	return end != NULL ? end + 1 : p + 1;
}

/* Skips a string.  Returns NULL if the string is not terminated. */
static char *
conf_text_skip_string(char *p, int *line)
{
	char quote = *p++;

	for (; *p != quote; p++) {
		if (quote == '"' && p[0] == '$' && p[1] == '{')
			p = conf_text_skip_variable(p) - 1;
		else if (p[0] == '\\' && p[1] != '\0')
			p++;
		if (*p == '\0')
			return NULL;
		if (*p == '\n')
			(*line)++;
	}
	return p + 1;
}

/* Skips one word, or one character that is no part of a word. */
static char *
conf_text_skip_word(char *p)
{
	size_t len = strcspn(p, " \t\r\n#\"'={}()+,*");

	return p + (len > 0 ? len : 1);
}

char *
conf_text_token(char *p, int *line, const char **what)
{
	if (*p == '#' || strncmp(p, "//", 2) == 0)
		return conf_text_blank_line(p);
	if (strncmp(p, "/*", 2) == 0) {
		*what = "comment";
		return conf_text_blank_block(p, line);
	}
	if (*p == '"' || *p == '\'') {
		*what = "string";
		return conf_text_skip_string(p, line);
	}
	if (strncmp(p, "${", 2) == 0)
		return conf_text_skip_variable(p);
	return conf_text_skip_word(p);
}

/*
 * Returns true if the token at `p` is a string of several lines, and text directly follows it at
 * `end`.  A quote is then missing in the string's first line: the quote that ends the string was
 * meant to begin another one.
 */
static bool
conf_text_lacks_quote(const char *p, const char *end)
{
	bool comment = end[0] == '/' && (end[1] == '/' || end[1] == '*');

	return (*p == '"' || *p == '\'') &&
	       memchr(p, '\n', (size_t)(end - p)) != NULL && !comment &&
	       strchr(" \t\r\n,;{}#", *end) == NULL;
}

int
conf_text_strip(char *text, int *line, struct conf_why *why)
{
	const char *what = NULL;
	int now = 1;
	char *p = text, *end;

	for (; *p != '\0'; p = end) {
		*line = now;
		now += *p == '\n';
		end = conf_text_token(p, &now, &what);
		if (end == NULL)
			return conf_why(why, -EINVAL, "unterminated %s: add %s",
			    what,
			    *p == '"'	 ? "\""
			    : *p == '\'' ? "'"
					 : "*/");
		if (conf_text_lacks_quote(p, end))
			return conf_why(why, -EINVAL,
			    "unterminated string: a quote is missing in this "
			    "line");
	}
	return 0;
}
