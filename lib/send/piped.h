/*
 * piped: sends pages through the loop's pipe, without a copy: pages of a pinned mapping (pins.h) by vmsplice(2),
 * or of a file by splice(2).  Bytes that the socket does not accept are removed from the pipe again, so a
 * loop needs only one pipe.  If the kernel or a filter of system calls refuses the pipe or a call, the loop
 * does not try again.  Loop's thread.
 */
#ifndef LIB_SEND_PIPED_H
#define LIB_SEND_PIPED_H

#include "lib/pagewise.h"

#define PIPED_SIZE    ((size_t)1 << 20) /* bytes; 256 slots hold as many pages */
#define PIPED_REFUSED (-2)

/*
 * Sends up to len bytes at data, which lie in the mapping of ss_pin, or at snd_off of the file if data is NULL, and
 * sets *sent.  Returns 0 or -errno; -ENOSYS if the caller has to send the bytes by another call, -EFAULT if
 * the file of the mapping was truncated.
 */
int piped_send(struct pw_send *, const char *data, size_t len, size_t *sent);

/*
 * Copies up to len bytes at snd_off from the mapping of ss_pin, which has these bytes.  A read-ahead mark
 * (os_fetch_folio) has no effect.  Returns how many bytes were copied, 0 if the caller has to read the bytes
 * by another call, or -errno; -ESTALE if the file was truncated.
 */
long piped_read(struct pw_send *, char *to, size_t len);

/* Closes the pipe, if there is one, and sets lp_pipe[0] to `none`, -1 or PIPED_REFUSED. */
void piped_close(struct pw_loop *, int none);

#endif
