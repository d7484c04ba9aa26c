/*
 * main: start, signals, end.  The main thread serves nobody.
 */
#include <errno.h>
#include <http_parser.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin.h"
#include "conf.h"
#include "listener.h"
#include "log.h"
#include "roots.h"
#include "worker.h"

#define SECOND_US ((uint64_t)1000000)
#define HUNG_US	  (2 * SECOND_US) /* a disk has this long at the very end */

struct server {
	struct conf *sv_conf;
	struct pw_pool *sv_pool;
	struct roots *sv_roots;
	struct admin *sv_admin; /* NULL: off */
	struct log *sv_log;
	struct log_writer *sv_writer; /* main's own */
	int *sv_fds;
	struct worker **sv_workers;
	unsigned sv_started;
};

/* Each connection needs a descriptor, each cached file another. */
static void
raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

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
create_workers(struct server *sv)
{
	struct conf *conf = sv->sv_conf;
	unsigned i;
	int error;

	for (i = 0; i < conf->conf_workers; i++) {
		error = worker_create(conf, sv->sv_pool, sv->sv_roots,
		    sv->sv_log, i, sv->sv_fds + i * conf->conf_nlisten,
		    &sv->sv_workers[i]);
		if (error != 0) {
			log_error(NULL, "cannot create a worker: %s",
			    strerror(-error));
			return -1;
		}
	}
	for (i = 0; i < conf->conf_workers; i++) {
		error = worker_start(sv->sv_workers[i]);
		if (error != 0) {
			log_error(NULL, "cannot start a thread: %s",
			    strerror(-error));
			return -1;
		}
		sv->sv_started++;
	}
	return 0;
}

static void
command_all(struct server *sv, enum worker_command command)
{
	unsigned i;

	for (i = 0; i < sv->sv_started; i++)
		worker_command(sv->sv_workers[i], command);
}

/* Called by the worker that has opened one again. */
static void
roots_changed(void *arg)
{
	command_all(arg, WORKER_ROOTS);
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
	char url[256];
	int error;

	if (sv->sv_admin == NULL)
		return 0;
	admin_url(sv->sv_admin, url, sizeof(url));
	error = admin_start(sv->sv_admin, &metrics);
	if (error == 0)
		log_notice(sv->sv_writer, "admin at %s", url);
	else
		log_error(NULL, "cannot start admin: %s", strerror(-error));
	return error == 0 ? 0 : -1;
}

static int
create(struct server *sv)
{
	struct conf *conf = sv->sv_conf;
	struct pw_pool_conf pool = {.ppc_threads = conf->conf_threads};
	int error;

	sv->sv_fds = calloc(
	    conf->conf_workers * conf->conf_nlisten, sizeof(*sv->sv_fds));
	sv->sv_workers = calloc(conf->conf_workers, sizeof(struct worker *));
	if (sv->sv_fds == NULL || sv->sv_workers == NULL) {
		log_error(NULL, "%s", strerror(ENOMEM));
		return -1;
	}
	if (roots_open(conf, roots_changed, sv, &sv->sv_roots) == -1 ||
	    listener_bind(conf, sv->sv_fds) == -1 ||
	    admin_create(conf, &sv->sv_admin) == -1)
		return -1;
	error = log_create(conf->conf_access_log, conf->conf_log_format,
	    conf->conf_workers + 1, &sv->sv_log);
	if (error != 0) {
		log_error(NULL, "cannot open the access log %s: %s",
		    conf->conf_access_log == NULL ? "" : conf->conf_access_log,
		    strerror(-error));
		return -1;
	}
	sv->sv_writer = log_writer(sv->sv_log, conf->conf_workers);
	error = pw_pool_create(&pool, &sv->sv_pool);
	if (error != 0) {
		log_error(NULL, "cannot create the pool: %s", strerror(-error));
		return -1;
	}
	if (create_workers(sv) == -1)
		return -1;
	return start_admin(sv);
}

static void
announce(const struct server *sv)
{
	const struct conf *conf = sv->sv_conf;
	char url[128];
	size_t i;

	for (i = 0; i < conf->conf_nlisten; i++) {
		listener_url(sv->sv_fds[i], url, sizeof(url));
		if (conf->conf_nsites == 1)
			log_notice(sv->sv_writer, "serving %s at %s",
			    conf->conf_sites[0].site_root, url);
		else
			log_notice(sv->sv_writer, "serving %zu sites at %s",
			    conf->conf_nsites, url);
	}
}

/* Blocked in all threads; the main thread takes them one by one. */
static void
block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void
serve(struct server *sv, const sigset_t *set)
{
	int number;

	for (;;) {
		if (sigwait(set, &number) != 0)
			continue;
		if (number != SIGHUP)
			return;
		log_reopen(sv->sv_log);
		/* Not here: who waits for a disk cannot take the next one. */
		worker_command(sv->sv_workers[0], WORKER_REOPEN);
	}
}

/*
 * Waits for the workers to end: until end_us, or until another signal says
 * that it is urgent.  True if all have ended.
 */
static bool
wait_workers(struct server *sv, const sigset_t *set, uint64_t end_us)
{
	static const struct timespec at_once = {0, 0};
	unsigned i;
	int number;

	for (i = 0; i < sv->sv_started; i++)
		while (!worker_join(sv->sv_workers[i], SECOND_US / 20)) {
			number = sigtimedwait(set, NULL, &at_once);
			if (worker_now() >= end_us ||
			    (number != -1 && number != SIGHUP))
				return false;
		}
	return true;
}

/*
 * Three steps: no more connections; after the timeout, or a second signal, the
 * connections are cut; what then still waits for a disk that does not answer
 * is left.  False in this last case: the process must end as it is.
 */
static bool
shut_down(struct server *sv, const sigset_t *set)
{
	uint64_t timeout = sv->sv_conf->conf_shutdown_timeout * SECOND_US;

	command_all(sv, WORKER_DRAIN);
	if (wait_workers(sv, set, worker_now() + timeout))
		return true;
	log_notice(sv->sv_writer, "closing the connections that are left");
	command_all(sv, WORKER_STOP);
	if (wait_workers(sv, set, worker_now() + HUNG_US))
		return true;
	log_warn(sv->sv_writer, "a disk does not answer: ending without it");
	command_all(sv, WORKER_ABANDON);
	wait_workers(sv, set, worker_now() + HUNG_US);
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
	free(sv->sv_workers);
	free(sv->sv_fds);
	conf_destroy(&sv->sv_conf);
}

int
main(int argc, char **argv)
{
	struct server sv = {0};
	sigset_t signals;

	switch (conf_load(argc, argv, &sv.sv_conf)) {
	case CONF_RUN:
		break;
	case CONF_EXIT_OK:
		return 0;
	case CONF_EXIT_ERROR:
		return 1;
	case CONF_EXIT_USAGE:
		return 2;
	}
	raise_limits();
	prepare();
	/* It has a limit of its own, for all parsers; ours comes first. */
	http_parser_set_max_header_size(
	    (uint32_t)sv.sv_conf->conf_max_head + 1);
	block_signals(&signals);
	/*
	 * A failed start leaves nothing that the end of the process does not
	 * clear up; if a worker runs already, it still uses the log.
	 */
	if (create(&sv) == -1) {
		admin_destroy(&sv.sv_admin);
		if (sv.sv_started == 0)
			log_destroy(&sv.sv_log);
		_exit(1);
	}
	announce(&sv);
	serve(&sv, &signals);
	if (!shut_down(&sv, &signals)) {
		admin_destroy(&sv.sv_admin);
		log_destroy(&sv.sv_log);
		_exit(1);
	}
	destroy(&sv);
	return 0;
}
