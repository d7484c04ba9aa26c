/*
 * unescape: the text of a word or string of the configuration file: escape sequences, and variables
 * of the environment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

struct unescape {
	const char *un_at;
	const char *un_end; /* end of the token, before its quote */
	char un_quote;	    /* quote, or '\0' for a word */
	char *un_to;
	int *un_line; /* line of un_at */
	struct conf_why *un_why;
};

/*
 * Returns the '}' of a variable at `p`, or NULL if no variable begins there.  The '}' may be past
 * the end of the token.
 */
static const char *
unescape_brace(const struct unescape *un, const char *p)
{
	if (p[0] != '$' || p[1] != '{' || un->un_quote == '\'')
		return NULL;
	return strchr(p, '}');
}

/* Returns true for ${NAME} and ${NAME:-DEFAULT}. */
static bool
unescape_is_valid(const char *p, const char *brace)
{
	const char *end = p + 2 + strcspn(p + 2, "}:\n");

	return end > p + 2 && (end >= brace || end[1] == '-');
}

/*
 * Reads ${NAME} or ${NAME:-DEFAULT}, whose default is also used if the value is empty.  Returns false if NAME
 * is not set and has no default.
 */
static bool
unescape_value(const char *p, const char *brace, struct str *value)
{
	int len = (int)strcspn(p + 2, "}:\n");
	const char *end = p + 2 + len, *set;
	char name[4096];

	*value = STR("");
	snprintf(name, sizeof(name), "%.*s", len, p + 2);
	set = getenv(name);
	if (end < brace && (set == NULL || set[0] == '\0'))
		*value = (struct str){end + 2, (size_t)(brace - end) - 2};
	else if (set != NULL)
		*value = (struct str){set, strlen(set)};
	return set != NULL || end < brace;
}

/*
 * Refuses a variable that has no value.  Also checks a variable in a default, although a default is
 * not expanded.  Adds the length of the values to *size.
 */
static int
unescape_check(const struct unescape *un, size_t *size)
{
	for (const char *p = un->un_at; p < un->un_end; p++) {
		const char *brace = unescape_brace(un, p);
		struct str value;

		if (brace != NULL) {
			int len = (int)(brace - p) - 2;

			if (!unescape_is_valid(p, brace))
				return conf_why(un->un_why, -EINVAL,
				    "${%.*s}: write ${NAME} or "
				    "${NAME:-default}, or '$' in single quotes",
				    len, p + 2);
			if (!unescape_value(p, brace, &value))
				return conf_why(un->un_why, -EINVAL,
				    "${%.*s}: the environment variable %.*s is "
				    "not set: set it, or write "
				    "${%.*s:-default}",
				    len, p + 2, len, p + 2, len, p + 2);
			if (brace < un->un_end)
				*size += value.s_len;
		}
		if (un->un_quote == '"' && *p == '\\')
			p++;
	}
	return 0;
}

static int
unescape_variable(struct unescape *un, const char *brace)
{
	struct str value;

	unescape_value(un->un_at, brace, &value);
	memcpy(un->un_to, value.s_ptr, value.s_len);
	un->un_to += value.s_len;
	un->un_at = brace + 1;
	return 0;
}

/*
 * Appends the byte that an escape sequence stands for: its value is written in `n` digits after
 * `prefix` bytes.
 */
static int
unescape_byte(struct unescape *un, size_t prefix, size_t n, int base)
{
	char digits[4] = "";

	memcpy(digits, un->un_at + prefix, n);
	*un->un_to++ = (char)strtoul(digits, NULL, base);
	un->un_at += prefix + n;
	return 0;
}

static int
unescape_octal(struct unescape *un)
{
	const char *digits = un->un_at + 1;
	size_t n = strspn(digits, "0123456789");

	if (n > 3 || strspn(digits, "01234567") < n)
		return conf_why(un->un_why, -EINVAL,
		    "bad octal escape '\\%.*s': write up to three digits from "
		    "0 to 7",
		    (int)n, digits);
	if (n == 3 && digits[0] > '3')
		return conf_why(un->un_why, -EINVAL,
		    "octal escape '\\%.*s' is too large: at most '\\377'",
		    (int)n, digits);
	return unescape_byte(un, 1, n, 8);
}

/*
 * Reads an escape sequence.  In single quotes a backslash escapes only a backslash, a quote and the
 * end of the line.
 */
static int
unescape_sequence(struct unescape *un)
{
	static const char names[] = "nrbfaetv", chars[] = "\n\r\b\f\a\033\t\v";
	char c = un->un_at[1];
	bool all = un->un_quote == '"';
	const char *name = all ? strchr(names, c) : NULL;
	size_t n = strspn(un->un_at + 2, "0123456789ABCDEFabcdef");

	if (all && c >= '0' && c <= '9')
		return unescape_octal(un);
	if (all && c == 'x' && n > 0)
		return unescape_byte(un, 2, n < 2 ? n : 2, 16);
	if (!all && c != '\\' && c != '\'' && c != '\n')
		*un->un_to++ = '\\';
	if (name != NULL)
		c = chars[name - names];
	if (un->un_at[1] == '\n')
		(*un->un_line)++;
	else
		*un->un_to++ = c;
	un->un_at += 2;
	return 0;
}

static int
unescape_next(struct unescape *un)
{
	const char *brace = unescape_brace(un, un->un_at);

	if (brace != NULL && brace < un->un_end)
		return unescape_variable(un, brace);
	if (*un->un_at == '\\' && un->un_quote != '\0')
		return unescape_sequence(un);
	*un->un_line += *un->un_at == '\n';
	*un->un_to++ = *un->un_at++;
	return 0;
}

char *
conf_unescape(struct conf_block **memory, struct str token, int *line,
    struct conf_why *why)
{
	size_t size = token.s_len + 1;
	char *text, first = token.s_ptr[0];
	bool quoted = first == '"' || first == '\'';
	struct unescape un = {.un_at = token.s_ptr + quoted,
	    .un_end = token.s_ptr + token.s_len - quoted,
	    .un_line = line,
	    .un_why = why};

	if (quoted)
		un.un_quote = first;
	if (unescape_check(&un, &size) != 0)
		return NULL;
	text = un.un_to = conf_keep_in(memory, size);
	if (text == NULL)
		conf_no_memory(why);
	while (text != NULL && un.un_at < un.un_end)
		if (unescape_next(&un) != 0)
			text = NULL;
	return text;
}
