/*
 * own: memory of a transmission, into which a disk thread reads the next bytes of the file, and from which the loop
 * sends them: bytes that were evicted before they were sent, and bytes that cannot be read without waiting.
 * Nothing can evict this memory, so each transmission makes progress.  The paths aio and ring send all
 * bytes so, and read by io_uring.  For lib/send/ only.  Loop's thread.
 */
#ifndef LIB_SEND_OWN_H
#define LIB_SEND_OWN_H

#include "lib/disk/async.h"
#include "lib/pagewise.h"

struct own {
	off_t ow_off;  /* offset of ow_data in the file */
	size_t ow_len; /* bytes read */
	size_t ow_room;
	struct async_op ow_op; /* operation of io_uring (path_aio.c) */
	char ow_data[];
};

/*
 * Sets wt_done of ss_waiter to a function that calls own_arrived, and begins to read own_chunk bytes at snd_off,
 * which sets ow_len.  Returns 0 or -errno.
 */
typedef int (*own_read_f)(struct pw_send *, struct own *);

/* Sends the bytes that were read.  If there are none, has `read` read the next ones. */
enum pw_send_status own_step(struct pw_send *, own_read_f read);

/* Has a disk thread read.  Is an own_read_f. */
int own_read_by_pool(struct pw_send *, struct own *);

/* Ends the wait for the bytes.  The caller calls snd_done. */
void own_arrived(struct pw_waiter *);

size_t own_chunk(const struct pw_send *);

/* Returns true if all bytes that were read are sent. */
bool own_is_empty(const struct pw_send *);

/* Frees the memory. */
void own_free(struct pw_send *);

/*
 * Does as own_step with own_read_by_pool, and frees the memory once all of it is sent, and all that a sink was offered.
 */
enum pw_send_status own_serve(struct pw_send *);

#endif
