/*
 * watchdog: logs a loop that hangs, or that runs without progress (spin.h), and reports to the
 * master while all loops make progress.  Without these reports, the service manager
 * (systemd.service(5), WatchdogSec) restarts the server.
 */
#ifndef SERVER_PROCESS_WATCHDOG_H
#define SERVER_PROCESS_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct log_writer;
struct worker;

struct watchdog {
	/* service manager's timeout, microseconds; 0 is off */
	uint64_t wd_period;
	/* time without progress after which a loop is stuck, microseconds; 0 is off */
	uint64_t wd_patience;
	uint64_t wd_next; /* time of the next check, microseconds */
	bool wd_logged;	  /* true if a stuck loop was logged */
	bool wd_told;	  /* true if CHANNEL_STUCK was sent */
};

/*
 * Initialises the watchdog.  `period` is the service manager's timeout and `stall` is stall_log,
 * both in microseconds.  If `stall` is 0, a stuck loop is logged only after half of the period.
 */
void watchdog_init(struct watchdog *, uint64_t period, uint64_t stall);

/* Returns the milliseconds until the next check, or -1 if no check follows. */
int watchdog_wait(const struct watchdog *);

/*
 * If a check is due, logs the first worker whose loop made no progress for wd_patience, and later
 * logs that all loops run again.  If wd_period is not 0, sends the master CHANNEL_ALIVE if each loop
 * made progress within half of wd_period, else CHANNEL_STUCK once.  Does nothing if `channel` is
 * -1.  Call on the main thread.
 */
void watchdog_look(struct watchdog *, int channel, struct worker **,
    unsigned nworkers, struct log_writer *);

#endif
