/*
 * worker: a thread with its own event base, listening sockets and connections.  Only this thread
 * uses the worker, except for the functions that main's thread calls.
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
	bool ls_proxied; /* true if connections begin with a PROXY header */
	bool ls_secure;	 /* true if a TLS handshake follows */
	struct event ls_event;
	struct worker *ls_worker;
	SLIST_ENTRY(listening) ls_next;
};

/* bytes of wk_frames: 32 frames of HTTP/2 */
#define WORKER_FRAMES ((long)(32 * 16384 + 1024))

struct worker {
	struct service wk_service; /* shared by the responses */
	struct event_base *wk_base;

	SLIST_HEAD(, listening) wk_listening;
	bool wk_sees_end; /* true if EV_CLOSED reports a client's close */
	bool wk_paused;	  /* true if not accepting: no descriptor, or no slot */
	struct asleep wk_asleep; /* messages about sleep in iterations */
	struct spin wk_spin;
	/* number of socket reads, and of callbacks for completions */
	uint64_t wk_moves;

	struct event wk_done;	 /* fires if svc_loop has completions */
	struct event wk_tick;	 /* fires every 250 ms */
	struct event wk_control; /* fires if wk_orders has a command */
	struct event wk_retry;	 /* fires at wk_retry_at: see evict.h */
	uint64_t wk_retry_at;	 /* time when wk_retry fires, microseconds */
	struct seed wk_seed;
	struct sched wk_sched; /* run queue and timers */
	bool wk_late;	       /* last result of worker_late */
	bool wk_draining;
	uint64_t wk_shed_at;	 /* next time of worker_shed in a drain, us */
	bool wk_abandoned;	 /* true if COMMAND_ABANDON was received */
	uint64_t wk_drain_until; /* end of the drain's grace period, us */
	uint64_t wk_awake;	 /* end of polling (busy_poll), us */
	/* for worker 0: refused requests logged, and how often they are */
	uint64_t wk_refused;
	struct message_rate wk_refused_rate;
	struct loop_profile wk_laps;

	/*
	 * WORKER_FRAMES bytes for the frames of an HTTP/2 connection in its time slice; apart, since
	 * unused memory of malloc(3) needs no pages
	 */
	char *wk_frames;
	struct tcp_memory *wk_tcp_memory; /* owned by main */
	uint64_t wk_looked;		  /* sta_sent at the last worker_look */
	uint64_t wk_look; /* bytes sent between two calls of worker_look */
	struct unacked wk_unacked;
	struct release wk_release;
	struct heap_limit *wk_heap; /* owned by main */
	uint64_t wk_heap_look;	    /* time of the next check, us */
	bool wk_short;		    /* last result of heap_limit_is_short */
	bool wk_high;		    /* last result of heap_limit_is_high */
	struct stalled wk_stalled;
	struct header_cache *wk_header_cache; /* NULL if off */
	struct tls_context *wk_tls;	      /* NULL without TLS */
	/* owned by main; NULL without TLS */
	struct handshaker *wk_handshaker;

	/* shared by main's thread and the worker */
	struct pw_pool *wk_pool;
	worker_accept_f *wk_accept;
	struct connection_limits *wk_clients;
	unsigned wk_id;
	struct thread wk_thread;
	struct commands wk_orders;
	atomic_bool wk_is_quiet;      /* true if the worker accepts no more */
	atomic_uint_fast64_t wk_beat; /* counter of ticks with progress */
	atomic_bool wk_spins;	      /* true if the loop makes no progress */
	uint64_t wk_beat_seen;	      /* last wk_beat that main read */
	uint64_t wk_beat_at; /* time when main saw wk_beat change, us */
};

/* ------------------------------------------------- called by main's thread */

/* State shared by all workers; main owns it. */
struct shared {
	/* Takes ownership of an accepted and admitted connection. */
	worker_accept_f *sh_accept;
	const struct conf *sh_conf;
	struct pw_pool *sh_pool;
	struct pw_root *const *sh_roots; /* the directories of conf_roots */
	struct connection_limits *sh_clients;
	struct tcp_memory *sh_tcp_memory;
	struct heap_limit *sh_heap;
	struct client_rates *sh_rates;	  /* NULL without client rates */
	struct verifier *sh_verifier;	  /* NULL without passwords */
	struct handshaker *sh_handshaker; /* NULL without TLS */
	struct ticket_keys *sh_tickets;	  /* NULL without resumption */
	const struct health *sh_health;	  /* NULL if off */
	struct log *sh_log;
};

/* Creates a worker without listening sockets: see listener_take.  Returns 0 or -errno. */
int worker_create(const struct shared *, unsigned id, struct worker **);
int worker_start(struct worker *);

/*
 * Returns the size of each worker's response cache, bytes.  Reads the memory limits from files if
 * hot_set is not configured.
 */
size_t worker_hot_set(const struct conf *);

/* Sends a command to the worker.  Any thread may call it. */
void worker_command(struct worker *, enum command);

/* Waits for the thread to end, for at most timeout_us.  Returns true if it has ended. */
bool worker_join(struct worker *, uint64_t timeout_us);

/* Detaches the thread.  Call after COMMAND_ABANDON, instead of worker_destroy. */
void worker_abandon(struct worker *);
void worker_destroy(struct worker **);

/* ------------------------------------------------------ called by connections */

/*
 * If the worker has no listening socket left, notes that it accepts no more connections.  May end
 * the loop (worker_maybe_end).  Call when a listening socket was closed.
 */
void worker_quiet(struct worker *);

/* Ends the loop if the worker drains and has no socket, connection or pending completion left. */
void worker_maybe_end(struct worker *);

/*
 * worker_shed frees, in a worker that drains, after the grace period, what only further requests need: open
 * files, cached responses and listings.  Then, every 15 s, it ends idle disk threads and returns free memory to
 * the kernel.  Call at each tick.  worker_shed_all does so at once, at the end of a thread while other
 * workers have connections: these may continue for days.
 */
void worker_shed(struct worker *);
void worker_shed_all(struct worker *);

/*
 * worker_watch creates the worker's own events, and returns 0 or -ENOMEM.  worker_main runs in its
 * thread.  Both are for worker_start.c.
 */
int worker_watch(struct worker *);
void worker_main(void *);

/* Begins a phase of the iteration's profile.  Call at the start of each callback of the loop. */
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

/*
 * Counts the bytes written to this socket, and checks whether sockets hold too much.  Call when
 * bytes may have been written.
 */
void worker_look(struct worker *, struct unacked_item *, int sock);

/* Returns true if worker_look is due: always if memory is limited, else after wk_look bytes. */
static inline bool
worker_may_look(const struct worker *wk)
{
	return counter_get(&wk->wk_service.svc_stats.sta_sent) -
		   wk->wk_looked >=
	       wk->wk_look;
}

/* Returns the current limit of the unsent bytes in a socket. */
static inline enum tcp_level
worker_level(const struct worker *wk)
{
	enum tcp_level level = wk->wk_unacked.un_level;

	return level == TCP_ALL && tcp_memory_is_short(wk->wk_tcp_memory)
		   ? TCP_LESS
		   : level;
}

/*
 * Returns true if the event-loop iteration has been so long that new work should wait for the next
 * one.
 */
bool worker_late(struct worker *);

/*
 * Returns true if nothing waits in the run queue and the iteration has not been long, so that the
 * loop may compute a part of a millisecond.
 */
bool worker_has_time(const struct worker *);

/*
 * worker_added adds a connection to the schedule and counts it in its phase.  worker_removed
 * reverses that, and ends the loop after the last connection of a worker that drains.
 */
void worker_added(struct worker *, struct sched_item *);
void worker_removed(struct worker *, struct sched_item *);

#endif
