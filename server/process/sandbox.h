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
 * roots are those of the sites, in their order.  Its notices go to stdout, its errors
 * to stderr.  0, or -1: then the process has to end, since part of it may be done.
 * again: an earlier process has logged the user.
 */
int sandbox_enter(
    const struct conf *, struct pw_root *const *roots, bool again);

/*
 * Whether the user of the configuration may read its roots: as root, tried by a process of its
 * own, which opens them as a start does, and waits for disks.  A conf_try_f.
 */
int sandbox_try(const struct conf *);

#endif
