/*
 * served: the server as it ships, from serve() on, with a configuration made from the seed.  Its
 * workers are loops of this world.  Left out: TLS, passwords, admin, the sandbox, and the log,
 * whose files are not open.
 */
#include <nghttp2/nghttp2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/process/channel.h"
#include "server/process/serve.h"
#include "tests/sim/scene.h"
#include "tests/sim/wrap.h"

#define PATIENCE (90 * SECOND) /* after a drain, once all clients have gone */

static char text[2048];
static struct pw_pool *pool;
static bool limits, draining, quiet, hung;
static unsigned faults; /* of the plan: the server ends if it cannot start */

bool
served_ends(void)
{
	return draining;
}

bool
served_limits(void)
{
	return limits;
}

/* ------------------------------------------------------------- configuration */

static void __attribute__((format(printf, 1, 2)))
served_add(const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len, format, args);
	va_end(args);
}

static void
served_configure(void)
{
	static const char *const caches[] = {"keep", "drop", "auto"};
	static const char *const hot[] = {"auto", "auto", "0", "64K"};
	unsigned i;

	limits = world_once_in(6);
	served_add("listen = {\"127.0.0.1:8080\"}\nworkers = %u\nthreads = %u\n"
		   "head_timeout = %u\nkeepalive_timeout = %u\nsend_timeout = "
		   "%u\ndisk_timeout = %u\nautoindex = true\nhot_set = %s\n"
		   "open_files = %u\ncache = \"%s\"\nhttp2_max_streams = %u\n"
		   "drain_timeout = 200\n",
	    1 + world_below(2), plan.pl_threads, 1 + world_below(10),
	    1 + world_below(8), 2 + world_below(30), 2 + world_below(30),
	    hot[world_below(4)], world_once_in(3) ? 16 : 1024,
	    caches[world_one_of(plan.pl_caches, 3)],
	    world_once_in(4) ? 1 + world_below(3) : 100);
	if (limits)
		served_add("max_connections = %u\nmax_connections_per_address "
			   "= %u\nmax_requests = %u\n",
		    2 + world_below(6), world_below(4), world_below(5));
	for (i = 0; i < plan.pl_disks; i++)
		served_add("site \"d%u\" {\nnames = {\"d%u\"}\nroot = "
			   "\"/disk%u\"\n}\n",
		    i, i, i);
	story("%s", text);
}

WRAP(FILE *, text_file_open, (const char *path))
{
	(void)path;
	return fmemopen(text, strlen(text), "r");
}

/* ------------------------------------------------------- parts that are left out */

WRAP(int, sandbox_enter, (const void *conf, void *dirs, bool again))
{
	(void)conf, (void)dirs, (void)again;
	return 0;
}

WRAP(int, pw_process_prepare, (void))
{
	return 0;
}

WRAP(int, os_close_inherited, (void))
{
	return 0;
}

WRAP(int, os_lift_memlock, (void))
{
	return 0;
}

WRAP(void, metrics_prepare, (void))
{
}

#define LOGS(name, prefix)                                        \
	WRAP(void, name, (void *writer, const char *format, ...)) \
	{                                                         \
		char line[512];                                   \
		va_list args;                                     \
                                                                  \
		(void)writer;                                     \
		va_start(args, format);                           \
		vsnprintf(line, sizeof(line), format, args);      \
		va_end(args);                                     \
		story("log: " prefix "%s", line);                 \
	}
LOGS(log_notice, "")
LOGS(log_warn, "warning: ")
LOGS(log_error, "error: ")

/* ------------------------------------------------------------ loops and the pool */

void __real_worker_main(void *);
WRAP(void, worker_main, (void *worker))
{
	static int nworkers;

	task_become_loop(nworkers++);
	__real_worker_main(worker);
	task_become_loop(-1);
}

/* A step begins here: see page_excuse. */
enum pw_send_status __real_pw_send_step(struct pw_send *);
WRAP(enum pw_send_status, pw_send_step, (struct pw_send * s))
{
	enum pw_send_status status;

	*task_step() = world_now;
	status = __real_pw_send_step(s);
	*task_step() = world_now;
	return status;
}

/* Has memory: where a push to its queue fails, libnghttp2 1.52 frees the same DATA twice (nghttp2_submit_data). */
ssize_t __real_nghttp2_session_mem_send(nghttp2_session *, const uint8_t **);
WRAP(ssize_t, nghttp2_session_mem_send,
    (nghttp2_session * session, const uint8_t **mem))
{
	unsigned had = plan.pl_faults;
	ssize_t n;

	plan.pl_faults &= ~(1U << FAULT_MEMORY);
	n = __real_nghttp2_session_mem_send(session, mem);
	plan.pl_faults |= had & 1U << FAULT_MEMORY;
	return n;
}

int __real_pw_pool_create(const struct pw_pool_conf *, struct pw_pool **);
WRAP(int, pw_pool_create,
    (const struct pw_pool_conf *conf, struct pw_pool **out))
{
	int error = __real_pw_pool_create(conf, &pool);

	*out = pool;
	return error;
}

/* Returns an error if a disk thread hangs: the server then leaves it behind. */
int __real_pw_pool_destroy(struct pw_pool **, uint64_t);
WRAP(int, pw_pool_destroy, (struct pw_pool * *pp, uint64_t us))
{
	int error = __real_pw_pool_destroy(pp, us);

	if (error != 0 && !has_fault(FAULT_HANG) && !has_fault(FAULT_PREEMPT))
		world_fail("a disk thread does not end");
	hung = error != 0;
	return error;
}

/* A server whose disk hangs, or whose loops are very slow, ends without waiting for them. */
WRAP(void, _exit, (int status))
{
	if (!draining || (!has_fault(FAULT_HANG) && !has_fault(FAULT_PREEMPT)))
		world_fail("the server ends itself with status %d", status);
	covered("server   abandons a loop");
	_exit(0);
}

/* -------------------------------------------------------------------- the master */

static void
served_drain(const char *why)
{
	if (draining)
		return;
	story("reload: the server drains, %s", why);
	covered("server   drains, %s", why);
	draining = true;
	net_tell(CHANNEL_DRAIN);
}

static void
served_reload(void *arg)
{
	(void)arg;
	if (calm_since == 0)
		served_drain("with clients");
}

int __wrap_channel_send(int, enum channel_kind, const char *, int, bool);
int
__wrap_channel_send(
    int channel, enum channel_kind kind, const char *line, int fd, bool wait)
{
	(void)channel, (void)line, (void)fd, (void)wait;
	if (kind == CHANNEL_QUIET)
		quiet = true;
	if (kind == CHANNEL_READY) {
		plan.pl_faults = faults;
		net_tell(CHANNEL_SERVE);
		if (plan.pl_early)
			world_at(world_now + world_between(SECOND, 20 * SECOND),
			    served_reload, NULL);
	}
	return 0;
}

static unsigned
served_connections(void)
{
	unsigned i, n = 0;

	for (i = 0; i < FDS_MAX; i++)
		n += fds[i].fd_kind == FD_SOCKET;
	return n;
}

/* Looks each second at what must hold. */
static void
served_watch(void *arg)
{
	peers_check();
	if (world_now > 1000 * SECOND + LONGEST)
		peers_leave();
	if (calm_since == 0 && peers_all_gone()) {
		calm_since = world_now;
		story("all clients are gone");
	}
	if (calm_since != 0 && !draining && world_now > calm_since + CALM) {
		if (served_connections() > 0)
			world_fail("%u connections are open although all "
				   "clients left",
			    served_connections());
		scene_check_budget(pool);
		served_drain("after them");
		calm_since = world_now;
	}
	if (calm_since != 0 && world_now > calm_since + PATIENCE &&
	    !has_fault(FAULT_HANG))
		world_fail("the server does not end%s",
		    quiet ? "" : ": a worker accepts connections");
	world_at(world_now + SECOND, served_watch, arg);
}

void
served_main(void *arg)
{
	char *argv[] = {"pagewise", "-c", "/sim.conf", NULL};
	struct serve_args sa = {.sa_argc = 3, .sa_argv = argv};
	int status;

	(void)arg;
	faults = plan.pl_faults;
	plan.pl_faults &=
	    ~(1U << FAULT_MEMORY | 1U << FAULT_REFUSED | 1U << FAULT_THREADS);
	served_configure();
	sa.sa_channel = fd_new(FD_CHANNEL);
	peers_draw();
	scene_disturb();
	world_at(world_now + SECOND, served_watch, NULL);
	status = serve(&sa);
	if (status != 0)
		world_fail("the server ends with status %d", status);
	if (!draining)
		world_fail("the server ends by itself");
	peers_leave();
	if (!hung)
		scene_check_end();
}
