/*
 * root_probe: probes each root once a second, for the key ready (server/content/health.h).  A probe
 * looks up a name that does not exist.  A network or FUSE file system must resolve such a name
 * itself; a local one may respond from memory.  So a root also counts as silent if all pool threads
 * of a queue of its device stay busy and no job completes.  Each device has its own probing thread,
 * so that a hanging device delays only its own roots.
 */
#ifndef SERVER_PROCESS_ROOT_PROBE_H
#define SERVER_PROCESS_ROOT_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/pagewise.h"

struct health;
struct root_probe;

/*
 * Starts the probes.  `roots` has the roots of the struct health, in the same order.  `threads` is
 * the number of pool threads per queue.  The caller must not free the arguments before
 * root_probe_end.  Returns 0 or -errno.
 */
int root_probe_start(struct pw_root *const *roots, struct pw_pool *,
    unsigned threads, struct health *, struct root_probe **);

/*
 * Stops the probes, and waits at most timeout_us for them.  Returns false if a device does not
 * respond and its thread still uses the roots.  Returns true if *probe is NULL.
 */
bool root_probe_end(struct root_probe **, uint64_t timeout_us);

#endif
