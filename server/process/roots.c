/*
 * roots: see roots.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/log/log.h"
#include "server/process/cure.h"
#include "server/process/roots.h"

static const char *
roots_cure(int error)
{
	switch (error) {
	/* Some seccomp profiles refuse unknown calls with ENOSYS, others with EPERM. */
	case -ENOSYS:
	case -EPERM:
		return ": pagewise needs openat2(2): run Linux 5.6 or later, "
		       "and allow this call in the container's seccomp "
		       "profile";
	default:
		return cure_of(error);
	}
}

static int
roots_open_one(const char *path, struct pw_root **out)
{
	int error = pw_root_open(path, out);

	if (error == 0)
		return 0;
	log_error(NULL, "cannot open the root %s: %s%s", path, strerror(-error),
	    roots_cure(error));
	return -1;
}

int
roots_open(const struct conf *conf, struct pw_root ***out)
{
	struct pw_root **roots;
	size_t i;

	roots = calloc(conf->conf_nroots + 1, sizeof(struct pw_root *));
	if (roots == NULL) {
		log_error(NULL, "%s", strerror(ENOMEM));
		return -1;
	}
	*out = roots;
	for (i = 0; i < conf->conf_nroots; i++)
		if (roots_open_one(conf->conf_roots[i], &roots[i]) == -1)
			return -1;
	return 0;
}

void
roots_close(struct pw_root ***rootsp)
{
	struct pw_root **roots = *rootsp;
	size_t i;

	if (roots == NULL)
		return;
	*rootsp = NULL;
	for (i = 0; roots[i] != NULL; i++)
		pw_root_close(&roots[i]);
	free(roots);
}
