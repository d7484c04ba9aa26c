/*
 * master_priv: declarations that the master's files share.  No other file includes this header.
 *
 *   master.c    signals and timers
 *   children.c  messages and exits of server processes
 *   spawn.c     starts of server processes, and their list
 *   tickets.c   keys of session tickets
 *   upgrade.c   executes a new program in the master's process
 *   withdraw.c  how long a drain or undrain is forwarded
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
	/* accepts no more clients, or soon stops accepting */
	CHILD_DRAINING = 'd',
	/* killed by the master, but not reaped; see ms_free */
	CHILD_KILLED = 'k',
};

struct child {
	pid_t ch_pid;
	int ch_channel; /* -1 if closed */
	enum child_state ch_state;
	bool ch_quiet;	     /* true once it accepts no more clients */
	bool ch_stuck;	     /* true while one of its loops is stuck */
	bool ch_tickets;     /* true if it requested ticket keys */
	unsigned ch_timeout; /* shutdown_timeout of the process, seconds */
	uint64_t ch_since;   /* time of the last state change, microseconds */
	LIST_ENTRY(child) ch_entry;
};

#define MASTER_DEATHS 5 /* deaths in a minute that end the master */
#define MASTER_SECOND ((uint64_t)1000000) /* microseconds */
/*
 * Time after which a start or an upgrade test is killed, microseconds: MASTER_HUNG when another
 * signal arrives, MASTER_WAITED if a signal is already pending.
 */
#define MASTER_HUNG   (5 * MASTER_SECOND)
#define MASTER_WAITED (20 * MASTER_SECOND)
#define MASTER_WAITS  86400 /* maximum shutdown_timeout, seconds */

struct master {
	int ms_argc;
	char **ms_argv;
	char *ms_program;      /* path that an upgrade runs; NULL if unknown */
	uint64_t ms_watchdog;  /* WATCHDOG_USEC, microseconds; 0 is off */
	sigset_t ms_unblocked; /* signal mask during ppoll */

	LIST_HEAD(, child) ms_children;
	struct child *ms_starting;	/* NULL if none */
	struct child *ms_serving;	/* NULL if none */
	struct listen_table ms_sockets; /* the listening sockets */
	/* sockets that ms_starting has sent so far */
	struct listen_table ms_next;
	bool ms_served;	 /* true once a server process has served */
	bool ms_reload;	 /* true if a reload waits until nothing starts */
	bool ms_upgrade; /* true if an upgrade waits until nothing starts */
	/* notice to log once old processes are quiet, or NULL */
	const char *ms_done;

	pid_t ms_test;	    /* process that tests a new program; 0 if none */
	int ms_test_output; /* pipe from that process; -1 if none */
	uint64_t ms_test_since;	  /* time when the test started, microseconds */
	struct stat ms_test_file; /* the program under test */

	/* ring of the times of the latest deaths, microseconds */
	uint64_t ms_deaths[MASTER_DEATHS];
	unsigned ms_ndeaths;
	/* number of failed starts since one succeeded, capped */
	unsigned ms_failures;
	uint64_t ms_restart; /* earliest time of the next start, microseconds */

	/*
	 * End of the pause after the master killed a starting process, microseconds; 0 once that
	 * process has exited.  Until then it may still have the addresses that the next process
	 * needs.  The pause is bounded, since the process may wait for a device and never exit.
	 */
	uint64_t ms_free;

	struct ticket_key_list *ms_tickets; /* secret memory, or NULL */
	/* time of the next renewal, microseconds; 0 is never */
	uint64_t ms_tickets_renew;

	const char *ms_withdraw; /* last text of CHANNEL_WITHDRAW, or NULL */
	uint64_t ms_withdrawn;	 /* time of that message, microseconds */
	uint64_t ms_changed; /* time when the serving process last changed */

	bool ms_ending; /* true once a shutdown has begun */
	/* time of the first signal to shut down, microseconds */
	uint64_t ms_asked;
	/* time when remaining processes are killed, microseconds */
	uint64_t ms_kill;
	bool ms_over;  /* true if the master must exit at once */
	int ms_status; /* exit status of the master */
};

/* ------------------------------------------------------------- withdraw.c */

/* Returns the value of ms_withdraw that a new server process must learn, or NULL. */
const char *withdraw_now(const struct master *);

/* ------------------------------------------------------------- children.c */

/* Reads and handles messages of a process, at most 64. */
void children_hear(struct master *, struct child *);

/* Reaps the processes that have exited. */
void children_reap(struct master *);

/* Kills the starting process, which may wait for a device indefinitely. */
void children_kill_starting(struct master *);

/*
 * Handles a failed start.  If an old process serves, it stays.  Otherwise the master exits with
 * `status` if no process has ever served, or else tries again.
 */
void children_start_failed(struct master *, int status);

/* Logs that a reload failed and the old process stays. */
void children_refused(struct master *);

/* If all old processes are quiet or hang, sends ms_done to the serving process, which logs it. */
void children_tell_done(struct master *);

/* ------------------------------------------------------------------- spawn.c */

/* Forks a server process, which becomes ms_starting.  Returns false after a message. */
bool spawn_child(struct master *);

/* Adds a process to ms_children.  Returns NULL if memory is short. */
struct child *children_add(
    struct master *, pid_t, int channel, enum child_state);

/* Removes a process from the list and closes its channel. */
void children_free(struct master *, struct child *);
void children_free_all(struct master *);

/* Sets the state, and sets the time of the change to now. */
void children_become(struct child *, enum child_state);

/*
 * Sends a message without blocking.  Returns 0, or -errno if the message cannot be sent.  After a
 * failure, closes the channel, unless the message is CHANNEL_SAY.
 */
int children_tell(struct child *, enum channel_kind, const char *text);

/*
 * Writes how a process ended, such as "server process 123 was killed by signal 9 (Killed)", or ""
 * after exit status 0.
 */
void children_cause(pid_t, int status, char *text, size_t size);

/* ----------------------------------------------------------------- tickets.c */

/*
 * Sends all ticket keys to a process that requested them.  Creates the keys if there are none.
 * Returns 0 or -errno.
 */
int tickets_give(struct master *, struct child *);

/* If the renewal is due, makes a new key and sends it to all processes. */
void tickets_renew(struct master *);

/*
 * Adds a key from before an upgrade.  `renew` is the time of the next renewal.  Call for the older
 * key first.
 */
void tickets_inherit(
    struct master *, const struct ticket_key *, uint64_t renew);

/* Wipes the keys. */
void tickets_forget(struct master *);

/* ----------------------------------------------------------------- upgrade.c */

/* Runs the new program with -t.  upgrade_tested handles its exit. */
void upgrade_test(struct master *);

/*
 * Handles the exit of the test.  Executes the new program if the test passed, else logs the cause.
 */
void upgrade_tested(struct master *, int status);

/* Kills the running test, if any. */
void upgrade_cancel(struct master *);

/*
 * Closes the test's output and forgets the test, without killing it.  A new server process also
 * calls upgrade_forget.
 */
void upgrade_forget(struct master *);

/*
 * Reads the state that the earlier program of this process left for an upgrade.  Returns false if
 * there is none, or if it cannot be read.
 */
bool upgrade_inherit(struct master *);

#endif
