/*
 * inside: what somebody would try who had taken the server over, tried by the
 * server itself.  In build/debug only (-DPW_INSIDE), for tests/http/test_sandbox.py.
 */
#ifndef SERVER_INSIDE_H
#define SERVER_INSIDE_H

#include "worker.h"

/*
 * If the environment has PAGEWISE_INSIDE, the path of a directory outside of all
 * roots, everything is tried on the calling thread, which is a worker's, and on one
 * of the pool, and a line of results is logged for each:
 *     inside worker: read_root=ok read_outside=EACCES ...
 * What succeeds changes the root and that directory.
 */
void inside_try(struct worker *);

/*
 * The same by way of io_uring, which the filter of system calls does not look into.
 * 0, or -1 and errno: ENOSYS where there is no ring to be had.
 */
int inside_ring_open(const char *path);
int inside_ring_connect(int domain, int type, const char *path);

/* On other processes, of which the parent is one, and on sockets: 0, or -1 and errno. */
struct inside;
int inside_fork(struct inside *);
int inside_ptrace(struct inside *);
int inside_kill(struct inside *);
int inside_tgkill(struct inside *);
int inside_schedule(struct inside *);
int inside_affinity(struct inside *);
int inside_limit(struct inside *);
int inside_connect(struct inside *);
int inside_bind(struct inside *);
int inside_fastopen_to(struct inside *);
int inside_fastopen_msg(struct inside *);
int inside_option(struct inside *);
int inside_option_twin(struct inside *);
int inside_option_tcp(struct inside *);

#endif
