/*
 * sandbox: drops privileges when everything is open and before the first thread starts.  A process
 * started as root changes its user to conf_user.  A process started without root keeps its user,
 * which must be conf_user if that is set.  Then sandbox_os_confine drops all privileges that
 * serving does not need.
 */
#ifndef SERVER_PROCESS_SANDBOX_H
#define SERVER_PROCESS_SANDBOX_H

#include "server/conf/conf.h"

/*
 * Enters the sandbox.  `roots` have the order of conf_roots.  `again` is true if an earlier process
 * has logged the user.  Prints notices to stdout and errors to stderr.  Returns 0, or -1; the
 * process must then exit, because the sandbox may be partly in effect.
 */
int sandbox_enter(
    const struct conf *, struct pw_root *const *roots, bool again);

/*
 * Checks that the configured user can read the roots.  As root, forks a process that opens the
 * roots and changes its user as at a start, and waits for this process, which may wait for devices.
 * Does nothing without root.  Returns 0, or -1 after a message.
 */
int sandbox_try(const struct conf *);

#endif
