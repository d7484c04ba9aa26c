/*
 * roots: the directories that the sites serve.  They are opened at the start
 * and again at SIGHUP, since a symbolic link that leads to one may have been
 * switched, or a directory been replaced.
 *
 * Opening may wait for a disk, so the pool does it, for a worker's loop; then
 * every worker is told, and takes references of its own.  A request that is
 * under way keeps the root that it began with.
 */
#ifndef SERVER_ROOTS_H
#define SERVER_ROOTS_H

#include "conf.h"
#include "log.h"

struct roots;

/*
 * Main's thread, at the start and at the end; may wait.  0, or -1 after a
 * message.  When a root was replaced, told(arg) is called, by the thread of the
 * loop that roots_reopen was given.
 */
int roots_open(
    const struct conf *, void (*told)(void *arg), void *arg, struct roots **);
void roots_close(struct roots **);

/*
 * Opens all of them again.  One that cannot be opened stays as it was, and the
 * log says why.  Always on the thread of the same loop, which must have nothing
 * pending before it ends.
 */
void roots_reopen(struct roots *, struct pw_loop *, struct log_writer *);

/*
 * Tells of those that were replaced since, all at once: when the last one is done,
 * and a few times a second while others hang.  That same loop's thread.
 */
void roots_tick(struct roots *);

/*
 * Brings the references of one loop's thread up to date: mine[i] belongs to
 * conf_sites[i], NULL at first.
 */
void roots_take(struct roots *, struct pw_loop *, struct pw_root **mine);
void roots_drop(const struct roots *, struct pw_loop *, struct pw_root **mine);

#endif
