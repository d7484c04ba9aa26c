/*
 * serve_priv: declarations that the files of the server process share.  No other file includes
 * this header.
 *
 *   serve.c          handles the master's messages, shuts down
 *   serve_start.c    opens everything, then starts the threads
 *   serve_sockets.c  passes, shares and announces the sockets
 */
#ifndef SERVER_PROCESS_SERVE_PRIV_H
#define SERVER_PROCESS_SERVE_PRIV_H

#include "server/admin/admin.h"
#include "server/conf/conf.h"
#include "server/log/log.h"
#include "server/process/expiry.h"
#include "server/process/listen_table.h"
#include "server/process/tier_notice.h"
#include "server/process/watchdog.h"
#include "server/tls/ticket_keys.h"
#include "server/worker/worker.h"

/* How the process shuts down, with the most urgent way last. */
enum end {
	END_NOT,
	END_DRAIN, /* exits after the last connection, after drain_timeout at most */
	END_STOP, /* the same after shutdown_timeout, without a process that follows */
	END_CUT, /* closes all connections now */
};

struct server {
	int sv_channel; /* channel to the master; -1 if the master has exited */
	enum end sv_end;
	uint64_t sv_deadline; /* of END_DRAIN or END_STOP, microseconds */
	bool sv_quiet;	      /* true if CHANNEL_QUIET was sent */
	struct conf *sv_conf;
	struct pw_pool *sv_pool;
	struct pw_root **sv_roots;
	struct health *sv_health;    /* NULL without live, ready and agent */
	struct root_probe *sv_probe; /* NULL without ready and agent */
	struct connection_limits *sv_clients;
	struct tcp_memory *sv_tcp_memory;
	struct heap_limit *sv_heap;
	struct client_rates *sv_rates;	  /* NULL without client limits */
	struct verifier *sv_verifier;	  /* NULL without passwords */
	struct handshaker *sv_handshaker; /* NULL without TLS */
	struct ticket_keys *sv_tickets;	  /* NULL without resumption */
	/* sockets; empty once the process accepts connections */
	struct listen_table sv_sockets;
	struct admin *sv_admin; /* NULL if off */
	int sv_withdraw; /* copy of sv_channel for the admin thread, or -1 */
	struct log *sv_log;
	struct log_writer *sv_writer; /* writer of the main thread */
	struct worker **sv_workers;
	unsigned sv_started; /* number of workers with a running thread */
	struct watchdog sv_watchdog;
	struct expiry sv_expiry;
	struct tier_notice sv_tier_notice;
};

/*
 * Starts the server with sv_conf: opens all files and sockets, starts all threads, and sends
 * CHANNEL_READY.  The threads do not accept connections yet.  Moves usable sockets out of `old`.
 * `again` is true if an earlier process has served.  Returns 0.  On an error, logs a message,
 * returns -1, and leaves files open.
 */
int serve_start(struct server *, struct listen_table *old, bool again);

/*
 * Checks for -t and -T that the log can be opened, and runs sandbox_try.  May wait for devices.
 * Returns 0 or -1.  A callback for ck_try.
 */
int serve_try(const struct conf *);

/*
 * Starts or cancels a drain in the responses to health checks.  Requires sv_health.  Thread-safe.
 */
void serve_withdraw(struct server *, bool yes);

/* Starts to accept connections.  Call when the master has sent CHANNEL_SERVE. */
void serve_accept(struct server *);

void serve_command(struct server *, enum command);

/*
 * Passes the sockets to the master, which keeps them for the next server process.  Returns 0 or
 * -errno.
 */
int serve_sockets_hand_over(struct server *);

/* Distributes the sockets of sites over the workers.  Returns 0 or -errno. */
int serve_sockets_share(struct server *);

/* Logs the addresses at which the process serves. */
void serve_sockets_announce(const struct server *);

#endif
