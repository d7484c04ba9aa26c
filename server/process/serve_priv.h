/*
 * serve_priv: declarations that the files of the server process share.  No other file includes
 * this header.
 *
 *   serve.c        handles the master's messages, shuts down
 *   serve_start.c  opens everything, then starts the threads
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
	END_DRAIN, /* end after the last connection has closed */
	END_STOP,  /* as END_DRAIN, but at sv_deadline at the latest */
	END_CUT,   /* close all connections now */
};

struct server {
	int sv_channel; /* -1 if the master has exited */
	enum end sv_end;
	uint64_t sv_deadline; /* deadline with END_STOP, microseconds */
	bool sv_quiet;	      /* true once CHANNEL_QUIET was sent */
	struct conf *sv_conf;
	struct pw_pool *sv_pool;
	struct pw_root **sv_roots;
	struct health *sv_health; /* NULL if off; then sv_probe is NULL, too */
	struct root_probe *sv_probe;
	struct connection_limits *sv_clients;
	struct tcp_memory *sv_tcp_memory;
	struct heap_limit *sv_heap;
	struct client_rates *sv_rates;	  /* NULL if none */
	struct verifier *sv_verifier;	  /* NULL without passwords */
	struct handshaker *sv_handshaker; /* NULL without TLS */
	struct ticket_keys *sv_tickets;	  /* NULL without resumption */
	struct listen_table sv_sockets;	  /* closed once the process accepts */
	struct admin *sv_admin;		  /* NULL if off */
	int sv_withdraw; /* the admin thread's copy of sv_channel, or -1 */
	struct log *sv_log;
	struct log_writer *sv_writer; /* writer of the main thread */
	struct worker **sv_workers;
	unsigned sv_started; /* number of workers whose threads run */
	struct watchdog sv_watchdog;
	struct expiry sv_expiry;
};

/*
 * Starts the server from sv_conf: opens all files and sockets, starts all threads, and sends
 * CHANNEL_READY.  The threads accept no connections yet.  Moves usable sockets out of `old`.
 * `again` is true if an earlier process served.  Returns 0, or -1 after a message; open files stay
 * open.
 */
int serve_start(struct server *, struct listen_table *old, bool again);

/*
 * For -t and -T, checks that the log can be opened, then runs sandbox_try.  May wait for devices.
 * Returns 0 or -1.  A conf_try_f.
 */
int serve_try(const struct conf *);

/*
 * Makes the responses to health checks begin or cancel a drain.  Requires sv_health.  Any thread
 * may call it.
 */
void serve_withdraw(struct server *, bool yes);

/* Starts to accept connections.  Call after the master sent CHANNEL_SERVE. */
void serve_accept(struct server *);

/* Sends a command to all started workers. */
void serve_command(struct server *, enum command);

#endif
