/*
 * pipes: a store of pipes for the path splice, one per loop.
 *
 * A pipe is resized so that 128 KiB fit (F_SETPIPE_SZ), which an ordinary user may do
 * until /proc/sys/fs/pipe-user-pages-soft is reached (64 MiB: 512 such pipes).  A smaller
 * pipe would be worse than sendfile(2), whose internal pipe holds 64 KiB.  So a
 * transmission returns its pipe to the store when the pipe is empty.  Loop's thread.
 */
#ifndef LIB_SEND_PIPES_H
#define LIB_SEND_PIPES_H

#include <stddef.h>
#include <sys/queue.h>

struct pipe {
	int pp_fds[2];	/* [0] to read, [1] to write */
	size_t pp_held; /* bytes in the pipe, set by the transmission */
	SLIST_ENTRY(pipe) pp_link;
};

struct pipes;

struct pipes *pipes_create(void); /* returns NULL if memory is short */
void pipes_destroy(struct pipes **);

/* Takes a pipe from the store, or creates one.  Returns 0 or -errno. */
int pipes_get(struct pipes *, struct pipe **);

/* Returns a pipe to the store, or closes it if it is not empty. */
void pipes_put(struct pipes *, struct pipe *);

#endif
