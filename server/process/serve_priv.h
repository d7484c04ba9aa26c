/*
 * serve_priv: between the files of the server process.  No other file includes this.
 *
 *   serve.c        the master's orders, the end
 *   start.c  everything is opened, then the threads are started
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

/* How it is to end, the more urgent the higher. */
enum end {
	END_NOT,
	END_DRAIN, /* when the last connection does */
	END_STOP,  /* the same, but by sv_deadline */
	END_CUT,
};

struct server {
	int sv_channel; /* -1: the master is gone */
	enum end sv_end;
	uint64_t sv_deadline; /* microseconds, with END_STOP */
	bool sv_quiet;	      /* the master was notified */
	struct conf *sv_conf;
	struct pw_pool *sv_pool;
	struct pw_root **sv_roots;
	struct health *sv_health; /* NULL: off, as is the next */
	struct root_probe *sv_probe;
	struct connection_limits *sv_clients;
	struct tcp_memory *sv_tcp_memory;
	struct heap_limit *sv_heap;
	struct client_rates *sv_rates;	  /* NULL: none */
	struct verifier *sv_verifier;	  /* NULL: no passwords */
	struct handshaker *sv_handshaker; /* NULL: no TLS */
	struct ticket_keys *sv_tickets;	  /* NULL: no resumption */
	struct listen_table
	    sv_sockets;		/* until it accepts; then others have copies */
	struct admin *sv_admin; /* NULL: off */
	int sv_withdraw;	/* the admin thread's copy of sv_channel; -1 */
	struct log *sv_log;
	struct log_writer *sv_writer; /* main's own */
	struct worker **sv_workers;
	unsigned sv_started;
	struct watchdog sv_watchdog;
	struct expiry sv_expiry;
};

/*
 * With the configuration in sv_conf: from the roots to CHANNEL_READY; all threads run
 * and accept no connection.  Usable sockets are taken out of old.  again: there has been
 * an earlier one.  0, or -1 after a message: open files stay open.
 */
int serve_start(struct server *, struct listen_table *old, bool again);

/*
 * With -t and -T: whether the log can be opened, then sandbox_try.  May wait for disks.  A
 * conf_try_f.
 */
int serve_try(const struct conf *);

/* What balancers are told from now on; with sv_health.  Any thread. */
void serve_withdraw(struct server *, bool yes);

/* The master has said CHANNEL_SERVE. */
void serve_accept(struct server *);

/* To all that were started. */
void serve_command(struct server *, enum command);

#endif
