/*
 * drop_behind: has disk threads evict pages that a transmission or pw_fetch fetched, with PW_CACHE_DROP or
 * for unpopular files.  Pages in a socket's queue cannot be evicted, so a loop drops pages when the client
 * has acknowledged them.  The last pages of a transmission are dropped DROP_LATER after its end; if the
 * client is near, also after DROP_SOON, since at 500 MiB/s of misses 500 MiB would wait for DROP_LATER.
 * Loop's thread.
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
 * Has a disk thread drop `len` bytes at `off` at the time due_us, or at once if due_us is 0.  due_us must
 * not be earlier than in the previous call.  Adds a reference to the file until the drop has ended.
 */
void drop_behind_add(struct pw_file *, off_t off, off_t len, uint64_t due_us);

/*
 * Has a disk thread drop `len` bytes at `off` DROP_SOON from now.  The rule for due_us of drop_behind_add
 * ignores this call.
 */
void drop_behind_add_soon(struct pw_file *, off_t off, off_t len);

void drop_behind_tick(struct pw_loop *, uint64_t now_us);

#endif
