/*
 * root_probe: asks each root once a second whether it answers, for the key ready
 * (server/content/health.h).  It looks up a name that is not there, which a network or FUSE
 * file system has to answer itself; a local one may answer from memory, so it counts as
 * silent also while all threads of a queue of its disk wait and nothing ends.  A thread for
 * each disk: one that hangs holds up its own roots only.
 */
#ifndef SERVER_PROCESS_ROOT_PROBE_H
#define SERVER_PROCESS_ROOT_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/pagewise.h"

struct health;
struct root_probe;

/*
 * Roots are those of health, in its order; all stay until root_probe_end.  threads: of a
 * queue of the pool.  0 or -errno.
 */
int root_probe_start(struct pw_root *const *roots, struct pw_pool *,
    unsigned threads, struct health *, struct root_probe **);

/*
 * Waits for timeout_us at most.  False: a disk does not answer, and its thread still uses
 * the roots.  NULL is none.
 */
bool root_probe_end(struct root_probe **, uint64_t timeout_us);

#endif
