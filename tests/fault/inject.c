/*
 * inject: the plan, and what it says about a call.  See inject.h.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <execinfo.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject.h"

#define WATCHED 4096 /* descriptors */
#define DEPTH	12   /* of a library's stack, with this layer's */
#define MILLION 1000000

extern const char __executable_start, etext;

static struct plan *plan;

/* Who is told about a descriptor, and by which loop's thread. */
static struct {
	struct event *wd_event;
	pthread_t wd_thread;
} watched[WATCHED];

static void
plan_map(void)
{
	const char *path = getenv("PAGEWISE_FAULTS");
	void *map;
	int fd;

	if (path == NULL)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd == -1) {
		perror(path);
		_exit(127);
	}
	map = mmap(
	    NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		perror(path);
		_exit(127);
	}
	plan = map;
	plan->pl_magic = INJECT_MAGIC;
}

unsigned
inject_call(const char *name)
{
	static unsigned n = 1; /* 0 is no call */

	if (n == 1)
		plan_map();
	if (n >= INJECT_CALLS)
		abort();
	if (plan != NULL) {
		snprintf(plan->pl_calls[n].pc_name,
		    sizeof(plan->pl_calls[n].pc_name), "%s", name);
		plan->pl_ncalls = n + 1;
	}
	return n++;
}

/* The finalizer of splitmix64. */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* 0: a library's, which is somewhere else in each process. */
static uint64_t
place_of(const void *address)
{
	uintptr_t begin = (uintptr_t)&__executable_start;
	uintptr_t at = (uintptr_t)address;

	return at < begin || at >= (uintptr_t)&etext ? 0 : at - begin;
}

/* Keys are never as small as a call's index. */
static uint64_t
key_of(unsigned call, uint64_t place, uint64_t above)
{
	return mix(mix(mix(call) + place) + above) | (uint64_t)1 << 63;
}

static void
see(unsigned call, uint64_t key, uint64_t place)
{
	struct plan_site *ps;
	unsigned long long none;
	unsigned i;

	atomic_fetch_add(&plan->pl_calls[call].pc_seen, 1);
	for (i = 0; i < INJECT_SITES; i++) {
		ps = &plan->pl_sites[(key + i) % INJECT_SITES];
		none = 0;
		if (atomic_load(&ps->ps_key) != key &&
		    atomic_compare_exchange_strong(&ps->ps_key, &none, key)) {
			ps->ps_place = place;
			ps->ps_call = call;
		}
		if (atomic_load(&ps->ps_key) == key) {
			atomic_fetch_add(&ps->ps_seen, 1);
			return;
		}
	}
	atomic_fetch_add(&plan->pl_full, 1);
}

static int
by_rule(struct plan_rule *ru, unsigned call, uint64_t key)
{
	uint64_t wanted = atomic_load(&ru->ru_key);

	if (atomic_load(&ru->ru_times) <= 0 ||
	    (wanted != key && wanted != call))
		return 0;
	if (atomic_load(&ru->ru_skip) > 0 &&
	    atomic_fetch_sub(&ru->ru_skip, 1) > 0)
		return 0;
	if (atomic_fetch_sub(&ru->ru_times, 1) <= 0)
		return 0;
	return (int)atomic_load(&ru->ru_effect);
}

static int
by_chance(unsigned call)
{
	const struct plan_call *pc = &plan->pl_calls[call];
	uint32_t ppm = atomic_load(&plan->pl_ppm);
	uint64_t number;
	unsigned n;

	if (ppm == 0 || atomic_load(&pc->pc_effects[0]) == 0)
		return 0;
	number = mix(atomic_fetch_add(&plan->pl_random, 0x9e3779b97f4a7c15));
	if (number % MILLION >= ppm)
		return 0;
	for (n = 1; n < INJECT_EFFECTS; n++)
		if (atomic_load(&pc->pc_effects[n]) == 0)
			break;
	return atomic_load(&pc->pc_effects[(number >> 32) % n]);
}

/*
 * A loop whose events are edge-triggered hears of a descriptor once: after a call that
 * said EAGAIN, or took less, the kernel would tell it again when there is more.  False:
 * that cannot be had, from another thread or for what is no loop's.
 */
static bool
tell_again(int fd, int effect)
{
	struct event *ev;

	if (fd < 0 || fd >= WATCHED)
		return true;
	ev = watched[fd].wd_event;
	if (ev == NULL)
		return effect != EAGAIN;
	if (!pthread_equal(watched[fd].wd_thread, pthread_self()))
		return false;
	event_active(ev, event_get_events(ev) & (EV_READ | EV_WRITE), 0);
	return true;
}

static int
decide(unsigned call, uint64_t key, uint64_t place, int fd)
{
	int i, pid, effect = 0;

	pid = atomic_load(&plan->pl_pid);
	if (pid != 0 && pid != getpid())
		return 0;
	see(call, key, place);
	for (i = 0; i < INJECT_RULES && effect == 0; i++)
		effect = by_rule(&plan->pl_rules[i], call, key);
	if (effect == 0)
		effect = by_chance(call);
	if (effect == 0)
		return 0;
	if ((effect == EAGAIN || effect == INJECT_ONE ||
		effect == INJECT_HALF) &&
	    !tell_again(fd, effect))
		return 0;
	atomic_fetch_add(&plan->pl_calls[call].pc_failed, 1);
	return effect;
}

int
inject(unsigned call, const void *place, const void *above, int fd)
{
	uint64_t at;

	if (plan == NULL)
		return 0;
	at = place_of(place);
	return decide(call, key_of(call, at, place_of(above)), at, fd);
}

int
inject_library(unsigned call)
{
	return plan == NULL ? 0 : decide(call, key_of(call, 0, 0), 0, -1);
}

static bool
is_of_program(const void *address, Dl_info *info)
{
	return dladdr(address, info) != 0 &&
	       info->dli_fbase == &__executable_start;
}

/* The first that is a library's: before it are this layer's, and a sanitizer's. */
static int
library_in(void *const *stack, int n)
{
	Dl_info info;
	int i = 0;

	while (i < n && !is_of_program(stack[i], &info))
		i++;
	while (i < n && is_of_program(stack[i], &info))
		i++;
	return i;
}

/* The program's own addresses; a library's count from its begin. */
int
inject_deep(unsigned call)
{
	void *stack[DEPTH];
	uint64_t sum = 0, place = 0;
	Dl_info info;
	bool ours = false;
	int i, n;

	if (plan == NULL)
		return 0;
	n = backtrace(stack, DEPTH);
	for (i = library_in(stack, n); i < n && !ours; i++) {
		ours = is_of_program(stack[i], &info);
		if (info.dli_fbase == NULL)
			break;
		sum = mix(sum + (uint64_t)((uintptr_t)stack[i] -
					   (uintptr_t)info.dli_fbase));
		if (ours)
			place = place_of(stack[i]);
	}
	return decide(call, key_of(call, sum, 0), place, -1);
}

extern int __real_fstat(int, struct stat *);

bool
inject_is_file(int fd)
{
	struct stat st;

	return __real_fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

void
inject_watch(struct event *ev)
{
	int fd = event_get_fd(ev);

	if (fd < 0 || fd >= WATCHED)
		return;
	watched[fd].wd_thread = pthread_self();
	watched[fd].wd_event = ev;
}

void
inject_forget(struct event *ev)
{
	int fd = event_get_fd(ev);

	if (fd >= 0 && fd < WATCHED && watched[fd].wd_event == ev)
		watched[fd].wd_event = NULL;
}
