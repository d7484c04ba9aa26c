/*
 * keep: memory that lives as long as the configuration.  A location copies its site's settings with
 * their pointers, so several settings share the memory behind a pointer, and none of these settings
 * frees that memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

struct conf_block {
	struct conf_block *cb_next;
	max_align_t cb_data[];
};

void *
conf_keep_in(struct conf_block **list, size_t size)
{
	struct conf_block *block = calloc(1, sizeof(*block) + size);

	if (block == NULL)
		return NULL;
	block->cb_next = *list;
	*list = block;
	return block->cb_data;
}

void *
conf_keep(struct conf *conf, size_t size)
{
	return conf_keep_in(&conf->conf_memory, size);
}

char *
conf_keep_text(struct conf *conf, const char *text, size_t len)
{
	char *copy = conf_keep(conf, len + 1);

	if (copy != NULL)
		memcpy(copy, text, len);
	return copy;
}

/* Doubles the array whenever `n` is a power of two. */
void *
conf_keep_room(struct conf *conf, void *list, size_t n, size_t size)
{
	void *grown;

	if ((n & (n - 1)) != 0)
		return list;
	grown = conf_keep(conf, 2 * (n + 1) * size);
	if (grown != NULL && n > 0)
		memcpy(grown, list, n * size);
	return grown;
}

int
conf_keep_add(struct conf *conf, char ***v, const char *text)
{
	size_t n = 0;
	char **grown;

	while (*v != NULL && (*v)[n] != NULL)
		n++;
	/* The array has n + 1 elements, including the terminating NULL, or no element. */
	grown =
	    conf_keep_room(conf, *v, *v != NULL ? n + 1 : 0, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	*v = grown;
	grown[n] = conf_keep_text(conf, text, strlen(text));
	return grown[n] != NULL ? 0 : -ENOMEM;
}

int
conf_keep_copy(struct conf *conf, char ***v)
{
	char **old = *v;

	*v = NULL;
	for (; old != NULL && *old != NULL; old++)
		if (conf_keep_add(conf, v, *old) != 0)
			return -ENOMEM;
	return 0;
}

void
conf_keep_free(struct conf_block **list)
{
	struct conf_block *block;

	while ((block = *list) != NULL) {
		*list = block->cb_next;
		free(block);
	}
}
