/*
 * types: media types, character set, entity tag, compressed siblings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

int
conf_set_charset(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_.+:";
	size_t len = strlen(text);

	(void)key;
	scope->cs_set->set_charset = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (len == 0 || len > 40 || strspn(text, token) != len)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a character set: write one such as utf-8, "
		    "or \"off\" for none",
		    text);
	scope->cs_set->set_charset = conf_keep_text(scope->cs_conf, text, len);
	return scope->cs_set->set_charset != NULL ? 0 : conf_no_memory(why);
}

int
conf_set_default_type(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (!mime_type_valid(text))
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a media type (type/subtype)", text);
	scope->cs_set->set_default_type =
	    conf_keep_text(scope->cs_conf, text, strlen(text));
	return scope->cs_set->set_default_type != NULL ? 0
						       : conf_no_memory(why);
}

int
conf_set_etag(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	enum etag_kind *kind = &scope->cs_set->set_etag;

	(void)key;
	if (strcmp(text, "auto") == 0)
		*kind = ETAG_AUTO;
	else if (strcmp(text, "inode") == 0)
		*kind = ETAG_INODE;
	else if (strcmp(text, "digest") == 0)
		*kind = ETAG_DIGEST;
	else if (strcmp(text, "off") == 0)
		*kind = ETAG_OFF;
	else
		return conf_why(why, -EINVAL,
		    "\"%s\" is not auto, inode, digest or off", text);
	return 0;
}

int
conf_set_precompressed(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct settings *set = scope->cs_set;
	enum coding coding = coding_of_suffix(text);

	(void)key;
	if (coding == CODING_NONE)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not zst, br or gz", text);
	for (unsigned i = 0; i < set->set_ncodings; i++)
		if (set->set_codings[i] == coding)
			return conf_why(
			    why, -EEXIST, "%s is listed twice", text);
	set->set_codings[set->set_ncodings++] = (uint8_t)coding;
	return 0;
}

void
conf_clear_precompressed(struct conf_scope *scope)
{
	scope->cs_set->set_ncodings = 0;
}

/*
 * Adds a line.  Parses the line first, so that a fault is reported with its place;
 * conf_complete_types parses all lines again.
 */
int
conf_set_types(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct mime *mime =
	    mime_parse(text, "types", why->why_text, sizeof(why->why_text));

	(void)key;
	if (mime == NULL)
		return -EINVAL;
	mime_destroy(&mime);
	if (strpbrk(text, "\r\n") != NULL)
		return conf_why(why, -EINVAL,
		    "the value has a line break: write a string for each type");
	if (conf_keep_add(scope->cs_conf, &scope->cs_set->set_types, text) != 0)
		return conf_no_memory(why);
	return 0;
}

void
conf_clear_types(struct conf_scope *scope)
{
	scope->cs_set->set_types = NULL;
}

static char *
conf_types_joined(char *const *lines)
{
	size_t len = 1;
	char *text, *p;

	for (char *const *s = lines; *s != NULL; s++)
		len += strlen(*s) + 1;
	p = text = malloc(len);
	if (text == NULL)
		return NULL;
	for (; *lines != NULL; lines++) {
		p = stpcpy(p, *lines);
		*p++ = '\n';
	}
	*p = '\0';
	return text;
}

static int
conf_types_add_table(struct conf *conf, char **lines, struct mime *mime)
{
	struct conf_types *grown = reallocarray(
	    conf->conf_types, conf->conf_ntypes + 1, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	conf->conf_types = grown;
	grown[conf->conf_ntypes++] = (struct conf_types){lines, mime};
	return 0;
}

static int
conf_types_make_table(struct conf *conf, char **lines, struct conf_why *why)
{
	char *text = conf_types_joined(lines);
	struct mime *mime;

	if (text == NULL)
		return conf_no_memory(why);
	mime = mime_parse(text, "types", why->why_text, sizeof(why->why_text));
	free(text);
	if (mime == NULL)
		return -EINVAL;
	if (conf_types_add_table(conf, lines, mime) != 0) {
		mime_destroy(&mime);
		return conf_no_memory(why);
	}
	return 0;
}

/* Sets set_mime.  A site and its locations with the same lines share one table. */
int
conf_complete_types(
    struct conf *conf, struct settings *set, struct conf_why *why)
{
	size_t i;
	int error = 0;

	if (set->set_types == NULL)
		return 0;
	for (i = 0; i < conf->conf_ntypes; i++)
		if (conf->conf_types[i].ct_lines == set->set_types)
			break;
	if (i == conf->conf_ntypes)
		error = conf_types_make_table(conf, set->set_types, why);
	if (error == 0)
		set->set_mime = conf->conf_types[i].ct_mime;
	return error;
}

void
conf_media_type(const struct conf *conf, const struct settings *set,
    const char *name, char *text, size_t size)
{
	const char *type = set->set_default_type;
	bool is_text;

	type = mime_type(conf->conf_mime, name, type);
	if (set->set_mime != NULL)
		type = mime_type(set->set_mime, name, type);
	is_text = strncmp(type, "text/", 5) == 0 && set->set_charset != NULL &&
		  strcasestr(type, "charset=") == NULL;
	snprintf(text, size, "%s%s%s", type, is_text ? "; charset=" : "",
	    is_text ? set->set_charset : "");
}
