/*
 * watchdog: tells the master that all loops turn, as long as they do: the service
 * manager (systemd.service(5), WatchdogSec) restarts what has gone silent.
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
	uint64_t wd_next; /* look */
	bool wd_told;	  /* that one is stuck */
};

void watchdog_init(struct watchdog *, uint64_t period);

/* For how long to wait until the next look, milliseconds; -1: for ever. */
int watchdog_wait(const struct watchdog *);

/*
 * If it is time: CHANNEL_ALIVE to the master, if every worker's loop has turned within
 * half of the period; else which one has not, also to the log.  Main's thread.
 */
void watchdog_look(struct watchdog *, int channel, struct worker **,
    unsigned nworkers, struct log_writer *);

#endif
