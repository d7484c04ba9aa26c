/*
 * sink: a file that receives lines from rings.  Writes never wait for the file.  Only the log's
 * writer thread uses a sink.
 *
 * Once part of a line is written, its rest is written before the next line.  If the rest is lost,
 * the sink removes the incomplete line from a regular file that it opened.  In any other file, or
 * if the removal fails, the sink writes an additional newline before the next line.
 */
#ifndef SERVER_LOG_SINK_H
#define SERVER_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/os/ring.h"

struct sink {
	char *sk_path; /* path for messages; owned */
	int sk_fd;     /* owned; -1 if not open */
	/* true for a socket, written by send(2) with MSG_DONTWAIT */
	bool sk_socket;
	/* true if write(2) may block; poll(2) then precedes each write */
	bool sk_blocking;
	bool sk_shared;	 /* true if not a regular file: see sink_put */
	bool sk_ours;	 /* true if sink_open_path opened a regular file */
	bool sk_journal; /* true if journald reads the file */

	bool sk_full;	  /* true if the last write found the file full */
	size_t sk_begun;  /* bytes written of an incomplete line */
	bool sk_torn;	  /* true if the rest of the last line was lost */
	unsigned sk_next; /* number of the next ring, for the caller */
	int sk_error;	  /* errno of the last drop of records, or 0 */
	_Atomic uint64_t sk_dropped; /* records lost; any thread may read it */
};

/* Opens the file with log_file_open.  Returns 0 or -errno; -ENXIO means a FIFO without a reader. */
int sink_open_path(struct sink *, const char *path);

/*
 * Duplicates stdout or stderr.  Makes the copy non-blocking if that does not change the original,
 * which other processes share.  Returns 0 or -errno.
 */
int sink_open_fd(struct sink *, const char *path, int fd);

/*
 * Writes the lines in the ring or, if sk_begun is not 0, the rest of that line only.  Returns false
 * if the file accepts no more now; the remainder stays in the ring.  On any other error drops and
 * counts the lines, and returns true.
 *
 * Each write(2) to a file that is not regular has only whole lines, at most PIPE_BUF bytes.  A pipe
 * accepts these bytes at once or not at all (pipe(7)), so they are never mixed with lines of
 * another process, such as the old server during a reload.  A longer line is written in pieces.
 */
bool sink_put(struct sink *, struct ring *);

/* Drops and counts the lines in the ring. */
void sink_drop(struct sink *, struct ring *);

void sink_close(struct sink *);

/*
 * Writes `len` bytes.  Stops on an error, or if the file accepts none for a second.  Use for
 * messages while there is no writer thread.
 */
void sink_write_fd(int fd, const char *p, size_t len);

#endif
