/*
 * watchdog: logs a loop that hangs, or that runs without progress (spin.h), and reports to the master
 * while all loops make progress.  The service manager (systemd.service(5), WatchdogSec) restarts a
 * silent server.
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
	/* longest tolerated silence, microseconds; 0 is off */
	uint64_t wd_patience;
	uint64_t wd_next; /* time of the next check, microseconds */
	bool wd_logged;	  /* true if a stuck loop was logged */
	bool wd_told;	  /* true if CHANNEL_STUCK was sent */
};

/*
 * Initialises the watchdog.  period is the service manager's timeout and stall is stall_log, both
 * in microseconds.  If stall is 0, a stuck loop is logged only after half of the period.
 */
void watchdog_init(struct watchdog *, uint64_t period, uint64_t stall);

/* Returns milliseconds until the next check, or -1 if there is none. */
int watchdog_wait(const struct watchdog *);

/*
 * If a check is due, logs a worker whose loop made no progress for wd_patience.  With a period,
 * sends CHANNEL_ALIVE to the master if each loop made progress within half of it.  For the main
 * thread.
 */
void watchdog_look(struct watchdog *, int channel, struct worker **,
    unsigned nworkers, struct log_writer *);

#endif
