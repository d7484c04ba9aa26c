/*
 * watchdog: logs that a loop does not turn, or turns and gets nowhere (spin.h); and tells the
 * master that all loops go on, as long as they do: the service manager (systemd.service(5),
 * WatchdogSec) restarts what has gone silent.
 */
#ifndef SERVER_PROCESS_WATCHDOG_H
#define SERVER_PROCESS_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct log_writer;
struct worker;

struct watchdog {
	uint64_t
	    wd_period; /* microseconds without a word, then it acts; 0: off */
	uint64_t wd_patience; /* the same, then it is logged; 0: off */
	uint64_t wd_next;     /* look */
	bool wd_logged;	      /* that one is stuck, ... */
	bool wd_told;	      /* ... and to the master */
};

/* stall: as stall_log, microseconds; 0: nothing is logged before the half of the period. */
void watchdog_init(struct watchdog *, uint64_t period, uint64_t stall);

/* For how long to wait until the next look, milliseconds; -1: for ever. */
int watchdog_wait(const struct watchdog *);

/*
 * If it is time: logs which worker's loop has not gone on for a second, or stall, or half of the
 * period; with a period CHANNEL_ALIVE to the master, if each has within its half.  Main's thread.
 */
void watchdog_look(struct watchdog *, int channel, struct worker **,
    unsigned nworkers, struct log_writer *);

#endif
