/*
 * sink: a file that lines go to from rings, without ever waiting for
 * it.  Used by the log's writer thread alone.
 *
 * A line that is begun is finished before the next one.  If its rest is lost, a regular
 * file that was opened here is cut back to the line before; in any other file, or if
 * that fails, the next line begins on a line of its own.
 */
#ifndef SERVER_LOG_SINK_H
#define SERVER_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/os/ring.h"

struct sink {
	char *sk_path;	  /* for messages: where it is; owned */
	int sk_fd;	  /* owned; -1: not open */
	bool sk_socket;	  /* send(2) accepts MSG_DONTWAIT */
	bool sk_blocking; /* write(2) may block: poll first */
	bool sk_shared;	  /* no regular file: whole lines, see sink_put */
	bool sk_ours;	  /* regular, and opened here */
	bool sk_journal;  /* journald's: messages begin with a priority */

	bool sk_full;	  /* took nothing more the last time */
	size_t sk_begun;  /* bytes of a line that continues in the ring */
	bool sk_torn;	  /* ends in a line, the rest was lost */
	unsigned sk_next; /* the caller's: which ring is next */
	int sk_error;	  /* why records were dropped last, errno or 0 */
	_Atomic uint64_t sk_dropped; /* records lost here; any thread reads */
};

/* log_file_open.  0 or -errno; -ENXIO: a FIFO without a reader. */
int sink_open_path(struct sink *, const char *path);

/*
 * A copy of stdout or stderr that is non-blocking where this does not change the
 * original, which other processes share.
 */
int sink_open_fd(struct sink *, const char *path, int fd);

/*
 * Writes what is in the ring, which ends a line; after sk_begun, the rest of
 * that line only.  False: the file takes no more now, what remains stays in
 * the ring.  On any other error it is dropped, counted, and true.
 *
 * What is no regular file gets whole lines, of PIPE_BUF bytes together at most: a pipe takes
 * them at once or not at all (pipe(7)), so those of another process, as there is
 * during a reload, come before or behind.  A longer line goes in pieces.
 */
bool sink_put(struct sink *, struct ring *);

/* Drops and counts what is in the ring. */
void sink_drop(struct sink *, struct ring *);

void sink_close(struct sink *);

/*
 * Writes all of it, waiting as long as some is taken every second.  For
 * messages while there is no writer thread.
 */
void sink_write_fd(int fd, const char *p, size_t len);

#endif
