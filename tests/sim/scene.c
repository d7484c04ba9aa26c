/*
 * scene: loops, writers, and what must hold at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/scene.h"

#define TICK (250 * MS)

static struct app_loop apps[LOOPS_MAX];
static unsigned loops_left;
uint64_t calm_since;

static bool
scene_all_gone(void)
{
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++)
		if (clients[i].cl_doing != GONE)
			return false;
	return true;
}

static bool
scene_ends(void)
{
	if (calm_since == 0 && scene_all_gone()) {
		calm_since = world_now;
		story("all clients are gone");
	}
	return calm_since != 0 && world_now > calm_since + CALM;
}

/* Runs the clients of a loop.  Returns the time at which the next one arrives, or 0 if one is to run at once. */
static uint64_t
scene_run_clients(struct app_loop *al)
{
	uint64_t next = NEVER;
	struct client *c;
	bool more = false;
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++) {
		c = &clients[i];
		if (c->cl_app != al)
			continue;
		more = client_run(c) || more;
		if (c->cl_doing == AWAY && c->cl_arrives < next)
			next = c->cl_arrives;
	}
	return more ? 0 : next;
}

static bool
scene_has_events(const struct app_loop *al)
{
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++)
		if (clients[i].cl_app == al &&
		    (clients[i].cl_event ||
			(clients[i].cl_hangs_up && clients[i].cl_doing < LEFT)))
			return true;
	return false;
}

static void
scene_iterate(struct app_loop *al, const struct fd *wake)
{
	uint64_t next;

	*task_step() = world_now;
	pw_loop_awake(al->al_loop, pw_now());
	if (wake->fd_count > 0)
		pw_loop_drain(al->al_loop);
	next = scene_run_clients(al);
	*task_step() = world_now;
	if (world_now >= al->al_tick) {
		pw_loop_tick(al->al_loop, pw_now());
		al->al_tick = world_now + TICK;
	}
	pw_loop_rest(al->al_loop, pw_now());
	if (next > al->al_tick)
		next = al->al_tick;
	if (next > world_now && wake->fd_count == 0 && !scene_has_events(al))
		world_wait(al, next);
}

/* Returns true if the loop may be destroyed while others go on. */
static bool
scene_may_leave(const struct app_loop *al)
{
	unsigned i;

	if (!plan.pl_early || pw_loop_pending(al->al_loop) > 0)
		return false;
	for (i = 0; i < plan.pl_clients; i++)
		if (clients[i].cl_app == al && clients[i].cl_doing != GONE)
			return false;
	return true;
}

static void
scene_loop(void *arg)
{
	struct app_loop *al = arg;
	const struct fd *wake = fd_of(pw_loop_fd(al->al_loop));
	int error;

	while (!scene_ends() && !scene_may_leave(al))
		scene_iterate(al, wake);
	if (pw_loop_pending(al->al_loop) > 0)
		world_fail("loop %u has %u waits that never ended",
		    al->al_number, pw_loop_pending(al->al_loop));
	error = pw_loop_destroy(&al->al_loop);
	if (error != 0)
		world_fail("pw_loop_destroy fails: %s", strerror(-error));
	loops_left--;
	world_wake(&loops_left, 1);
}

static unsigned
scene_client_number(void *arg, const struct pw_send *s)
{
	const struct client *c =
	    (const struct client *)(const void *)((const char *)s -
						  offsetof(
						      struct client, cl_send));

	(void)arg;
	return (c->cl_number + 1) << 12;
}

static void
scene_device(void *arg, const char *message)
{
	(void)arg;
	story("%s", message);
}

/* -------------------------------------------------------------------- events */

static void
scene_replace(struct name *na, struct disk *di)
{
	struct inode *old = &inodes[na->na_inode];

	if (ninodes >= INODES_MAX - 1)
		return;
	old->in_links = 0;
	old->in_removed = world_now;
	na->na_inode = inode_create(di, (off_t)world_between(1, 4 << 20));
	inodes[na->na_inode].in_name = old->in_name;
	story("%s is replaced: file %llu, no longer %llu", na->na_text,
	    (unsigned long long)inodes[na->na_inode].in_number,
	    (unsigned long long)old->in_number);
	covered("writer   a file was replaced");
}

static void
scene_writer(void *arg)
{
	struct disk *di = &disks[world_below(plan.pl_disks)];
	struct name *na = &di->di_names[world_below(di->di_nnames)];

	if (calm_since != 0)
		return;
	if (world_once_in(5))
		scene_replace(na, di);
	else
		inode_write(&inodes[na->na_inode]);
	world_at(
	    world_now + world_between(10 * MS, 3 * SECOND), scene_writer, arg);
}

static void
scene_forget_names(void *arg)
{
	struct disk *di = &disks[world_below(plan.pl_disks)];

	di->di_names[world_below(di->di_nnames)].na_cached = false;
	if (calm_since == 0)
		world_at(world_now + world_between(MS, SECOND),
		    scene_forget_names, arg);
}

void
scene_disturb(void)
{
	if (has_fault(FAULT_WRITERS))
		world_at(world_now + SECOND, scene_writer, NULL);
	if (has_fault(FAULT_LOOKUPS))
		world_at(world_now, scene_forget_names, NULL);
}

/* Looks at what must always hold. */
static void
scene_watch(void *arg)
{
	clients_check_progress();
	if (world_now > 1000 * SECOND + LONGEST)
		clients_leave();
	if (world_now > 1000 * SECOND + 2 * LONGEST)
		world_fail("the world does not end");
	if (calm_since == 0)
		world_at(world_now + SECOND, scene_watch, arg);
}

/* ----------------------------------------------------------------------- end */

void
scene_check_budget(struct pw_pool *pool)
{
	struct pw_pool_stats ps;

	pw_pool_stats(pool, &ps);
	if (ps.ps_unsent != 0)
		world_fail("%llu bytes of the budget are held at the end",
		    (unsigned long long)ps.ps_unsent);
	/* The ticks of loops release what was sent. */
	if (!plan.pl_early && pw_pool_pinned(pool) != 0)
		world_fail("%llu bytes are pinned at the end",
		    (unsigned long long)pw_pool_pinned(pool));
}

void
scene_check_end(void)
{
	if (fds_open() > 0)
		world_fail("%u descriptors are open at the end", fds_open());
	if (maps_left() > 0)
		world_fail("%u mappings are left at the end", maps_left());
	if (machine_blocks() > 0)
		world_fail("%u blocks of the heap are left at the end",
		    machine_blocks());
	locks_check_end();
}

static void
scene_begin(struct pw_pool **pool)
{
	static const struct pw_loop_conf conf = {
	    .plc_device = scene_device, .plc_client = scene_client_number};
	struct pw_pool_conf pc = {plan.pl_threads, plan.pl_queue};
	unsigned faults = plan.pl_faults, i;
	char path[16];

	/* The program ends if it cannot start. */
	plan.pl_faults &=
	    ~(1U << FAULT_MEMORY | 1U << FAULT_REFUSED | 1U << FAULT_THREADS);
	if (pw_pool_create(&pc, pool) != 0 || pw_pool_start(*pool) != 0)
		world_fail("no pool can be created");
	for (i = 0; i < plan.pl_disks; i++) {
		snprintf(path, sizeof(path), "/disk%u", i);
		if (pw_root_open(path, &roots[i]) != 0)
			world_fail("pw_root_open fails");
	}
	for (i = 0; i < plan.pl_loops; i++) {
		apps[i].al_number = i;
		if (pw_loop_create(*pool, &conf, &apps[i].al_loop) != 0)
			world_fail("pw_loop_create fails");
		fd_of(pw_loop_fd(apps[i].al_loop))->fd_waiter = &apps[i];
	}
	plan.pl_faults = faults;
}

void
scene_main(void *arg)
{
	static const char *const names[LOOPS_MAX] = {
	    "loop 0", "loop 1", "loop 2", "loop 3"};
	struct pw_pool *pool;
	unsigned i;
	int error;

	(void)arg;
	scene_begin(&pool);
	for (i = 0; i < plan.pl_clients; i++)
		client_draw(&clients[i], i, &apps[i % plan.pl_loops]);
	scene_disturb();
	world_at(world_now + SECOND, scene_watch, NULL);
	loops_left = plan.pl_loops;
	for (i = 0; i < plan.pl_loops; i++)
		if (world_start(names[i], (int)i, scene_loop, &apps[i]) == NULL)
			world_fail("the simulator has too many tasks");
	while (!scene_ends() &&
	       (calm_since == 0 || world_now < calm_since + CALM - SECOND))
		world_sleep(SECOND);
	scene_check_budget(pool);
	while (loops_left > 0)
		world_wait(&loops_left, NEVER);
	for (i = 0; i < plan.pl_disks; i++)
		pw_root_close(&roots[i]);
	error = pw_pool_destroy(&pool, UINT64_C(60000000));
	if (error != 0)
		world_fail("pw_pool_destroy fails: %s", strerror(-error));
	scene_check_end();
}
