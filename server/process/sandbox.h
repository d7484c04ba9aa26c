/*
 * sandbox: drops privileges once everything is open, before the first thread starts.  A process
 * that was started as root switches to conf_user; another process keeps its user, which must be
 * conf_user if that is set.  Then sandbox_os_confine drops every privilege that serving does not
 * need.
 */
#ifndef SERVER_PROCESS_SANDBOX_H
#define SERVER_PROCESS_SANDBOX_H

#include "server/conf/conf.h"

/*
 * Enters the sandbox.  `roots` are in the order of conf_roots.  `again` is true if an earlier
 * process already logged the user.  Notices go to stdout, errors to stderr.  Returns 0 or -1; after
 * -1 the process must exit, as the sandbox may be partly in effect.
 */
int sandbox_enter(
    const struct conf *, struct pw_root *const *roots, bool again);

/*
 * Checks that the user of the configuration can read its roots.  As root, forks a process that
 * opens the roots and switches its user as a start does, and waits for that process and its
 * devices.  Does nothing without root.  Returns 0 or -1.  A conf_try_f.
 */
int sandbox_try(const struct conf *);

#endif
