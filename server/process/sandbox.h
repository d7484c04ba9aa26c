/*
 * sandbox: what the server gives up once everything is open, before its first
 * thread starts: root, by becoming the user of the configuration, and then all
 * that serving does not need (os_confine).
 *
 * Started as root it becomes conf_user.  Otherwise it stays whom it was started
 * as, which must be the user of the configuration if that has one.
 */
#ifndef SERVER_PROCESS_SANDBOX_H
#define SERVER_PROCESS_SANDBOX_H

#include "server/conf/conf.h"

/*
 * roots are those of the sites, in their order.  What it says goes to stdout, and
 * to stderr if it fails.  0, or -1: then the process has to end, since part of it
 * may be done.  again: an earlier process has said whom it becomes.
 */
int sandbox_enter(
    const struct conf *, struct pw_root *const *roots, bool again);

#endif
