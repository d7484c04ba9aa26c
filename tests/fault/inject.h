/*
 * inject: makes calls of the server to libc, libevent and liburing fail, as a test
 * says.  It is linked below the server's own objects (ld --wrap); the server knows
 * nothing of it.
 *
 * The plan is a file that the test maps as well, named by PAGEWISE_FAULTS; without
 * it nothing fails.  A call is what is wrapped, by its name; a site is a place in the
 * program that makes it, with the place that called that one: the same in each run of
 * one binary.  A rule is about the calls of one site, or of all sites of one call.
 * Besides, all calls that have effects fail at random, in pl_ppm of a million.
 * Everything that both sides write is atomic.
 */
#ifndef TESTS_FAULT_INJECT_H
#define TESTS_FAULT_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INJECT_MAGIC   0x70770001
#define INJECT_CALLS   160
#define INJECT_SITES   2048
#define INJECT_EFFECTS 8
#define INJECT_RULES   4

/* What happens to a call: an errno, or one of these: its count is less. */
enum inject_effect {
	INJECT_ONE = -1,
	INJECT_HALF = -2,
	INJECT_NONE = -3, /* 0: the end of a file, where that has one */
};

/* ru_times is written last.  A key below INJECT_CALLS is a call. */
struct plan_rule {
	atomic_ullong ru_key;
	_Atomic int64_t ru_skip;  /* so many pass first */
	_Atomic int64_t ru_times; /* then so many fail */
	_Atomic int64_t ru_effect;
};

struct plan_call {
	char pc_name[48];
	atomic_ullong pc_seen;
	atomic_ullong pc_failed;		    /* of those */
	_Atomic int32_t pc_effects[INJECT_EFFECTS]; /* at random; 0: no more */
};

struct plan_site {
	atomic_ullong ps_key; /* 0: the slot is free */
	atomic_ullong ps_seen;
	uint64_t ps_place; /* bytes from the begin of the program */
	uint32_t ps_call;  /* index of pl_calls */
	uint32_t ps_pad;
};

struct plan {
	uint32_t pl_magic;
	uint32_t pl_ncalls;
	_Atomic int32_t pl_pid; /* only that process; 0: each */
	_Atomic uint32_t pl_ppm;
	atomic_ullong pl_random; /* the seed, and what has become of it */
	atomic_ullong pl_full;	 /* sites that found no slot */
	struct plan_rule pl_rules[INJECT_RULES];
	struct plan_call pl_calls[INJECT_CALLS];
	struct plan_site pl_sites[INJECT_SITES];
};

/* The index of a call that is wrapped; before main. */
unsigned inject_call(const char *name);

/*
 * What is to happen to a call that is made from these two places: 0 (nothing) or an
 * effect.  fd: of a socket whose loop will be told again, or -1; an effect that the
 * loop has to be told of is left out if another thread than the loop's makes the call.
 */
int inject(unsigned call, const void *place, const void *above, int fd);

/*
 * The same for a call out of a library: all of it is one site, as for one that allocates at a thousand
 * places; or sites are told apart by the stack.
 */
int inject_library(unsigned call);
int inject_deep(unsigned call);

bool inject_is_file(int fd);

/* The event that a descriptor belongs to, as event_add and event_del say. */
struct event;
void inject_watch(struct event *);
void inject_forget(struct event *);

#endif
