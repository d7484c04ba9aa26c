/*
 * try: the key try, a list of files to look for in order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

#define MAX_STEPS 16

static bool
conf_try_is_status(const char *text)
{
	static const char *const known[] = {"403", "404", "410", "451", "503"};

	text += text[0] == '=';
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(text, known[i]) == 0)
			return true;
	return false;
}

/*
 * Returns true if `text` is a valid step.  The server sends the file that a step names for any
 * request, so that file must lie below the root.
 */
static bool
conf_try_is_step(const char *text)
{
	struct str s = {text, strlen(text)};
	bool own = str_skip(&s, STR("$path"));

	if (conf_try_is_status(text) || (own && s.s_len == 0) ||
	    strcmp(text, "$path/") == 0)
		return true;
	if (!own && text[0] != '/')
		return false;
	return text[strlen(text) - 1] != '/' && strchr(s.s_ptr, '$') == NULL &&
	       strstr(s.s_ptr, "//") == NULL && strstr(s.s_ptr, "/.") == NULL &&
	       (own || s.s_len > 1);
}

/* Reports several steps in one string, as nginx and Caddy write them. */
static int
conf_try_is_several(const char *text, struct conf_why *why)
{
	char form[160];
	size_t n = 0, len;

	for (const char *p = text; n + 4 < sizeof(form); p += len) {
		p += strspn(p, " \t");
		len = strcspn(p, " \t");
		if (len == 0)
			break;
		n += (size_t)snprintf(form + n, sizeof(form) - n, "%s\"%.*s\"",
		    n > 0 ? ", " : "", (int)len, p);
	}
	return conf_why(why, -EINVAL,
	    "\"%s\": a step must not contain a space: write {%s}", text, form);
}

int
conf_set_try(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	char ***steps = &scope->cs_set->set_try;
	size_t n = 0;

	(void)key;
	while (*steps != NULL && (*steps)[n] != NULL)
		n++;
	if (strpbrk(text, " \t") != NULL)
		return conf_try_is_several(text, why);
	if (!conf_try_is_step(text))
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a step: write \"$path\", \"$path.html\", "
		    "\"$path/\", \"/FILE\" below the root, or \"=404\" (also "
		    "403, 410, 451, 503)",
		    text);
	if (n > 0 && conf_try_is_status((*steps)[n - 1]))
		return conf_why(why, -EINVAL,
		    "the step after %s is never tried: a status must be the "
		    "last step",
		    (*steps)[n - 1]);
	if (n == MAX_STEPS)
		return conf_why(why, -E2BIG,
		    "more than %d steps are listed: remove some", MAX_STEPS);
	if (conf_try_is_status(text))
		text += text[0] == '=';
	if (conf_keep_add(scope->cs_conf, steps, text) != 0)
		return conf_no_memory(why);
	return 0;
}

void
conf_clear_try(struct conf_scope *scope)
{
	scope->cs_set->set_try = NULL;
}
