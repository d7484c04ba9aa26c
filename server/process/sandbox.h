/*
 * sandbox: drops privileges once everything is open, before the first thread starts:
 * root, by switching to the user of the configuration, then every privilege that
 * serving does not need (sandbox_os_confine).
 *
 * Started as root, it switches to conf_user.  Otherwise it keeps its user, which must be
 * that of the configuration, if any.
 */
#ifndef SERVER_PROCESS_SANDBOX_H
#define SERVER_PROCESS_SANDBOX_H

#include "server/conf/conf.h"

/*
 * Enters the sandbox.  roots are those of the sites, in their order.  again is true if an earlier
 * process has logged the user.  Notices go to stdout, errors to stderr.  Returns 0, or -1: the
 * process must then exit, as the sandbox may be partly in effect.
 */
int sandbox_enter(
    const struct conf *, struct pw_root *const *roots, bool again);

/*
 * Checks that the user of the configuration can read its roots.  As root, forks a process that
 * opens them as a start does, and waits for devices.  A conf_try_f.
 */
int sandbox_try(const struct conf *);

#endif
