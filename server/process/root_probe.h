/*
 * root_probe: probes each root once a second, for the key ready (server/content/health.h).  A probe
 * looks up a name that does not exist, which a network or FUSE file system must resolve itself.  A
 * local file system may respond from memory, so a root also counts as silent while all pool threads
 * of a queue of its device are busy and no job completes.  There is one probing thread per device,
 * so that a device that hangs delays only its own roots.
 */
#ifndef SERVER_PROCESS_ROOT_PROBE_H
#define SERVER_PROCESS_ROOT_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/pagewise.h"

struct health;
struct root_probe;

/*
 * Starts the probes.  `roots` are those of the struct health, in its order; the caller keeps all
 * arguments until root_probe_end.  `threads` is the number of pool threads per queue.  Returns 0 or
 * -errno.
 */
int root_probe_start(struct pw_root *const *roots, struct pw_pool *,
    unsigned threads, struct health *, struct root_probe **);

/*
 * Stops the probes and waits for at most timeout_us.  Returns false if a device does not respond
 * and its thread still uses the roots.  Returns true if *probe is NULL.
 */
bool root_probe_end(struct root_probe **, uint64_t timeout_us);

#endif
