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
	uint64_t
	    wd_period; /* service manager's timeout, microseconds; 0 is off */
	uint64_t wd_patience; /* silence to log, microseconds; 0 is off */
	uint64_t wd_next;     /* time of the next check */
	bool wd_logged;	      /* true if a stuck loop was logged */
	bool wd_told;	      /* true if the master was told */
};

/*
 * Initialises the watchdog.  stall is stall_log in microseconds; 0 logs nothing before half of the
 * period.
 */
void watchdog_init(struct watchdog *, uint64_t period, uint64_t stall);

/* Returns milliseconds until the next check, or -1 if there is none. */
int watchdog_wait(const struct watchdog *);

/*
 * If a check is due, logs each worker whose loop made no progress for a second, or stall, or half
 * of the period.  With a period, sends CHANNEL_ALIVE to the master if each loop made progress
 * within half of it.  For the main thread.
 */
void watchdog_look(struct watchdog *, int channel, struct worker **,
    unsigned nworkers, struct log_writer *);

#endif
