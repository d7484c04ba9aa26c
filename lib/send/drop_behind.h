/*
 * drop_behind: evicts pages that a transmission with PW_CACHE_DROP fetched.  Pages in a
 * socket's queue cannot be evicted, so pages are dropped when the client has acknowledged them.  The
 * last pages of a transmission are dropped DROP_LATER after its end; if the client is near, also after
 * DROP_SOON, since at 500 MiB/s of misses 500 MiB would wait for DROP_LATER.
 */
#ifndef LIB_SEND_DROP_BEHIND_H
#define LIB_SEND_DROP_BEHIND_H

#include "lib/pagewise.h"

#define DROP_SOON  UINT64_C(20000)   /* delay of an early drop, microseconds */
#define DROP_LATER UINT64_C(1000000) /* delay of the last drop, microseconds */

struct drops;

struct drops *drop_behind_create(void);
void drop_behind_destroy(struct drops **);

/* Maximum number of tries of a drop.  A try fails while a loop sends the file, and is repeated after DROP_SOON. */
#define DROP_TRIES 8

/*
 * Drops `len` bytes at `off` at the time due_us, or at once if due_us is 0.  due_us must not be earlier
 * than in the previous call.  Adds a reference to the file.
 */
void drop_behind_add(struct pw_file *, off_t off, off_t len, uint64_t due_us);

/* Drops `len` bytes at `off` DROP_SOON from now.  Does not affect the order of drop_behind_add. */
void drop_behind_add_soon(struct pw_file *, off_t off, off_t len);

void drop_behind_tick(struct pw_loop *, uint64_t now_us);

#endif
