/*
 * master_priv: what the files of the master share.  No other file includes this.
 *
 *   master.c       signals, what to do when
 *   children.c  what server processes say, how they end, and what follows
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
	CHILD_DRAINING = 'd', /* accepts nothing, or soon */
	CHILD_KILLED = 'k',   /* not waited for, but see ms_free */
};

struct child {
	pid_t ch_pid;
	int ch_channel; /* -1: it has closed it */
	enum child_state ch_state;
	bool ch_quiet;	     /* it accepts nothing any more */
	bool ch_stuck;	     /* it has said so of one of its loops */
	bool ch_tickets;     /* it has asked for keys of tickets */
	unsigned ch_timeout; /* its shutdown_timeout, seconds */
	uint64_t ch_since;   /* when its state began, microseconds */
	LIST_ENTRY(child) ch_entry;
};

#define MASTER_DEATHS 5
#define MASTER_SECOND ((uint64_t)1000000) /* microseconds */
/* Of a start or test: then another signal replaces it, or one that waits already. */
#define MASTER_HUNG   (5 * MASTER_SECOND)
#define MASTER_WAITED (20 * MASTER_SECOND)
#define MASTER_WAITS  86400 /* seconds: the longest shutdown_timeout */

struct master {
	int ms_argc;
	char **ms_argv;
	char *ms_program; /* path that an upgrade runs; NULL: unknown */
	uint64_t ms_watchdog;
	sigset_t ms_unblocked; /* while it waits */

	LIST_HEAD(, child) ms_children;
	struct child *ms_starting;	/* NULL: none */
	struct child *ms_serving;	/* the same */
	struct listen_table ms_sockets; /* the listening sockets */
	struct listen_table ms_next;	/* the same by ms_starting, so far */
	bool ms_served;			/* there has been a serving one */
	bool ms_reload;			/* as soon as none is starting */
	bool ms_upgrade;		/* the same */
	const char *ms_done; /* said when the old ones are quiet, or NULL */

	pid_t ms_test; /* of a program that an upgrade would run; 0: none */
	int ms_test_output;
	uint64_t ms_test_since;	  /* microseconds */
	struct stat ms_test_file; /* the program under test */

	uint64_t ms_deaths[MASTER_DEATHS]; /* the last ones, in a ring */
	unsigned ms_ndeaths;
	unsigned ms_failures; /* of starts since one served, to a bound */
	uint64_t ms_restart;  /* not before this another one is started */

	/*
	 * Until when nothing is begun, since one that was killed has the addresses of
	 * the next one; 0: it has ended.  It may wait for a disk and not end.
	 */
	uint64_t ms_free;

	struct ticket_key_list *ms_tickets; /* os_secret_create; NULL: none */
	uint64_t ms_tickets_renew; /* when a new one is due; 0: never */

	const char *ms_withdraw; /* last text of CHANNEL_WITHDRAW; NULL: none */
	uint64_t ms_withdrawn;	 /* when that was heard, microseconds */
	uint64_t ms_changed;	 /* when another child began to serve */

	bool ms_ending;
	uint64_t ms_asked; /* when that began */
	uint64_t ms_kill;  /* when those that have not ended are killed */
	bool ms_over;	   /* at once */
	int ms_status;
};

/* ------------------------------------------------------------- withdraw.c */

/* What a new child has to know of ms_withdraw, or NULL. */
const char *withdraw_now(const struct master *);

/* ------------------------------------------------------------- children.c */

/* Its output, cut if it is long. */
void children_hear(struct master *, struct child *);

/* Collects those that have ended. */
void children_reap(struct master *);

/* The new one, which may wait for a disk for ever. */
void children_kill_starting(struct master *);

/*
 * No server process could be started: the old one stays, or it is tried again, or that
 * was the first one, and status is what to exit with.
 */
void children_start_failed(struct master *, int status);

/* The new one will not be: the old one stays. */
void children_refused(struct master *);

/* Says ms_done when the old ones are quiet, or hang. */
void children_tell_done(struct master *);

/* ------------------------------------------------------------------- spawn.c */

/* One more, which becomes ms_starting.  False after a message. */
bool spawn_child(struct master *);

/* One that runs already, from before an upgrade.  NULL: no memory. */
struct child *children_add(
    struct master *, pid_t, int channel, enum child_state);

/* Forgets it and closes what it has. */
void children_free(struct master *, struct child *);
void children_free_all(struct master *);

/* A change of its state. */
void children_become(struct child *, enum child_state);

/*
 * Without waiting; a child that does not listen does not hear it: -errno.  But for a notice
 * its channel is closed then.
 */
int children_tell(struct child *, enum channel_kind, const char *text);

/* "server process 123 was killed by signal 9 (Killed)"; ended well: "" */
void children_cause(pid_t, int status, char *text, size_t size);

/* ----------------------------------------------------------------- tickets.c */

/* It has asked for keys: all that there are.  0, or -errno: there are none. */
int tickets_give(struct master *, struct child *);

/* If it is time: all get a new one. */
void tickets_renew(struct master *);

/* One from before an upgrade, the older one first, and when the next one is due. */
void tickets_inherit(
    struct master *, const struct ticket_key *, uint64_t renew);

/* Wipes them. */
void tickets_forget(struct master *);

/* ----------------------------------------------------------------- upgrade.c */

/* Runs the new program with -t; upgrade_tested when that has ended. */
void upgrade_test(struct master *);

/* Its status: becomes the new program, if that is well; else tells why not. */
void upgrade_tested(struct master *, int status);

/* Ends the test, if there is one. */
void upgrade_cancel(struct master *);

/* Closes what belongs to the test; in a child that has nothing to do with it. */
void upgrade_forget(struct master *);

/*
 * At the start: what a master before us, in this process, has left to us: true, or
 * false if there was none.
 */
bool upgrade_inherit(struct master *);

#endif
