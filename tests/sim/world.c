/*
 * world: see world.h.  Tasks are ucontexts.  Before each switch the task's thread-local state is
 * saved: errno, and the meter of the loop that runs (lib/os/meter.h).
 */
#include <sys/mman.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "lib/os/meter.h"
#include "tests/sim/kernel.h"
#include "tests/sim/world.h"

#define STACK	   ((size_t)384 << 10)
#define EVENTS_MAX 4096
#define STEPS_MOST 30000000 /* calls of a world: more are an endless loop */
#define STUCK_MOST 2000000  /* calls without a jump of the clock */
#define CHANGES	   4000	    /* most calls between changes of priorities */

struct task {
	char ta_name[16];
	ucontext_t ta_context;
	char *ta_stack;
	task_f *ta_function;
	void *ta_arg;
	int ta_loop;
	bool ta_used, ta_ready, ta_woken;
	const void *ta_waits;
	const char *ta_call; /* the last one */
	uint64_t ta_until;
	int ta_priority;
	int ta_errno;
	struct meter *ta_meter;
	uint64_t ta_step, ta_switches;
};

struct event {
	uint64_t ev_when, ev_number;
	event_f *ev_function;
	void *ev_arg;
};

struct plan plan;
uint64_t world_now;
struct task *world_me;

static struct task tasks[TASKS_MAX];
static unsigned ntasks;
static struct event events[EVENTS_MAX];
static unsigned nevents;
static uint64_t event_number, rng, steps, stuck, change_at;
static int lowest;
static ucontext_t outside;
static bool in_event;

uint64_t
world_random(void)
{
	rng ^= rng >> 12, rng ^= rng << 25, rng ^= rng >> 27;
	return rng * UINT64_C(0x2545f4914f6cdd1d);
}

unsigned
world_below(unsigned n)
{
	return n == 0 ? 0 : (unsigned)((world_random() >> 33) % n);
}

bool
world_once_in(unsigned n)
{
	return world_below(n) == 0;
}

unsigned
world_one_of(unsigned bits, unsigned n)
{
	unsigned i;

	do
		i = world_below(n);
	while ((bits >> i & 1) == 0);
	return i;
}

uint64_t
world_between(uint64_t least, uint64_t most)
{
	return least + (world_random() >> 8) % (most - least + 1);
}

void
world_begin(void)
{
	uint64_t x = plan.pl_seed * UINT64_C(0x9e3779b97f4a7c15) +
		     plan.pl_order * UINT64_C(0xd1342543de82ef95) + 1;

	x ^= x >> 32, x *= UINT64_C(0xd6e8feb86659fd93), x ^= x >> 32;
	rng = x | 1;
	world_now = 1000 * SECOND;
	change_at = world_between(1, CHANGES);
}

const char *
task_name(const struct task *ta)
{
	return ta == NULL ? "world" : ta->ta_name;
}

int
task_loop(const struct task *ta)
{
	return ta == NULL ? -1 : ta->ta_loop;
}

void
task_rename(const char *name)
{
	snprintf(world_me->ta_name, sizeof(world_me->ta_name), "%s", name);
}

void
task_become_loop(int loop)
{
	world_me->ta_loop = loop;
}

bool
task_is_loop(void)
{
	return world_me != NULL && world_me->ta_loop >= 0;
}

uint64_t *
task_step(void)
{
	return &world_me->ta_step;
}

uint64_t *
task_switches(void)
{
	return &world_me->ta_switches;
}

/* ------------------------------------------------------------------ events */

static bool
event_before(const struct event *a, const struct event *b)
{
	return a->ev_when < b->ev_when ||
	       (a->ev_when == b->ev_when && a->ev_number < b->ev_number);
}

/* A heap by time. */
void
world_at(uint64_t when, event_f *f, void *arg)
{
	unsigned i = nevents++, up;
	struct event ev = {
	    when < world_now ? world_now : when, event_number++, f, arg};

	if (nevents == EVENTS_MAX)
		world_fail("the simulator has too many events");
	for (; i > 0 && event_before(&ev, &events[(i - 1) / 2]); i = up) {
		up = (i - 1) / 2;
		events[i] = events[up];
	}
	events[i] = ev;
}

static struct event
event_take(void)
{
	struct event first = events[0], last = events[--nevents];
	unsigned i = 0, down;

	for (; (down = 2 * i + 1) < nevents; i = down) {
		if (down + 1 < nevents &&
		    event_before(&events[down + 1], &events[down]))
			down++;
		if (!event_before(&events[down], &last))
			break;
		events[i] = events[down];
	}
	events[i] = last;
	return first;
}

static void
world_fire(void)
{
	struct task *me = world_me;
	struct event ev;

	in_event = true;
	world_me = NULL;
	while (nevents > 0 && events[0].ev_when <= world_now) {
		ev = event_take();
		ev.ev_function(ev.ev_arg);
	}
	world_me = me;
	in_event = false;
}

/* ------------------------------------------------------------------- tasks */

static struct task *
world_next(void)
{
	struct task *best = NULL, *found[TASKS_MAX];
	unsigned i, n = 0;

	for (i = 0; i < ntasks; i++) {
		if (!tasks[i].ta_used || !tasks[i].ta_ready)
			continue;
		found[n++] = &tasks[i];
		if (best == NULL || tasks[i].ta_priority > best->ta_priority)
			best = &tasks[i];
	}
	return plan.pl_pct || n == 0 ? best : found[world_below(n)];
}

/* Makes tasks ready whose time has come.  Returns the time of the first that waits. */
static uint64_t
world_expire(void)
{
	uint64_t first = NEVER;
	unsigned i;

	for (i = 0; i < ntasks; i++) {
		if (!tasks[i].ta_used || tasks[i].ta_ready)
			continue;
		if (tasks[i].ta_until <= world_now) {
			tasks[i].ta_ready = true;
			tasks[i].ta_waits = NULL;
		} else if (tasks[i].ta_until < first)
			first = tasks[i].ta_until;
	}
	return first;
}

/* Lets time pass until a task is ready. */
static struct task *
world_choose(void)
{
	struct task *next;
	uint64_t first;

	for (;;) {
		first = world_expire();
		next = world_next();
		if (next != NULL)
			return next;
		if (nevents > 0 && events[0].ev_when < first)
			first = events[0].ev_when;
		if (first == NEVER)
			world_fail("deadlock: no thread can ever run again");
		if (first > world_now)
			world_now = first;
		stuck = 0;
		world_fire();
	}
}

static void
world_switch(struct task *to)
{
	struct task *me = world_me;

	if (to == me)
		return;
	me->ta_errno = errno;
	me->ta_meter = meter_mine;
	world_me = to;
	meter_mine = to->ta_meter;
	swapcontext(&me->ta_context, &to->ta_context);
	errno = me->ta_errno;
}

void
tasks_print(void)
{
	unsigned i;

	for (i = 0; i < ntasks; i++)
		if (tasks[i].ta_used)
			printf("%s %s in %s\n", tasks[i].ta_name,
			    tasks[i].ta_ready ? "runs" : "waits",
			    tasks[i].ta_call);
}

static void
task_main(void)
{
	struct task *me = world_me;

	me->ta_function(me->ta_arg);
	if (locks_held() > 0)
		world_fail("%s ended with a lock held", me->ta_name);
	me->ta_used = false;
	me->ta_ready = false;
	if (me == &tasks[0]) /* the world ends */
		swapcontext(&me->ta_context, &outside);
	world_switch(world_choose());
}

static void
task_make_context(struct task *ta)
{
	getcontext(&ta->ta_context);
	ta->ta_context.uc_stack.ss_sp = ta->ta_stack;
	ta->ta_context.uc_stack.ss_size = STACK;
	makecontext(&ta->ta_context, task_main, 0);
}

struct task *
world_start(const char *name, int loop, task_f *f, void *arg)
{
	struct task *ta = NULL;
	unsigned i;

	for (i = 0; i < TASKS_MAX && ta == NULL; i++)
		if (!tasks[i].ta_used)
			ta = &tasks[i];
	if (ta == NULL)
		return NULL;
	if (ntasks <= (unsigned)(ta - tasks))
		ntasks = (unsigned)(ta - tasks) + 1;
	if (ta->ta_stack == NULL)
		ta->ta_stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*ta = (struct task){.ta_stack = ta->ta_stack,
	    .ta_function = f,
	    .ta_arg = arg,
	    .ta_loop = loop,
	    .ta_used = true,
	    .ta_ready = true,
	    .ta_priority = (int)world_below(1000)};
	snprintf(ta->ta_name, sizeof(ta->ta_name), "%s", name);
	task_make_context(ta);
	return ta;
}

void
world_run(task_f *first, void *arg)
{
	world_me = world_start("main", -1, first, arg);
	swapcontext(&outside, &world_me->ta_context);
	shared->sh_steps += steps;
	shared->sh_virtual += world_now / MS - 1000000;
}

/* --------------------------------------------------------------- switching */

/* With pl_pct the task of the highest priority runs; now and then the running one gets the lowest. */
static void
world_change_order(void)
{
	if (steps < change_at)
		return;
	change_at = steps + world_between(1, CHANGES);
	world_me->ta_priority = --lowest;
	story("%s gets the lowest priority", world_me->ta_name);
}

/* Takes the processor away: mostly for microseconds, seldom for much longer. */
static void
world_preempt(void)
{
	static const uint64_t most[] = {
	    20 * US, 200 * US, 2 * MS, 20 * MS, 250 * MS};
	uint64_t ns = world_between(1 * US, most[world_below(COUNT(most))]);

	if (ns > MS)
		story("%s loses the processor for %llu us", world_me->ta_name,
		    (unsigned long long)(ns / US));
	world_sleep(ns);
}

void
world_point(const char *call)
{
	if (world_me == NULL || in_event)
		return;
	world_me->ta_call = call;
	if (++steps > STEPS_MOST || ++stuck > STUCK_MOST)
		world_fail("endless loop: %s has made calls without end "
			   "(last: %s)",
		    world_me->ta_name, call);
	world_now += world_between(50, 400);
	world_fire();
	kernel_pressure();
	if (has_fault(FAULT_PREEMPT) && world_once_in(plan.pl_preempts))
		world_preempt();
	else if (plan.pl_pct)
		world_change_order();
	else if (!world_once_in(6))
		return;
	world_expire();
	world_switch(world_next());
}

bool
world_wait(const void *what, uint64_t until)
{
	struct task *me = world_me;

	if (me == NULL || in_event)
		world_fail("the simulator waits on no task");
	me->ta_waits = what;
	me->ta_until = until;
	me->ta_ready = me->ta_woken = false;
	me->ta_switches++;
	world_switch(world_choose());
	me->ta_until = NEVER;
	return me->ta_woken;
}

void
world_wake(const void *what, unsigned most)
{
	unsigned i, from = ntasks == 0 ? 0 : world_below(ntasks), at;

	for (i = 0; i < ntasks && most > 0; i++) {
		at = (i + from) % ntasks;
		if (!tasks[at].ta_used || tasks[at].ta_ready ||
		    tasks[at].ta_waits != what)
			continue;
		tasks[at].ta_ready = tasks[at].ta_woken = true;
		tasks[at].ta_waits = NULL;
		most--;
	}
}

void
world_yield(void)
{
	world_me->ta_priority = --lowest;
	world_now += US;
	world_fire();
	world_expire();
	world_switch(world_next());
}

void
world_sleep(uint64_t ns)
{
	static const char sleeping;

	world_wait(&sleeping, world_now + ns);
}
