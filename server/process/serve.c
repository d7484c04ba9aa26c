/* serve: handles the messages of the master, and shuts down.  The main thread serves no clients. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/disk/tier_fetch.h"
#include "lib/util/clock.h"
#include "server/content/client_rates.h"
#include "server/content/verifier.h"
#include "server/tls/handshaker.h"
#include "server/content/health.h"
#include "server/process/channel.h"
#include "server/process/root_probe.h"
#include "server/process/roots.h"
#include "server/process/sandbox.h"
#include "server/process/serve.h"
#include "server/process/serve_priv.h"
#include "server/worker/memory_plan.h"

#define SECOND_US ((uint64_t)1000000)
#define HUNG \
	2 /* time to wait for a hanging device during a shutdown, seconds */
#define HUNG_US (HUNG * SECOND_US)
#define LOOK_MS 20  /* interval for polling workers, milliseconds */
#define LAST_MS 500 /* poll interval during a drain, milliseconds */

/* --------------------------------------------------------- the master's messages */

static void
serve_end(struct server *sv, enum end end, unsigned seconds)
{
	sv->sv_end = end;
	sv->sv_deadline = clock_now() + seconds * SECOND_US;
}

/* Handles CHANNEL_STOP.  The second CHANNEL_STOP closes all connections at once. */
static void
serve_stop(struct server *sv)
{
	if (sv->sv_end >= END_STOP)
		sv->sv_end = END_CUT;
	else
		serve_end(sv, END_STOP, sv->sv_conf->conf_shutdown_timeout);
}

static void
serve_master_lost(struct server *sv)
{
	close(sv->sv_channel);
	sv->sv_channel = -1;
	if (sv->sv_end < END_STOP)
		serve_stop(sv);
}

static void
serve_add_ticket_key(struct server *sv, const char *text)
{
	struct ticket_key key;

	if (sv->sv_tickets != NULL && ticket_key_read(text, &key))
		ticket_keys_add(sv->sv_tickets, &key);
	explicit_bzero(&key, sizeof(key));
}

/*
 * Applies a drain or undrain.  If this process has received the request itself, its admin thread
 * has already applied it.
 */
static void
serve_obey_withdraw(struct server *sv, bool yes)
{
	if (sv->sv_health == NULL)
		return;
	serve_withdraw(sv, yes);
	log_notice(sv->sv_writer,
	    yes ? "draining: health checks tell balancers to send no new "
		  "clients; run pagewise undrain to cancel"
		: "drain cancelled: balancers may send new clients again");
}

static void
serve_obey(struct server *sv, const struct channel_message *cm)
{
	switch (cm->cm_kind) {
	case CHANNEL_SERVE:
		serve_accept(sv);
		break;
	case CHANNEL_DRAIN:
		if (sv->sv_end == END_NOT)
			serve_end(
			    sv, END_DRAIN, sv->sv_conf->conf_drain_timeout);
		break;
	case CHANNEL_STOP:
		serve_stop(sv);
		break;
	case CHANNEL_SAY:
		log_notice(sv->sv_writer, "%s", cm->cm_text);
		break;
	case CHANNEL_WITHDRAW:
		serve_obey_withdraw(sv, cm->cm_text[0] == '1');
		break;
	case CHANNEL_TICKET_KEY:
		serve_add_ticket_key(sv, cm->cm_text);
		break;
	default:
		break;
	}
}

/*
 * Waits at most `timeout` milliseconds (-1: without limit) for a message of the master, and handles
 * all messages that have arrived.
 */
static void
serve_listen_to_master(struct server *sv, int timeout)
{
	struct pollfd pfd = {.fd = sv->sv_channel, .events = POLLIN};
	struct channel_message cm;
	int result;

	/* If the master has exited, sv_channel is -1, and poll(2) only waits. */
	if (poll(&pfd, 1, timeout) < 1)
		return;
	while (sv->sv_channel != -1) {
		result = channel_receive(sv->sv_channel, &cm, NULL);
		if (result == 0)
			return;
		if (result == 1)
			serve_obey(sv, &cm);
		else
			serve_master_lost(sv);
		explicit_bzero(&cm, sizeof(cm));
	}
}

/* Returns the smaller timeout, where -1 is none. */
static int
serve_sooner(int one, int other)
{
	return one == -1 || (other != -1 && other < one) ? other : one;
}

/*
 * Returns the milliseconds until the next check of the watchdog, the certificates or the tier, or -1
 * if no check is needed.
 */
static int
serve_until_next(const struct server *sv)
{
	return serve_sooner(watchdog_wait(&sv->sv_watchdog),
	    serve_sooner(expiry_wait(&sv->sv_expiry, sv->sv_conf),
		tier_notice_wait(&sv->sv_tier_notice)));
}

static void
serve_loop(struct server *sv)
{
	while (sv->sv_end == END_NOT) {
		expiry_look(&sv->sv_expiry, sv->sv_conf, sv->sv_writer);
		tier_notice_look(&sv->sv_tier_notice, sv->sv_conf, sv->sv_pool,
		    sv->sv_writer);
		serve_listen_to_master(sv, serve_until_next(sv));
		watchdog_look(&sv->sv_watchdog, sv->sv_channel, sv->sv_workers,
		    sv->sv_started, sv->sv_writer);
	}
}

/* ------------------------------------------------------------------ shutdown */

static void
serve_tell_quiet(struct server *sv)
{
	unsigned i;

	if (sv->sv_quiet || sv->sv_channel == -1)
		return;
	for (i = 0; i < sv->sv_started; i++)
		if (!atomic_load(&sv->sv_workers[i]->wk_is_quiet))
			return;
	sv->sv_quiet = true;
	channel_send(sv->sv_channel, CHANNEL_QUIET, "", -1, true);
}

/* Returns true if all workers have ended.  Frees the log's memory of those that have, and of this thread. */
static bool
serve_all_ended(struct server *sv)
{
	unsigned i, ended = 0;

	for (i = 0; i < sv->sv_started; i++)
		if (worker_join(sv->sv_workers[i], 0)) {
			ended++;
			(void)log_release(log_writer(sv->sv_log, i));
		}
	(void)log_release(sv->sv_writer);
	return ended == sv->sv_started;
}

/* Waits for all workers until the process must stop.  Returns true if all have exited. */
static bool
serve_wait_workers(struct server *sv)
{
	while (!serve_all_ended(sv)) {
		serve_tell_quiet(sv);
		/*
		 * A drain may last for days because of a long download, so the interval of a drain
		 * is longer.
		 */
		serve_listen_to_master(
		    sv, sv->sv_quiet && sv->sv_end == END_DRAIN ? LAST_MS
								: LOOK_MS);
		if (sv->sv_end == END_CUT || clock_now() >= sv->sv_deadline)
			return false;
	}
	return true;
}

static bool
serve_wait_hung(struct server *sv)
{
	serve_end(sv, END_STOP, HUNG);
	return serve_wait_workers(sv);
}

static const char *
serve_why(enum end end)
{
	switch (end) {
	case END_DRAIN:
		return "drain_timeout has passed since the reload";
	case END_STOP:
		return "shutdown_timeout has passed";
	default:
		return "the server must end at once";
	}
}

/*
 * Shuts down in three steps.  First accepts no more connections.  After the timeout or a second
 * CHANNEL_STOP, closes all connections.  Then abandons workers that still wait for a device.
 * Returns false if a worker was abandoned; the process must then exit without freeing its memory.
 */
static bool
serve_shut_down(struct server *sv)
{
	unsigned i;

	tier_fetch_leave(sv->sv_pool);
	/* Another process has taken over the admin sockets. */
	if (sv->sv_end == END_DRAIN)
		admin_destroy(&sv->sv_admin);
	else if (sv->sv_health != NULL)
		atomic_store(&sv->sv_health->hl_ending, true);
	serve_command(sv, COMMAND_DRAIN);
	if (serve_wait_workers(sv))
		return true;
	log_notice(sv->sv_writer, "%s: closing the remaining connections",
	    serve_why(sv->sv_end));
	serve_command(sv, COMMAND_STOP);
	if (serve_wait_hung(sv))
		return true;
	log_warn(sv->sv_writer,
	    "a disk does not respond: exiting without waiting "
	    "for it; check dmesg for disk errors");
	serve_command(sv, COMMAND_ABANDON);
	serve_wait_hung(sv);
	for (i = 0; i < sv->sv_started; i++)
		worker_abandon(sv->sv_workers[i]);
	return false;
}

/* Returns false if a thread still uses the configuration, which is then not freed. */
static bool
serve_destroy(struct server *sv)
{
	bool idle = root_probe_end(&sv->sv_probe, HUNG_US), verified;
	unsigned i;

	admin_destroy(&sv->sv_admin);
	for (i = 0; sv->sv_workers != NULL && i < sv->sv_conf->conf_workers;
	     i++)
		worker_destroy(&sv->sv_workers[i]);
	verified = verifier_destroy(&sv->sv_verifier);
	handshaker_destroy(&sv->sv_handshaker);
	ticket_keys_destroy(&sv->sv_tickets);
	client_rates_destroy(&sv->sv_rates);
	pw_pool_destroy(&sv->sv_pool, HUNG_US);
	log_destroy(&sv->sv_log);
	listen_close(&sv->sv_sockets);
	if (idle) {
		roots_close(&sv->sv_roots);
		health_destroy(&sv->sv_health);
	}
	limits_destroy(&sv->sv_clients);
	tcp_memory_destroy(&sv->sv_tcp_memory);
	heap_limit_destroy(&sv->sv_heap);
	free(sv->sv_workers);
	if (verified)
		conf_destroy(&sv->sv_conf);
	if (sv->sv_withdraw != -1)
		close(sv->sv_withdraw);
	if (sv->sv_channel != -1)
		close(sv->sv_channel);
	return verified;
}

/* Prints for -t whether a server uses the tier, and the memory that the configuration needs. */
static void
serve_print(const struct conf *conf)
{
	tier_notice_print(conf);
	memory_plan_print(conf);
}

int
serve(struct serve_args *sa)
{
	static const struct conf_checks checks = {
	    .ck_try = serve_try, .ck_print = serve_print};
	struct server sv = {.sv_channel = sa->sa_channel, .sv_withdraw = -1};

	switch (conf_load(sa->sa_argc, sa->sa_argv, &checks, &sv.sv_conf)) {
	case CONF_RUN:
		break;
	case CONF_EXIT_OK:
		return 0;
	case CONF_EXIT_ERROR:
		return 1;
	case CONF_EXIT_USAGE:
		return 2;
	}
	if (sa->sa_replaces && !conf_certificates_are_good(sv.sv_conf)) {
		conf_destroy(&sv.sv_conf);
		return 1;
	}
	log_set_level(sv.sv_conf->conf_log_level);
	watchdog_init(&sv.sv_watchdog, sa->sa_watchdog,
	    sv.sv_conf->conf_stall_log * UINT64_C(1000));
	/*
	 * After a failed start, the exit of the process frees everything.  Only the log must be
	 * closed, unless a worker that already runs still uses the log.
	 */
	if (serve_start(&sv, &sa->sa_sockets, sa->sa_again) == -1) {
		if (sv.sv_started == 0)
			log_destroy(&sv.sv_log);
		_exit(1);
	}
	tier_notice_init(&sv.sv_tier_notice, sv.sv_conf, sa->sa_again);
	serve_loop(&sv);
	if (!serve_shut_down(&sv)) {
		admin_destroy(&sv.sv_admin);
		log_destroy(&sv.sv_log);
		_exit(1);
	}
	if (!serve_destroy(&sv))
		_exit(0);
	return 0;
}
