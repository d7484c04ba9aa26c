/*
 * fd_cache: a cache of descriptors that this program opens, and of the library's files for them.
 */
#ifndef LIB_EXAMPLES_FD_CACHE_H
#define LIB_EXAMPLES_FD_CACHE_H

#include <pagewise.h>

struct cache_open {
	struct pw_task co_task; /* first member, since it is cast */
	struct pw_open co_open;
	int co_fd;
	struct stat co_stat;
	const char *co_name; /* path; the caller sets co_name and co_done */
	void (*co_done)(struct cache_open *, struct pw_file *, int error);
};

/*
 * Opens a file.  Returns 0, and sets *file to a reference of the caller.  Returns -EINPROGRESS if
 * co_done will be called with the file or -errno; until then the struct must stay valid.  Returns
 * -errno if the open cannot begin.
 */
int cache_open(struct cache_open *, struct pw_file **file);

#endif
