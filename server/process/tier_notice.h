/*
 * tier_notice: logs a warning if another process keeps the tier, as a second server with the same
 * directory does.  After a reload or an upgrade, waits longer before the warning, since the earlier
 * process keeps the tier until it drains.
 */
#ifndef SERVER_PROCESS_TIER_NOTICE_H
#define SERVER_PROCESS_TIER_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

struct conf;
struct log_writer;
struct pw_pool;

struct tier_notice {
	uint64_t tn_next; /* time of the next check, microseconds; 0 for now */
	uint64_t tn_deadline; /* time of the warning, microseconds */
	bool tn_logged;	      /* true if the warning was logged */
	bool tn_off;	      /* true if no check is needed any more */
};

/* `again` is true if an earlier process has served. */
void tier_notice_init(struct tier_notice *, const struct conf *, bool again);

/* Returns the milliseconds until the next check, or -1 if no check follows. */
int tier_notice_wait(const struct tier_notice *);

void tier_notice_look(struct tier_notice *, const struct conf *,
    struct pw_pool *, struct log_writer *);

/* Prints a line for -t if a process has the tier.  May wait for the disk. */
void tier_notice_print(const struct conf *);

#endif
