/*
 * place: file and line of keys whose faults are found only once all keys are set, or at startup.
 * Each struct settings has a list of places, newest first.  Settings that inherit values also
 * inherit the list.
 */
#include <stdio.h>
#include <string.h>

#include "server/conf/conf_priv.h"

struct conf_place {
	const struct conf_place *pl_next;
	const char *pl_name; /* name of the key; borrowed */
	char pl_text[];	     /* "FILE:LINE: "; empty for the command line */
};

/* Records nothing if memory is short; the message then has no file and line. */
void
conf_place_add(struct conf_scope *scope, const struct key *key)
{
	const char *file = scope->cs_file;
	size_t size = file != NULL ? strlen(file) + sizeof(":2147483647: ") : 1;
	struct conf_place *place;

	if ((key->key_where & KEY_LATE) == 0)
		return;
	place = conf_keep(scope->cs_conf, sizeof(*place) + size);
	if (place == NULL)
		return;
	place->pl_next = scope->cs_set->set_places;
	place->pl_name = key->key_name;
	if (file != NULL)
		snprintf(place->pl_text, size, "%s:%d: ", file, scope->cs_line);
	scope->cs_set->set_places = place;
}

const char *
conf_place_text(struct conf *conf, const char *file, int line)
{
	size_t size = strlen(file) + sizeof(":2147483647");
	char *text = conf_keep(conf, size);

	if (text != NULL)
		snprintf(text, size, "%s:%d", file, line);
	return text;
}

const char *
conf_place(const struct settings *set, const char *name, size_t after)
{
	const struct conf_place *place = set->set_places;

	for (; place != NULL; place = place->pl_next)
		if (strcmp(place->pl_name, name) == 0 && after-- == 0)
			return place->pl_text;
	return "";
}
