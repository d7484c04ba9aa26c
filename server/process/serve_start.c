/*
 * serve_start: starts a server process.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/disk/admission.h"
#include "lib/disk/tier_fetch.h"
#include "server/conn/conn.h"
#include "server/content/client_rates.h"
#include "server/tls/handshaker.h"
#include "server/tls/kernel.h"
#include "server/tls/ticket_keys.h"
#include "server/content/verifier.h"
#include "server/admin/agent.h"
#include "server/admin/callers.h"
#include "server/process/bind.h"
#include "server/process/channel.h"
#include "server/process/cure.h"
#include "server/content/health.h"
#include "server/log/open.h"
#include "server/process/root_probe.h"
#include "server/process/roots.h"
#include "server/process/sandbox.h"
#include "server/process/serve_priv.h"
#include "server/worker/event_memory.h"

#define RESERVE 8 /* descriptors that connections cannot use */
#define PIPE	2 /* descriptors of the pipe of a worker's loop */

/* Locks the program in memory.  Ignores a failure, because the lock only prevents stalls. */
static void
serve_start_prepare(const struct conf *conf)
{
	int error = pw_process_prepare();

	if (error == 0 && conf_has_secrets(conf))
		error = os_lock_crypto();
	if (error != 0)
		log_notice(NULL,
		    "cannot lock the program in memory: %s: a page fault may "
		    "stall all clients; raise ulimit -l to 16384 "
		    "(LimitMEMLOCK)",
		    strerror(-error));
}

static const char *
serve_start_log_cause(int error)
{
	switch (error) {
	case -ENOENT:
		return "its directory does not exist; create it";
	case -ELOOP:
		return "the symbolic link belongs to another user: remove it, "
		       "or create it as root";
	case -ENXIO:
		return "it is a FIFO without a reader: start the reader first";
	default:
		return strerror(-error);
	}
}

static int
serve_start_no_log(const struct conf *conf, int error)
{
	log_error(NULL, "%scannot open the access log %s: %s%s",
	    conf->conf_access_log_place, conf->conf_access_log,
	    serve_start_log_cause(error), cure_of(error));
	return -1;
}

static const char *
serve_start_cure(int error)
{
	switch (error) {
	case -EPERM:
	case -ENOSYS:
		return "; a required system call is not available: allow it in "
		       "the container's seccomp profile";
	default:
		return cure_of(error);
	}
}

/* Returns the cure for an error of reading what Linux has in /proc. */
static const char *
serve_start_cure_proc(int error)
{
	return error == -ENOENT ? "; mount /proc, all of it" : cure_of(error);
}

static int
serve_start_failed(const char *what, int error)
{
	log_error(NULL, "cannot %s: %s%s", what, strerror(-error),
	    serve_start_cure(error));
	return -1;
}

static int
serve_start_open_log(struct server *sv)
{
	struct conf *conf = sv->sv_conf;
	bool opened;
	int error;

	error = log_create(conf->conf_access_log, conf->conf_log_format,
	    conf->conf_workers + 1, &sv->sv_log, &opened);
	if (error != 0 && conf->conf_access_log != NULL && !opened)
		return serve_start_no_log(conf, error);
	if (error != 0)
		return serve_start_failed(
		    "create the shared memory for log messages (memfd_create)",
		    error);
	log_set_fields(sv->sv_log, &conf->conf_log_fields);
	sv->sv_writer = log_writer(sv->sv_log, conf->conf_workers);
	return 0;
}

/*
 * Creates the monitors of memory.  Continues if the kernel's TCP statistics cannot be read.  Fails
 * if memory or descriptors are short.
 */
static int
serve_start_watch_pressure(struct server *sv)
{
	int error =
	    tcp_memory_create(sv->sv_conf->conf_tcp_memory, &sv->sv_tcp_memory);

	if (error == -ENOMEM || error == -EMFILE || error == -ENFILE)
		return serve_start_failed("monitor the TCP memory", error);
	if (error != 0 && error != -ENOSYS)
		log_notice(NULL,
		    "tcp_memory: the server runs without this limit: cannot "
		    "read how much memory TCP uses: %s%s",
		    strerror(-error), serve_start_cure_proc(error));
	error = heap_limit_create(
	    worker_hot_set(sv->sv_conf) * sv->sv_conf->conf_workers,
	    &sv->sv_heap);
	return error == 0 ? 0 : serve_start_failed("monitor memory", error);
}

static int
serve_start_create_health(struct server *sv, bool again)
{
	const struct conf *conf = sv->sv_conf;

	if (conf->conf_live == NULL && conf->conf_ready == NULL &&
	    conf->conf_agent.la_text == NULL)
		return 0;
	sv->sv_health = health_create(conf, clock_now());
	if (sv->sv_health == NULL)
		return -ENOMEM;
	atomic_store(&sv->sv_health->hl_restored, !again);
	return 0;
}

static int
serve_start_create_tls(struct server *sv)
{
	int error = tls_prepare();

	if (error == -ENOTSUP)
		log_error(NULL,
		    "cannot start TLS: openssl.cnf (OPENSSL_CONF) prefers "
		    "another provider's TLS13-KDF; remove its "
		    "default_properties");
	if (sv->sv_conf->conf_ktls == TLS_KTLS_ON && !tls_kernel_can())
		log_warn(NULL,
		    "ktls: this kernel does not support TLS; the server "
		    "encrypts in user space; run modprobe tls before you start "
		    "it");
	if (error == 0 && sv->sv_conf->conf_session_tickets) {
		sv->sv_tickets = ticket_keys_create();
		error = sv->sv_tickets == NULL ? -ENOMEM : 0;
	}
	return error == 0 ? handshaker_create(&sv->sv_handshaker) : error;
}

static int
serve_start_create_shared(struct server *sv, bool again)
{
	struct conf *conf = sv->sv_conf;

	sv->sv_workers = calloc(conf->conf_workers, sizeof(struct worker *));
	if (sv->sv_workers == NULL ||
	    limits_create(conf->conf_max_connections,
		conf->conf_max_per_address, conf->conf_workers,
		&sv->sv_clients) != 0)
		return serve_start_failed("create the workers", -ENOMEM);
	if (conf->conf_htpasswds != NULL &&
	    verifier_create(&sv->sv_verifier) != 0)
		return serve_start_failed(
		    "allocate memory to verify passwords", -ENOMEM);
	if (conf->conf_rates)
		sv->sv_rates = client_rates_create();
	if (conf->conf_rates && sv->sv_rates == NULL)
		return serve_start_failed(
		    "allocate the table of client_rate limits", -ENOMEM);
	if (serve_start_create_health(sv, again) != 0)
		return serve_start_failed("create the workers", -ENOMEM);
	if (conf_has_tls(conf) && serve_start_create_tls(sv) != 0)
		return serve_start_failed("initialize TLS", -ENOMEM);
	return serve_start_watch_pressure(sv);
}

/* Logs a message of libevent, which ends the process itself after an error. */
static void
serve_start_tell_libevent(int severity, const char *text)
{
	int error = errno;

	if (severity >= EVENT_LOG_WARN)
		log_error(NULL, "libevent: %s%s", text, cure_of(-error));
}

static int
serve_start_create_workers(struct server *sv, bool again)
{
	const bool asked =
	    sv->sv_conf->conf_live != NULL || sv->sv_conf->conf_ready != NULL;
	struct shared shared;
	unsigned i;
	int error;

	if (serve_start_create_shared(sv, again) == -1)
		return -1;
	shared = (struct shared){
	    .sh_accept = conn_create,
	    .sh_conf = sv->sv_conf,
	    .sh_pool = sv->sv_pool,
	    .sh_roots = sv->sv_roots,
	    .sh_health = asked ? sv->sv_health : NULL,
	    .sh_clients = sv->sv_clients,
	    .sh_tcp_memory = sv->sv_tcp_memory,
	    .sh_heap = sv->sv_heap,
	    .sh_verifier = sv->sv_verifier,
	    .sh_rates = sv->sv_rates,
	    .sh_handshaker = sv->sv_handshaker,
	    .sh_tickets = sv->sv_tickets,
	    .sh_log = sv->sv_log,
	};
	for (i = 0; i < sv->sv_conf->conf_workers; i++) {
		error = worker_create(&shared, i, &sv->sv_workers[i]);
		if (error != 0)
			return serve_start_failed("create a worker", error);
	}
	return 0;
}

/*
 * Limits the rights of the sockets, the log and the channel, also for a process that stays root.
 * Call after serve_sockets_hand_over, since the master's copies must keep all rights, and before
 * serve_sockets_share, since the workers' copies must have the limits.
 */
static int
serve_start_limit_rights(struct server *sv)
{
	size_t i;
	int error;

	if (!sv->sv_conf->conf_sandbox)
		return 0;
	error = os_limit_rights(sv->sv_channel, OS_RIGHTS_CHANNEL);
	for (i = 0; i < sv->sv_sockets.ss_count && error == 0; i++)
		error = os_limit_rights(
		    sv->sv_sockets.ss_list[i].sk_fd, OS_RIGHTS_LISTENER);
	if (error == 0)
		error = log_limit_rights(sv->sv_log);
	return error == 0 ? 0
			  : serve_start_failed(
				"limit the rights of descriptors", error);
}

/*
 * Closes inherited descriptors in this process.  The master keeps them, because a later process may
 * need them: the log may be /dev/fd/5.
 */
static void
serve_start_forget_inherited(void)
{
	int error = os_close_inherited();

	if (error != 0)
		log_notice(NULL,
		    "cannot close inherited descriptors: cannot list the open "
		    "ones: %s%s",
		    strerror(-error), serve_start_cure_proc(error));
}

/*
 * Returns the number of open descriptors below `numbers`, at most 1024.  At its start, a process
 * has no other open descriptors.
 */
static unsigned
serve_start_descriptors_in_use(unsigned numbers)
{
	struct pollfd fds[1024] = {0};
	unsigned i, n = numbers < 1024 ? numbers : 1024, used = 0;

	for (i = 0; i < n; i++)
		fds[i].fd = (int)i;
	if (poll(fds, n, 0) == -1)
		return 0;
	for (i = 0; i < n; i++)
		used += (fds[i].revents & POLLNVAL) == 0;
	return used;
}

/* Returns the number of connections to the listeners of `admin` and `agent`. */
static unsigned
serve_start_admin_connections(const struct conf *conf)
{
	return (conf->conf_nadmin > 0 ? CALLERS : 0) +
	       (conf->conf_agent.la_text != NULL ? AGENT_LINGERING : 0);
}

/*
 * Reserves RESERVE descriptors for files, PIPE for each worker, those of the pipes that keep windows,
 * and those of the operator's connections.  Otherwise accept4(2) could use all descriptors, and an accepted connection
 * could not open its file.
 */
static void
serve_start_reserve_descriptors(
    struct connection_limits *clients, const struct conf *conf)
{
	unsigned left, max, used,
	    reserve = RESERVE + PIPE * conf->conf_workers +
		      os_folio_pipes(SIZE_MAX) +
		      serve_start_admin_connections(conf);
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return;
	max = rl.rlim_cur < INT_MAX ? (unsigned)rl.rlim_cur : INT_MAX;
	used = serve_start_descriptors_in_use(max);
	left = max > used ? max - used : 1;
	if (reserve > left / 2)
		reserve = left / 2;
	limits_limit(clients, left - reserve);
}

/* Opens the tier.  On failure, the server runs without a tier. */
static void
serve_start_open_tier(struct server *sv)
{
	const struct conf *conf = sv->sv_conf;
	struct tier_conf tc = {.tc_dir = conf->conf_tier,
	    .tc_size = conf->conf_tier_size,
	    .tc_age = conf->conf_tier_age,
	    .tc_writes = conf->conf_tier_writes == TIER_WRITES_AUTO
			     ? conf->conf_tier_size
			     : conf->conf_tier_writes};
	struct tier *ti;
	int error;

	if (conf->conf_tier == NULL)
		return;
	error = tier_open(&tc, &ti);
	if (error == 0)
		error = tier_fetch_create(sv->sv_pool, &ti);
	if (error != 0)
		log_warn(NULL, "cannot open tier %s: %s; serving without it",
		    conf->conf_tier,
		    error == -EEXIST ? "a file there named pagewise-tier* "
				       "belongs to another user, is a link, or "
				       "was not written by pagewise"
				     : strerror(-error));
}

/* Opens everything that needs a path, or a right that the sandbox removes. */
static int
serve_start_open_all(struct server *sv, struct listen_table *old, bool again)
{
	struct pw_pool_conf pool = {.ppc_threads = sv->sv_conf->conf_threads};
	bool bound;
	int error;

	if (roots_open(sv->sv_conf, &sv->sv_roots) == -1)
		return -1;
	bound = bind_sites(sv->sv_conf, old, &sv->sv_sockets) == 0 &&
		bind_admin(sv->sv_conf, old, &sv->sv_sockets) == 0;
	listen_close(old);
	/*
	 * Passes the sockets even after a failure, so that the master removes the files of new
	 * sockets.
	 */
	error = serve_sockets_hand_over(sv);
	if (error != 0)
		return serve_start_failed(
		    "pass the sockets to the master", error);
	if (!bound || serve_start_open_log(sv) == -1)
		return -1;
	serve_start_forget_inherited();
	if (serve_start_limit_rights(sv) == -1)
		return -1;
	/* The limit of locked memory applies to the user of the configuration, but not to root. */
	if (sv->sv_conf->conf_uid != 0)
		(void)os_lift_memlock();
	error = pw_pool_create(&pool, &sv->sv_pool);
	if (error != 0)
		return serve_start_failed("create the prefetch pool", error);
	serve_start_open_tier(sv);
	event_set_log_callback(serve_start_tell_libevent);
	if (serve_start_create_workers(sv, again) == -1)
		return -1;
	error = serve_sockets_share(sv);
	if (error != 0)
		return serve_start_failed("listen", error);
	metrics_prepare();
	serve_start_reserve_descriptors(sv->sv_clients, sv->sv_conf);
	return 0;
}

/*
 * Handles a drain or undrain on the admin thread.  The master forwards the request to the serving
 * process and to later processes.
 */
static int
serve_start_withdraw(void *arg, bool yes)
{
	struct server *sv = arg;
	int error = channel_send(
	    sv->sv_withdraw, CHANNEL_WITHDRAW, yes ? "1" : "0", -1, false);

	if (error == 0)
		serve_withdraw(sv, yes);
	return error;
}

static int
serve_start_listen_admin(struct server *sv)
{
	const struct listen_table *ss = &sv->sv_sockets;
	int error = 0;

	for (size_t i = 0; error == 0 && i < ss->ss_count; i++) {
		int fd = ss->ss_list[i].sk_fd;

		if (ss->ss_list[i].sk_use == SOCKET_ADMIN)
			error = admin_listen(sv->sv_admin, fd);
		else if (ss->ss_list[i].sk_use == SOCKET_AGENT)
			error = admin_listen_agent(sv->sv_admin, fd);
	}
	return error;
}

static int
serve_start_create_admin(struct server *sv)
{
	const struct conf *conf = sv->sv_conf;
	const bool heard =
	    conf->conf_ready != NULL || conf->conf_agent.la_text != NULL;
	const struct admin_conf ac = {
	    .ac_metrics =
		{
		    .mt_conf = conf,
		    .mt_workers = sv->sv_workers,
		    .mt_pool = sv->sv_pool,
		    .mt_log = sv->sv_log,
		    .mt_start = time(NULL),
		},
	    .ac_health = heard ? sv->sv_health : NULL,
	    .ac_withdraw = serve_start_withdraw,
	    .ac_arg = sv,
	};

	sv->sv_withdraw = fcntl(sv->sv_channel, F_DUPFD_CLOEXEC, 0);
	if (sv->sv_withdraw == -1)
		return -errno;
	return admin_create(&ac, &sv->sv_admin);
}

static int
serve_start_admin(struct server *sv)
{
	const struct conf *conf = sv->sv_conf;
	int error;

	if (conf->conf_nadmin == 0 && conf->conf_agent.la_text == NULL)
		return 0;
	error = serve_start_create_admin(sv);
	if (error == 0)
		error = serve_start_listen_admin(sv);
	if (error == 0)
		error = admin_start(sv->sv_admin);
	return error == 0 ? 0
			  : serve_start_failed("start the admin thread", error);
}

static int
serve_start_threads(struct server *sv)
{
	unsigned i;
	int error = log_start(sv->sv_log);

	if (error == 0)
		error = pw_pool_start(sv->sv_pool);
	if (error == 0 && sv->sv_verifier != NULL)
		error = verifier_start(
		    sv->sv_verifier, sv->sv_conf->conf_workers / 4);
	if (error == 0 && sv->sv_handshaker != NULL)
		error = handshaker_start(
		    sv->sv_handshaker, sv->sv_conf->conf_workers);
	if (error == 0 && (sv->sv_conf->conf_ready != NULL ||
			      sv->sv_conf->conf_agent.la_text != NULL))
		error = root_probe_start(sv->sv_roots, sv->sv_pool,
		    sv->sv_conf->conf_threads, sv->sv_health, &sv->sv_probe);
	for (i = 0; i < sv->sv_conf->conf_workers && error == 0; i++) {
		error = worker_start(sv->sv_workers[i]);
		if (error == 0)
			sv->sv_started++;
	}
	if (error != 0)
		return serve_start_failed("start a thread", error);
	return serve_start_admin(sv);
}

void
serve_command(struct server *sv, enum command order)
{
	unsigned i;

	for (i = 0; i < sv->sv_started; i++)
		worker_command(sv->sv_workers[i], order);
}

void
serve_withdraw(struct server *sv, bool yes)
{
	atomic_store(&sv->sv_health->hl_restored, !yes);
	atomic_store(&sv->sv_health->hl_withdrawn, yes);
}

void
serve_accept(struct server *sv)
{
	serve_command(sv, COMMAND_ACCEPT);
	admin_accept(sv->sv_admin);
	serve_sockets_announce(sv);
	listen_close(&sv->sv_sockets);
}

/*
 * Requests ticket keys and sends CHANNEL_READY.  From now on the process detects the exit of the
 * master by the channel.  The master may already have exited.
 */
static void
serve_start_say_ready(struct server *sv)
{
	char text[32];

	(void)os_follow_parent(0);
	/* The keys arrive before CHANNEL_SERVE. */
	if (sv->sv_tickets != NULL)
		channel_send(sv->sv_channel, CHANNEL_TICKETS, "", -1, true);
	snprintf(text, sizeof(text), "%u", sv->sv_conf->conf_shutdown_timeout);
	if (channel_send(sv->sv_channel, CHANNEL_READY, text, -1, true) ==
	    -EPIPE)
		sv->sv_end = END_STOP;
}

int
serve_start(struct server *sv, struct listen_table *old, bool again)
{
	event_memory_use();
	if (serve_start_open_all(sv, old, again) == -1)
		return -1;
	/*
	 * Everything is open, and the process still has only one thread.  malloc(3) has mapped each
	 * large table apart, so that its unused pages need no memory; from now on it does not.
	 */
	serve_start_prepare(sv->sv_conf);
	if (sandbox_enter(sv->sv_conf, sv->sv_roots, again) == -1)
		return -1;
	if (serve_start_threads(sv) == -1)
		return -1;
	serve_start_say_ready(sv);
	return 0;
}

int
serve_try(const struct conf *conf)
{
	const char *path = conf->conf_access_log;
	int error =
	    path == NULL || strcmp(path, "-") == 0 ? 0 : log_file_try(path);

	/* Another user may start the server later, so missing rights are no error here. */
	if (error == -EACCES && geteuid() != 0)
		error = 0;
	return error != 0 ? serve_start_no_log(conf, error) : sandbox_try(conf);
}
