/*
 * master_priv: what the files of the master share.  No other file includes this.
 *
 *   master.c       signals, what to do when
 *   children.c  server processes' messages and exits
 *   spawn.c        server processes as the master sees them
 *   tickets.c      the keys of session tickets
 *   upgrade.c      another program in the same process
 */
#ifndef SERVER_PROCESS_MASTER_PRIV_H
#define SERVER_PROCESS_MASTER_PRIV_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "server/process/channel.h"
#include "server/process/listen_table.h"
#include "server/tls/ticket_keys.h"

enum child_state {
	CHILD_STARTING = 'n',
	CHILD_SERVING = 's',
	CHILD_DRAINING = 'd', /* accepts no more clients, or soon */
	CHILD_KILLED = 'k',   /* ignored from now on, but see ms_free */
};

struct child {
	pid_t ch_pid;
	int ch_channel; /* -1 if closed */
	enum child_state ch_state;
	bool ch_quiet;	     /* accepts no more clients */
	bool ch_stuck;	     /* reported a stuck loop */
	bool ch_tickets;     /* requested ticket keys */
	unsigned ch_timeout; /* its shutdown_timeout, seconds */
	uint64_t ch_since;   /* time of the last state change, microseconds */
	LIST_ENTRY(child) ch_entry;
};

#define MASTER_DEATHS 5
#define MASTER_SECOND ((uint64_t)1000000) /* microseconds */
/*
 * Age of a start or test at which another signal replaces it (HUNG), or one that is pending
 * (WAITED).
 */
#define MASTER_HUNG   (5 * MASTER_SECOND)
#define MASTER_WAITED (20 * MASTER_SECOND)
#define MASTER_WAITS  86400 /* seconds: maximum shutdown_timeout */

struct master {
	int ms_argc;
	char **ms_argv;
	char *ms_program; /* path that an upgrade runs; NULL if unknown */
	uint64_t ms_watchdog;
	sigset_t ms_unblocked; /* signal mask during ppoll */

	LIST_HEAD(, child) ms_children;
	struct child *ms_starting;	/* NULL if none */
	struct child *ms_serving;	/* NULL if none */
	struct listen_table ms_sockets; /* the listening sockets */
	struct listen_table ms_next;	/* sockets of ms_starting so far */
	bool ms_served;	     /* true once a server process has served */
	bool ms_reload;	     /* reload pending until nothing starts */
	bool ms_upgrade;     /* upgrade pending until nothing starts */
	const char *ms_done; /* notice once old processes are quiet; or NULL */

	pid_t ms_test; /* test of the program for an upgrade; or 0 */
	int ms_test_output;
	uint64_t ms_test_since;	  /* microseconds */
	struct stat ms_test_file; /* the program under test */

	uint64_t ms_deaths[MASTER_DEATHS]; /* latest deaths, a ring */
	unsigned ms_ndeaths;
	unsigned ms_failures; /* failed starts since one served, capped */
	uint64_t ms_restart;  /* earliest time of the next start */

	/*
	 * End of a pause after the master killed a starting process, which may still have the
	 * addresses that the next one needs.  0 once it has exited.  It may wait for a device and
	 * never exit.
	 */
	uint64_t ms_free;

	struct ticket_key_list *ms_tickets; /* secret memory, or NULL */
	uint64_t ms_tickets_renew; /* time of the next renewal; 0 is never */

	const char *ms_withdraw; /* last text of CHANNEL_WITHDRAW or NULL */
	uint64_t ms_withdrawn;	 /* time of that message, microseconds */
	uint64_t ms_changed;	 /* time when the serving process changed */

	bool ms_ending;
	uint64_t ms_asked; /* start of the shutdown */
	uint64_t ms_kill;  /* deadline after which processes are killed */
	bool ms_over;	   /* exit at once */
	int ms_status;
};

/* ------------------------------------------------------------- withdraw.c */

/* Returns the value of ms_withdraw that a new server process must learn, or NULL. */
const char *withdraw_now(const struct master *);

/* ------------------------------------------------------------- children.c */

/* Reads and handles messages of a process, up to a limit. */
void children_hear(struct master *, struct child *);

/* Reaps the processes that have exited. */
void children_reap(struct master *);

/* Kills the starting process, which may wait for a device indefinitely. */
void children_kill_starting(struct master *);

/*
 * Handles a failed start: the old process stays, or the master tries again, or exits with status if
 * it was the first start.
 */
void children_start_failed(struct master *, int status);

/* Logs that a reload failed and the old process stays. */
void children_refused(struct master *);

/* Sends ms_done once the old processes are quiet or hang. */
void children_tell_done(struct master *);

/* ------------------------------------------------------------------- spawn.c */

/* Forks a server process, which becomes ms_starting.  Returns false after a message. */
bool spawn_child(struct master *);

/* Adds a process that runs already, from before an upgrade.  Returns NULL if memory is short. */
struct child *children_add(
    struct master *, pid_t, int channel, enum child_state);

/* Removes a process from the list and closes its channel. */
void children_free(struct master *, struct child *);
void children_free_all(struct master *);

/* Sets the state, and the time of the change. */
void children_become(struct child *, enum child_state);

/*
 * Sends without blocking.  Returns -errno if the process does not read; its channel is then closed,
 * except after a notice.
 */
int children_tell(struct child *, enum channel_kind, const char *text);

/* Writes "server process 123 was killed by signal 9 (Killed)", or "" after status 0. */
void children_cause(pid_t, int status, char *text, size_t size);

/* ----------------------------------------------------------------- tickets.c */

/*
 * Sends all ticket keys to a process that requested them.  Returns 0, or -errno if there are none.
 */
int tickets_give(struct master *, struct child *);

/* If the renewal is due, makes a new key and sends it to all processes. */
void tickets_renew(struct master *);

/* Adds a key from before an upgrade, the older one first, and sets the time of the next renewal. */
void tickets_inherit(
    struct master *, const struct ticket_key *, uint64_t renew);

/* Wipes the keys. */
void tickets_forget(struct master *);

/* ----------------------------------------------------------------- upgrade.c */

/* Runs the new program with -t.  upgrade_tested handles its exit. */
void upgrade_test(struct master *);

/* Handles the exit of the test.  Becomes the new program if status is good, else logs why not. */
void upgrade_tested(struct master *, int status);

/* Kills the running test, if any. */
void upgrade_cancel(struct master *);

/* Closes what belongs to the test.  For a child process that is no part of it. */
void upgrade_forget(struct master *);

/*
 * Takes over the state that an earlier master in this process left at the start.  Returns false if
 * there was none.
 */
bool upgrade_inherit(struct master *);

#endif
