/*
 * inside: what somebody would try who had taken the server over, tried by the
 * server itself.  In build/debug only (-DPW_INSIDE), for tests/http/test_sandbox.py.
 */
#ifndef TESTS_INSIDE_INSIDE_H
#define TESTS_INSIDE_INSIDE_H

#include "server/worker/worker.h"

/*
 * If the environment has PAGEWISE_INSIDE, the path of a directory outside of all
 * roots, everything is tried on the calling thread, which is a worker's, and on one
 * of the pool, and a line of results is logged for each:
 *     inside worker: read_root=ok read_outside=EACCES ...
 * What succeeds changes the root and that directory.
 *
 * If it has PAGEWISE_SUPPRESSED, 1 message of the first kind of message_rate.h counts as suppressed,
 * 2 of the second, and so on, for tests/http/test_limits.py.
 */
void inside_try(struct worker *);

/*
 * The same by way of io_uring, which the filter of system calls does not look into.
 * 0, or -1 and errno: ENOSYS where there is no ring to be had.
 */
int inside_ring_open(const char *path);
int inside_ring_connect(int domain, int type, const char *path);

struct inside;
int inside_root(const struct inside *); /* the root's descriptor */

/* On sticky/theirs below the root, a file of another user: 0, or -1 and errno. */
int inside_ask_theirs(struct inside *);
int inside_chmod_theirs(struct inside *);
int inside_utimes_theirs(struct inside *);
int inside_acl_theirs(struct inside *);
int inside_flags_theirs(struct inside *);
int inside_noatime_theirs(struct inside *);
int inside_pageout_theirs(struct inside *);
int inside_link_theirs(struct inside *);
int inside_rename_theirs(struct inside *);
int inside_unlink_theirs(struct inside *); /* of files beside it */

/* On other processes, of which the parent is one, and on sockets: 0, or -1 and errno. */
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
