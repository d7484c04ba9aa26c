/*
 * serve_priv: between the files of the server process.  No other file includes this.
 *
 *   serve.c        the master's messages, shutdown
 *   start.c  opens everything, then starts the threads
 */
#ifndef SERVER_PROCESS_SERVE_PRIV_H
#define SERVER_PROCESS_SERVE_PRIV_H

#include "server/admin/admin.h"
#include "server/conf/conf.h"
#include "server/log/log.h"
#include "server/process/expiry.h"
#include "server/process/listen_table.h"
#include "server/process/watchdog.h"
#include "server/tls/ticket_keys.h"
#include "server/worker/worker.h"

/* How the process shuts down, by increasing urgency. */
enum end {
	END_NOT,
	END_DRAIN, /* when the last connection closes */
	END_STOP,  /* as END_DRAIN, but by sv_deadline */
	END_CUT,
};

struct server {
	int sv_channel; /* -1 if the master has exited */
	enum end sv_end;
	uint64_t sv_deadline; /* microseconds, with END_STOP */
	bool sv_quiet;	      /* true once CHANNEL_QUIET was sent */
	struct conf *sv_conf;
	struct pw_pool *sv_pool;
	struct pw_root **sv_roots;
	struct health *sv_health; /* NULL if off; sv_probe then too */
	struct root_probe *sv_probe;
	struct connection_limits *sv_clients;
	struct tcp_memory *sv_tcp_memory;
	struct heap_limit *sv_heap;
	struct client_rates *sv_rates;	  /* NULL if none */
	struct verifier *sv_verifier;	  /* NULL without passwords */
	struct handshaker *sv_handshaker; /* NULL without TLS */
	struct ticket_keys *sv_tickets;	  /* NULL without resumption */
	struct listen_table
	    sv_sockets;		/* until it accepts; others then have copies */
	struct admin *sv_admin; /* NULL if off */
	int sv_withdraw; /* the admin thread's copy of sv_channel, or -1 */
	struct log *sv_log;
	struct log_writer *sv_writer; /* writer of the main thread */
	struct worker **sv_workers;
	unsigned sv_started;
	struct watchdog sv_watchdog;
	struct expiry sv_expiry;
};

/*
 * Starts the server from sv_conf: opens the roots and all else, starts all threads, and sends
 * CHANNEL_READY.  The threads accept no connections yet.  Moves usable sockets out of old.  again
 * is true if an earlier process served.  Returns 0, or -1 after a message; open files stay open.
 */
int serve_start(struct server *, struct listen_table *old, bool again);

/*
 * Checks for -t and -T that the log can be opened, then runs sandbox_try.  May wait for devices.  A
 * conf_try_f.
 */
int serve_try(const struct conf *);

/* Starts or cancels draining, as balancers see it.  Requires sv_health.  Any thread. */
void serve_withdraw(struct server *, bool yes);

/* Starts to accept, after the master sent CHANNEL_SERVE. */
void serve_accept(struct server *);

/* Sends a command to all started workers. */
void serve_command(struct server *, enum command);

#endif
