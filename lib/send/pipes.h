/*
 * pipes: a store of pipes.  A loop has a store for the path splice, and one for mappings (piped.h).
 *
 * A pipe is resized (F_SETPIPE_SZ), which an ordinary user may do until
 * /proc/sys/fs/pipe-user-pages-soft is reached (64 MiB: 512 pipes of 128 KiB).  A smaller pipe would be
 * worse than sendfile(2), whose internal pipe holds 64 KiB.  So a transmission returns its pipe to the
 * store when the pipe is empty.  Loop's thread.
 */
#ifndef LIB_SEND_PIPES_H
#define LIB_SEND_PIPES_H

#include <stddef.h>
#include <sys/queue.h>

#define PIPES_SPLICE ((size_t)128 << 10) /* size of a pipe of the path splice */
/* size of a pipe for mappings, bytes; its 256 slots hold 256 pages */
#define PIPES_MAPPED ((size_t)1 << 20)

struct pipe {
	int pp_fds[2];	/* [0] to read, [1] to write */
	size_t pp_held; /* bytes in the pipe, set by the transmission */
	SLIST_ENTRY(pipe) pp_link;
};

struct pipes;

/* Creates a store of pipes of `size` bytes each.  Returns NULL if memory is short. */
struct pipes *pipes_create(size_t size);
void pipes_destroy(struct pipes **);

/* Takes a pipe from the store, or creates one.  Returns 0 or -errno. */
int pipes_get(struct pipes *, struct pipe **);

/* Closes the free pipes of the store, unless a pipe was taken since the last call. */
void pipes_rest(struct pipes *);

/* Returns a pipe to the store, or closes it if it is not empty. */
void pipes_put(struct pipes *, struct pipe *);

#endif
