/*
 * worker: one thread, one event base, its own listeners and connections.
 * Everything here belongs to the worker's thread, but for what worker_*() of
 * main says.
 */
#ifndef SERVER_WORKER_WORKER_H
#define SERVER_WORKER_WORKER_H

#include <event2/event_struct.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/util/clock.h"
#include "lib/util/hash.h"
#include "server/conf/conf.h"
#include "server/worker/connection_limits.h"
#include "server/worker/heap_limit.h"
#include "server/worker/tcp_memory.h"
#include "server/worker/release.h"
#include "server/worker/unacked.h"
#include "server/content/service.h"
#include "server/content/header_cache.h"
#include "server/log/message_rate.h"
#include "server/util/command.h"
#include "server/util/thread.h"
#include "server/worker/asleep.h"
#include "server/worker/spin.h"
#include "server/worker/loop_profile.h"
#include "server/worker/sched.h"
#include "server/worker/stalled.h"
#include "server/util/stats.h"

struct client;
struct sockaddr;

struct handshaker;
struct listening;
struct ticket_keys;
struct tls_context;
struct worker;
typedef void worker_accept_f(
    struct listening *, int fd, const struct sockaddr *, struct client *);

struct listening {
	int ls_fd;	 /* owned */
	bool ls_proxied; /* connections begin with a PROXY header */
	bool ls_secure;	 /* and then with a handshake of TLS */
	struct event ls_event;
	struct worker *ls_worker;
	SLIST_ENTRY(listening) ls_next;
};

struct worker {
	struct service wk_service; /* shared by its answers */
	struct event_base *wk_base;

	SLIST_HEAD(, listening) wk_listening;
	bool wk_sees_end; /* of a client's sending by EV_CLOSED: epoll only */
	bool wk_paused;	  /* not accepting: no descriptor, or no place */
	struct message_rate wk_told_pause; /* messages about that ... */
	struct message_rate
	    wk_told_reclaim; /* ... and about what was closed instead */
	struct message_rate wk_told_full;    /* about max_connections ... */
	struct message_rate wk_told_address; /* ... and those of an address */
	struct message_rate wk_told_proxy;   /* about missing PROXY headers */
	struct message_rate wk_told_frames;  /* about floods of frames */
	struct message_rate wk_told_stall;   /* about slow iterations */
	struct message_rate
	    wk_told_evict;	 /* about clients that sent no request */
	struct asleep wk_asleep; /* about sleep during an iteration */
	struct spin wk_spin;
	uint64_t wk_moves; /* reads of sockets and waits that have ended */

	struct event wk_done;	 /* wk_service.svc_loop has completions */
	struct event wk_tick;	 /* a few times a second */
	struct event wk_control; /* main has sent a command */
	struct event wk_retry; /* a connection may be closed now: see evict.h */
	uint64_t wk_retry_at;  /* microseconds */
	struct seed wk_seed;
	struct sched wk_sched; /* of its connections */
	bool wk_late;	       /* see worker_late */
	bool wk_draining;
	bool wk_abandoned;	 /* COMMAND_ABANDON has come */
	uint64_t wk_drain_until; /* then at most one answer each */
	uint64_t wk_awake;	 /* it does not sleep before; microseconds */
	uint64_t wk_refused;	 /* as last reported, worker 0 only */
	struct loop_profile wk_laps;

	struct tcp_memory *wk_tcp_memory; /* main's */
	uint64_t wk_looked;		  /* sta_sent, when it was looked at */
	uint64_t wk_look; /* bytes given to sockets between two looks */
	struct unacked wk_unacked;
	struct release wk_release;
	struct heap_limit *wk_heap; /* main's */
	uint64_t wk_heap_look;	    /* the next one; microseconds */
	bool wk_short;		    /* memory is: new requests are refused */
	bool wk_high; /* it is soon: none of connections that have many */
	struct message_rate wk_told_short;
	struct stalled wk_stalled;
	struct message_rate
	    wk_told_stalled; /* about clients that take nothing */
	struct message_rate wk_told_unacked;  /* about what they hold */
	struct header_cache *wk_header_cache; /* NULL: off */
	struct tls_context *wk_tls;	      /* NULL: no TLS */
	struct handshaker *wk_handshaker;     /* main's; NULL: the same */

	/* between main and the worker */
	struct pw_pool *wk_pool;
	worker_accept_f *wk_accept;
	struct connection_limits *wk_clients;
	unsigned wk_id;
	struct thread wk_thread;
	struct commands wk_orders;
	atomic_bool wk_is_quiet; /* accepts nothing more; main reads */
	atomic_uint_fast64_t
	    wk_beat; /* the loop turns, and gets somewhere; main reads */
	atomic_bool wk_spins;  /* it only turns; the same */
	uint64_t wk_beat_seen; /* main's own, as is the next */
	uint64_t wk_beat_at;   /* microseconds: when it was another */
};

/* ------------------------------------------------- called by main's thread */

/* Shared by all of them; main's. */
struct shared {
	/* Takes over a connection that was accepted and entered. */
	worker_accept_f *sh_accept;
	const struct conf *sh_conf;
	struct pw_pool *sh_pool;
	struct pw_root *const *sh_roots; /* of conf_roots */
	struct connection_limits *sh_clients;
	struct tcp_memory *sh_tcp_memory;
	struct heap_limit *sh_heap;
	struct client_rates *sh_rates;	  /* NULL: none */
	struct verifier *sh_verifier;	  /* NULL: no passwords */
	struct handshaker *sh_handshaker; /* NULL: no TLS */
	struct ticket_keys *sh_tickets;	  /* NULL: no resumption */
	const struct health *sh_health;	  /* NULL: off */
	struct log *sh_log;
};

/* Prepares a worker, without listening sockets: see listener_take. */
int worker_create(const struct shared *, unsigned id, struct worker **);
int worker_start(struct worker *);

/* Returns the bytes of each worker's response cache.  Reads files. */
size_t worker_hot_set(const struct conf *);

/* Any thread. */
void worker_command(struct worker *, enum command);

/* True once the thread has ended, waiting for at most timeout_us. */
bool worker_join(struct worker *, uint64_t timeout_us);

/* Instead of destroying it, after COMMAND_ABANDON. */
void worker_abandon(struct worker *);
void worker_destroy(struct worker **);

/* ------------------------------------------------------ called by connections */

/* A listening socket was closed: has it been the last one? */
void worker_quiet(struct worker *);

/* Ends the loop, if it drains and this was the last connection, or wait, that it had. */
void worker_maybe_end(struct worker *);

/* Between start.c and worker.c: its own events; its thread. */
int worker_watch(struct worker *);
void worker_main(void *);

/* At the begin of each callback of the loop. */
static inline void
worker_lap(struct worker *wk, enum loop_phase kind)
{
	uint64_t now;

	wk->wk_laps.lap_calls[kind]++;
	if (wk->wk_laps.lap_kind == kind)
		return;
	now = clock_now();
	profile_change(&wk->wk_laps, kind, now);
	pw_loop_awake(wk->wk_service.svc_loop, now);
}

/* Call when this socket may have been given bytes: checks whether sockets hold too much. */
void worker_look(struct worker *, struct unacked_item *, int sock);

/* Returns true if worker_look is due: always if memory is limited, else after wk_look bytes. */
static inline bool
worker_may_look(const struct worker *wk)
{
	return counter_get(&wk->wk_service.svc_stats.sta_sent) -
		   wk->wk_looked >=
	       wk->wk_look;
}

/* Returns what a socket may hold now. */
static inline enum tcp_level
worker_level(const struct worker *wk)
{
	enum tcp_level level = wk->wk_unacked.un_level;

	return level == TCP_ALL && tcp_memory_is_short(wk->wk_tcp_memory)
		   ? TCP_LESS
		   : level;
}

/*
 * Whether the event-loop iteration has been so long that new work should wait for the
 * next one.
 */
bool worker_late(struct worker *);

/* Counts it, in its phase; what goes ends the loop if it was the last of one that drains. */
void worker_added(struct worker *, struct sched_item *);
void worker_removed(struct worker *, struct sched_item *);

#endif
