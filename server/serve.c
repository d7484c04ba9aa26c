/*
 * serve: start, orders, end.  The main thread serves nobody.
 */
#include <errno.h>
#include <http_parser.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "bind.h"
#include "channel.h"
#include "clients.h"
#include "conf.h"
#include "listener.h"
#include "log.h"
#include "roots.h"
#include "serve.h"
#include "watchdog.h"
#include "worker.h"

#define SECOND_US ((uint64_t)1000000)
#define HUNG_US	  (2 * SECOND_US) /* a disk has this long at the very end */
#define LOOK_MS	  20		  /* at workers that end */

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
	bool sv_quiet;	      /* the master was told */
	struct conf *sv_conf;
	struct pw_pool *sv_pool;
	struct pw_root **sv_roots;
	struct clients *sv_clients;
	struct sockets sv_sockets;
	struct admin *sv_admin; /* NULL: off */
	struct log *sv_log;
	struct log_writer *sv_writer; /* main's own */
	struct worker **sv_workers;
	unsigned sv_started;
	struct watchdog sv_watchdog;
};

/* ------------------------------------------------------------------ the start */

/* It goes on without: before it could be locked nobody missed it. */
static void
prepare(void)
{
	int error = pw_process_prepare();

	if (error != 0)
		log_notice(NULL,
		    "the program may be evicted from memory and stop for a "
		    "disk "
		    "then: %s; ulimit -l should be 8192 or more",
		    strerror(-error));
}

static int
open_log(struct server *sv)
{
	struct conf *conf = sv->sv_conf;
	int error;

	error = log_create(conf->conf_access_log, conf->conf_log_format,
	    conf->conf_workers + 1, &sv->sv_log);
	if (error != 0) {
		log_error(NULL, "cannot open the access log %s: %s",
		    conf->conf_access_log == NULL ? "" : conf->conf_access_log,
		    strerror(-error));
		return -1;
	}
	sv->sv_writer = log_writer(sv->sv_log, conf->conf_workers);
	return 0;
}

static int
failed(const char *what, int error)
{
	log_error(NULL, "cannot %s: %s", what, strerror(-error));
	return -1;
}

static int
create_workers(struct server *sv)
{
	struct conf *conf = sv->sv_conf;
	unsigned i;
	int error;

	sv->sv_workers = calloc(conf->conf_workers, sizeof(struct worker *));
	if (sv->sv_workers == NULL ||
	    clients_create(conf->conf_max_connections,
		conf->conf_max_per_address, &sv->sv_clients) != 0)
		return failed("create the workers", -ENOMEM);
	for (i = 0; i < conf->conf_workers; i++) {
		error = worker_create(conf, sv->sv_pool, sv->sv_roots,
		    sv->sv_clients, sv->sv_log, i, &sv->sv_workers[i]);
		if (error != 0)
			return failed("create a worker", error);
	}
	return 0;
}

/* The number of sockets from i on that have one name. */
static size_t
same_name(const struct sockets *ss, size_t i)
{
	size_t n = 1;

	while (i + n < ss->ss_count &&
	       ss->ss_list[i + n].sk_use == ss->ss_list[i].sk_use &&
	       strcmp(ss->ss_list[i + n].sk_name, ss->ss_list[i].sk_name) == 0)
		n++;
	return n;
}

/* Every worker has one of them at least, and every one a worker. */
static int
share(struct server *sv, const struct sock *sk, size_t n)
{
	unsigned workers = sv->sv_conf->conf_workers;
	size_t i, most = n > workers ? n : workers;
	int error;

	for (i = 0; i < most; i++) {
		error =
		    listener_take(sv->sv_workers[i % workers], sk[i % n].sk_fd);
		if (error != 0)
			return failed("listen", error);
	}
	return 0;
}

static int
share_sockets(struct server *sv)
{
	const struct sockets *ss = &sv->sv_sockets;
	size_t i, n;

	for (i = 0; i < ss->ss_count; i += n) {
		n = same_name(ss, i);
		if (ss->ss_list[i].sk_use == SOCKET_SERVE &&
		    share(sv, &ss->ss_list[i], n) == -1)
			return -1;
	}
	return 0;
}

/* The next server process has them from the master. */
static int
hand_over(struct server *sv)
{
	char text[SOCKETS_TEXT];
	const struct sock *sk;
	size_t i;
	int error = 0;

	for (i = 0; i < sv->sv_sockets.ss_count && error == 0; i++) {
		sk = &sv->sv_sockets.ss_list[i];
		sockets_pack(sk, text);
		error = channel_send(
		    sv->sv_channel, CHANNEL_SOCKET, text, sk->sk_fd, true);
	}
	return error == 0 ? 0 : failed("hand the sockets over", error);
}

/* Everything that needs a path, or a right that is given up later. */
static int
open_all(struct server *sv, struct sockets *old)
{
	struct pw_pool_conf pool = {.ppc_threads = sv->sv_conf->conf_threads};
	int error;

	if (roots_open(sv->sv_conf, &sv->sv_roots) == -1 ||
	    bind_sites(sv->sv_conf, old, &sv->sv_sockets) == -1 ||
	    bind_admin(sv->sv_conf, old, &sv->sv_sockets) == -1)
		return -1;
	sockets_close(old);
	if (open_log(sv) == -1)
		return -1;
	error = pw_pool_create(&pool, &sv->sv_pool);
	if (error != 0)
		return failed("create the pool", error);
	if (create_workers(sv) == -1 || share_sockets(sv) == -1)
		return -1;
	return hand_over(sv);
}

static const struct sock *
admin_socket(const struct server *sv)
{
	size_t i;

	for (i = 0; i < sv->sv_sockets.ss_count; i++)
		if (sv->sv_sockets.ss_list[i].sk_use == SOCKET_ADMIN)
			return &sv->sv_sockets.ss_list[i];
	return NULL;
}

static int
start_admin(struct server *sv)
{
	const struct metrics metrics = {
	    .mt_conf = sv->sv_conf,
	    .mt_workers = sv->sv_workers,
	    .mt_pool = sv->sv_pool,
	    .mt_log = sv->sv_log,
	    .mt_start = time(NULL),
	};
	const struct sock *sk = admin_socket(sv);
	bool is_path;
	char url[256];
	int error;

	if (sk == NULL)
		return 0;
	is_path = sk->sk_ino != 0;
	error = admin_start(sk->sk_fd, is_path, &metrics, &sv->sv_admin);
	if (error != 0)
		return failed("start admin", error);
	if (is_path)
		snprintf(url, sizeof(url), "unix:%s", sk->sk_name);
	else
		bind_url(sk->sk_fd, url, sizeof(url));
	log_notice(sv->sv_writer, "admin at %s", url);
	return 0;
}

static int
start_threads(struct server *sv)
{
	unsigned i;
	int error = log_start(sv->sv_log);

	for (i = 0; i < sv->sv_conf->conf_workers && error == 0; i++) {
		error = worker_start(sv->sv_workers[i]);
		if (error == 0)
			sv->sv_started++;
	}
	if (error != 0)
		return failed("start a thread", error);
	return start_admin(sv);
}

static void
announce(const struct server *sv)
{
	const struct conf *conf = sv->sv_conf;
	const struct sockets *ss = &sv->sv_sockets;
	char url[128];
	size_t i;

	for (i = 0; i < ss->ss_count; i += same_name(ss, i)) {
		if (ss->ss_list[i].sk_use != SOCKET_SERVE)
			continue;
		bind_url(ss->ss_list[i].sk_fd, url, sizeof(url));
		if (conf->conf_nsites == 1)
			log_notice(sv->sv_writer, "serving %s at %s",
			    conf->conf_sites[0].site_root, url);
		else
			log_notice(sv->sv_writer, "serving %zu sites at %s",
			    conf->conf_nsites, url);
	}
}

static int
start(struct server *sv, struct sockets *old)
{
	prepare();
	/* It has a limit of its own, for all parsers; ours comes first. */
	http_parser_set_max_header_size(
	    (uint32_t)sv->sv_conf->conf_max_head + 1);
	if (open_all(sv, old) == -1)
		return -1;
	/* Everything is open, and no thread runs yet. */
	if (start_threads(sv) == -1)
		return -1;
	announce(sv);
	/* What workers and admin have are copies. */
	sockets_close(&sv->sv_sockets);
	if (channel_send(sv->sv_channel, CHANNEL_READY, "", -1, true) == -EPIPE)
		sv->sv_end = END_STOP;
	return 0;
}

/* ----------------------------------------------------------------- the orders */

/* A second order to stop cuts. */
static void
stop(struct server *sv)
{
	if (sv->sv_end >= END_STOP) {
		sv->sv_end = END_CUT;
		return;
	}
	sv->sv_end = END_STOP;
	sv->sv_deadline =
	    worker_now() + sv->sv_conf->conf_shutdown_timeout * SECOND_US;
}

static void
lose_master(struct server *sv)
{
	close(sv->sv_channel);
	sv->sv_channel = -1;
	if (sv->sv_end < END_STOP)
		stop(sv);
}

static void
obey(struct server *sv, const struct channel_message *cm)
{
	switch (cm->cm_kind) {
	case CHANNEL_DRAIN:
		if (sv->sv_end == END_NOT)
			sv->sv_end = END_DRAIN;
		break;
	case CHANNEL_STOP:
		stop(sv);
		break;
	case CHANNEL_SAY:
		log_notice(sv->sv_writer, "%s", cm->cm_text);
		break;
	default:
		break;
	}
}

/* Waits so many milliseconds for the master to say something; -1: for ever. */
static void
listen_to_master(struct server *sv, int timeout)
{
	struct pollfd pfd = {.fd = sv->sv_channel, .events = POLLIN};
	struct channel_message cm;
	int fd, result;

	/* Without a master there is nothing in pfd: it is just a pause. */
	if (poll(&pfd, 1, timeout) < 1)
		return;
	while (sv->sv_channel != -1) {
		result = channel_receive(sv->sv_channel, &cm, &fd);
		if (fd != -1)
			close(fd);
		if (result == 0)
			return;
		if (result == 1)
			obey(sv, &cm);
		else
			lose_master(sv);
	}
}

static void
run(struct server *sv)
{
	while (sv->sv_end == END_NOT) {
		listen_to_master(sv, watchdog_wait(&sv->sv_watchdog));
		watchdog_look(&sv->sv_watchdog, sv->sv_channel, sv->sv_workers,
		    sv->sv_started, sv->sv_writer);
	}
}

/* -------------------------------------------------------------------- the end */

static void
command_all(struct server *sv, enum worker_command command)
{
	unsigned i;

	for (i = 0; i < sv->sv_started; i++)
		worker_command(sv->sv_workers[i], command);
}

static void
tell_quiet(struct server *sv)
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

static bool
all_ended(struct server *sv)
{
	unsigned i;

	for (i = 0; i < sv->sv_started; i++)
		if (!worker_join(sv->sv_workers[i], 0))
			return false;
	return true;
}

/* Until it becomes urgent.  True if all have ended. */
static bool
wait_workers(struct server *sv)
{
	while (!all_ended(sv)) {
		tell_quiet(sv);
		listen_to_master(sv, LOOK_MS);
		if (sv->sv_end == END_CUT ||
		    (sv->sv_end == END_STOP && worker_now() >= sv->sv_deadline))
			return false;
	}
	return true;
}

static bool
wait_hung(struct server *sv)
{
	sv->sv_end = END_STOP;
	sv->sv_deadline = worker_now() + HUNG_US;
	return wait_workers(sv);
}

/*
 * Three steps: no more connections; after the timeout, or a second order, the
 * connections are cut; what then still waits for a disk that does not answer
 * is left.  False in this last case: the process must end as it is.
 */
static bool
shut_down(struct server *sv)
{
	unsigned i;

	/* The next process answers there. */
	if (sv->sv_end == END_DRAIN)
		admin_destroy(&sv->sv_admin);
	command_all(sv, WORKER_DRAIN);
	if (wait_workers(sv))
		return true;
	log_notice(sv->sv_writer, "closing the connections that are left");
	command_all(sv, WORKER_STOP);
	if (wait_hung(sv))
		return true;
	log_warn(sv->sv_writer, "a disk does not answer: ending without it");
	command_all(sv, WORKER_ABANDON);
	wait_hung(sv);
	for (i = 0; i < sv->sv_started; i++)
		worker_abandon(sv->sv_workers[i]);
	return false;
}

static void
destroy(struct server *sv)
{
	unsigned i;

	admin_destroy(&sv->sv_admin);
	for (i = 0; sv->sv_workers != NULL && i < sv->sv_conf->conf_workers;
	     i++)
		worker_destroy(&sv->sv_workers[i]);
	pw_pool_destroy(&sv->sv_pool, HUNG_US);
	log_destroy(&sv->sv_log);
	roots_close(&sv->sv_roots);
	clients_destroy(&sv->sv_clients);
	free(sv->sv_workers);
	conf_destroy(&sv->sv_conf);
	if (sv->sv_channel != -1)
		close(sv->sv_channel);
}

int
serve(struct serve_args *sa)
{
	struct server sv = {.sv_channel = sa->sa_channel};

	switch (conf_load(sa->sa_argc, sa->sa_argv, &sv.sv_conf)) {
	case CONF_RUN:
		break;
	case CONF_EXIT_OK:
		return 0;
	case CONF_EXIT_ERROR:
		return 1;
	case CONF_EXIT_USAGE:
		return 2;
	}
	watchdog_init(&sv.sv_watchdog, sa->sa_watchdog);
	/*
	 * A failed start leaves nothing that the end of the process does not
	 * clear up; if a worker runs already, it still uses the log.
	 */
	if (start(&sv, &sa->sa_sockets) == -1) {
		if (sv.sv_started == 0)
			log_destroy(&sv.sv_log);
		_exit(1);
	}
	run(&sv);
	if (!shut_down(&sv)) {
		admin_destroy(&sv.sv_admin);
		log_destroy(&sv.sv_log);
		_exit(1);
	}
	destroy(&sv);
	return 0;
}
