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
	/* accepts no more clients, or will soon stop accepting */
	CHILD_DRAINING = 'd',
	/* killed by the master, but not yet reaped; see ms_free */
	CHILD_KILLED = 'k',
};

struct child {
	pid_t ch_pid;
	int ch_channel; /* -1 if closed */
	enum child_state ch_state;
	bool ch_quiet;	     /* true if the process accepts no clients */
	bool ch_stuck;	     /* true if a loop of the process is stuck */
	bool ch_cut;	     /* true if told to close its connections */
	bool ch_tickets;     /* true if the process requested keys */
	unsigned ch_timeout; /* shutdown_timeout of the process, seconds */
	uint64_t ch_since;   /* time of the last state change, microseconds */
	TAILQ_ENTRY(child) ch_entry;
};

#define MASTER_OLD    32 /* maximum number of processes that drain */
#define MASTER_DEATHS 5	 /* deaths in a minute that make the master exit */
#define MASTER_SECOND ((uint64_t)1000000) /* microseconds */
/*
 * Limits of the age of a start or an upgrade test when another signal arrives, microseconds.  The
 * master kills a start or test that is older than MASTER_HUNG.  A younger start or test may
 * continue until MASTER_WAITED.
 */
#define MASTER_HUNG   (5 * MASTER_SECOND)
#define MASTER_WAITED (20 * MASTER_SECOND)
#define MASTER_WAITS  86400 /* maximum shutdown_timeout, seconds */

struct master {
	int ms_argc;
	char **ms_argv;
	char *ms_program;      /* path to run for an upgrade; NULL if unknown */
	uint64_t ms_watchdog;  /* WATCHDOG_USEC, microseconds; 0 if off */
	sigset_t ms_unblocked; /* signal mask for ppoll */

	/* oldest first */
	TAILQ_HEAD(, child) ms_children;
	struct child *ms_starting; /* NULL if no process starts */
	struct child *ms_serving;  /* NULL if no process serves */
	struct listen_table ms_sockets;
	/* sockets that ms_starting has sent so far */
	struct listen_table ms_next;
	bool ms_served;	 /* true if a server process has ever served */
	bool ms_reload;	 /* true if a reload waits for a start or test */
	bool ms_upgrade; /* true if an upgrade waits for a start or test */
	/* notice to log when old processes are quiet, or NULL */
	const char *ms_done;

	pid_t ms_test;	    /* process that tests the new program; 0 if none */
	int ms_test_output; /* pipe with the test's output; -1 if none */
	uint64_t ms_test_since;	  /* start of the test, microseconds */
	struct stat ms_test_file; /* file of the program under test */

	/* times of the latest deaths, microseconds (a ring) */
	uint64_t ms_deaths[MASTER_DEATHS];
	unsigned ms_ndeaths;
	/* number of failed starts since the last success, capped */
	unsigned ms_failures;
	/* earliest time of the next start, microseconds; 0 for now */
	uint64_t ms_restart;

	/*
	 * End of the pause after the master killed a starting process, microseconds; 0 if that
	 * process has exited.  Until then that process may have the addresses that the next process
	 * needs.  The pause is limited, because a process that waits for a device may never exit.
	 */
	uint64_t ms_free;

	struct ticket_key_list *ms_tickets; /* secret memory, or NULL */
	/* time of the next renewal, microseconds; 0 for never */
	uint64_t ms_tickets_renew;

	const char *ms_withdraw; /* last text of CHANNEL_WITHDRAW, or NULL */
	uint64_t ms_withdrawn;	 /* time of the last CHANNEL_WITHDRAW, us */
	/* time when the present server process began to serve, microseconds */
	uint64_t ms_changed;

	bool ms_ending; /* true if a shutdown has begun */
	/* time of the first signal to shut down, microseconds */
	uint64_t ms_asked;
	/* time when the master kills remaining processes, microseconds */
	uint64_t ms_kill;
	bool ms_over;  /* true if the master must exit at once */
	int ms_status; /* exit status of the master */
};

/* ------------------------------------------------------------- withdraw.c */

/* Returns the value of ms_withdraw to send to a new server process, or NULL. */
const char *withdraw_now(const struct master *);

/* ------------------------------------------------------------- children.c */

/* Reads and handles at most 64 messages of a process. */
void children_hear(struct master *, struct child *);

void children_reap(struct master *);

/* Kills the starting process, which may wait for a device indefinitely. */
void children_kill_starting(struct master *);

/*
 * Handles a failed start.  An old process continues to serve.  Without one, the master exits with
 * `status` if no process ever served, else tries again.
 */
void children_start_failed(struct master *, int status);

/* Logs that a reload failed and that the old configuration stays in use. */
void children_refused(struct master *);

/* Sends ms_done to the serving process, which logs it, if all old processes are quiet or hang. */
void children_tell_done(struct master *);

/* ------------------------------------------------------------------- spawn.c */

/*
 * Forks a server process, and stores it in ms_starting.  On failure logs the cause and returns
 * false.
 */
bool spawn_child(struct master *);

/* Adds a process to ms_children.  Returns NULL if memory is short. */
struct child *children_add(
    struct master *, pid_t, int channel, enum child_state);

void children_free(struct master *, struct child *);
void children_free_all(struct master *);

void children_become(struct child *, enum child_state);

/*
 * Sends a message without blocking.  Returns 0 or -errno.  On failure, closes the channel unless
 * the message is CHANNEL_SAY.
 */
int children_tell(struct child *, enum channel_kind, const char *text);

/*
 * Writes how a process ended, such as "server process 123 was killed by signal 9 (Killed)".  Writes
 * "" for exit status 0.
 */
void children_cause(pid_t, int status, char *text, size_t size);

/* ----------------------------------------------------------------- tickets.c */

/*
 * Sends all ticket keys to a process that has requested them.  Creates keys if there are none.
 * Returns 0 or -errno.
 */
int tickets_give(struct master *, struct child *);

/* If a renewal is due, creates a key and sends it to all processes. */
void tickets_renew(struct master *);

/*
 * Adds a key that an earlier program left for an upgrade.  Call for the older key first.  `renew`
 * is the time of the next renewal.
 */
void tickets_inherit(
    struct master *, const struct ticket_key *, uint64_t renew);

void tickets_forget(struct master *);

/* ----------------------------------------------------------------- upgrade.c */

/*
 * Runs the new program with -t, to test the configuration.  upgrade_tested handles the exit of the
 * test.
 */
void upgrade_test(struct master *);

/*
 * Handles the exit of the test.  If the test failed, logs the cause.  Otherwise executes the new
 * program, or requests another test if the file has changed or a server process is starting.
 */
void upgrade_tested(struct master *, int status);

/* Kills the test if it runs. */
void upgrade_cancel(struct master *);

/*
 * Closes the output of the test and forgets the test, without killing it.  Each new server process
 * also calls this function.
 */
void upgrade_forget(struct master *);

/*
 * Reads the state that the program before the upgrade left for this program.  Returns false if
 * there is no state, or if the state cannot be read.
 */
bool upgrade_inherit(struct master *);

#endif
