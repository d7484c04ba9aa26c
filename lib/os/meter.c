/*
 * meter: see meter.h.
 */
#include "lib/os/meter.h"
#include "lib/util/check.h"
#include "lib/util/clock.h"
#include "lib/util/counter.h"

_Thread_local struct meter *meter_mine;

static const char *const names[METER_CALLS] = {
    [METER_ELSEWHERE] = "elsewhere",
    [METER_FAULT] = "page fault",
    [METER_LOCK] = "lock",
    [METER_CACHESTAT] = "cachestat",
    [METER_FSTAT] = "fstat",
    [METER_FSTATFS] = "fstatfs",
    [METER_IO_URING_ENTER] = "io_uring_enter",
    [METER_MINCORE] = "mincore",
    [METER_MMAP] = "mmap",
    [METER_MUNMAP] = "munmap",
    [METER_OPENAT] = "openat",
    [METER_OPENAT2] = "openat2",
    [METER_PREAD] = "pread",
    [METER_PREADV2] = "preadv2",
    [METER_SEND] = "send",
    [METER_SENDFILE] = "sendfile",
    [METER_SPLICE] = "splice",
    [METER_VMSPLICE] = "vmsplice",
};

_Static_assert(METER_CALLS <= PW_SLEEPS, "PW_SLEEPS is too small");

static bool
meter_read_base(struct meter *mt)
{
	return os_switches(&mt->mt_base) == 0;
}

/*
 * Attributes a time of `us` microseconds to mt_call if the thread slept since mt_base was read.  If
 * mt_base was not read in this iteration, only page faults count, since the context switches
 * include the wait for events.
 */
static void
meter_attribute(struct meter *mt, uint64_t us)
{
	struct os_switches before = mt->mt_base;
	enum meter_call call = mt->mt_call;
	uint64_t times;

	if (!meter_read_base(mt))
		return;
	times = mt->mt_based ? mt->mt_base.sw_slept - before.sw_slept
			     : mt->mt_base.sw_faults - before.sw_faults;
	if (times == 0)
		return;
	if (mt->mt_base.sw_faults != before.sw_faults)
		call = METER_FAULT;
	counter_add(&mt->mt_times[call], times);
	counter_add(&mt->mt_us[call], us);
}

static void
meter_switch(struct meter *mt, enum meter_call call, uint64_t now)
{
	if (mt->mt_based && now - mt->mt_since >= METER_LOOKS)
		meter_attribute(mt, now - mt->mt_since);
	else if (mt->mt_based && mt->mt_call == METER_LOCK)
		/* Resets the base, so that this sleep is not attributed to a later call. */
		meter_read_base(mt);
	mt->mt_call = call;
	mt->mt_since = now;
}

void
meter_change(struct meter *mt, enum meter_call call)
{
	uint64_t now = clock_now();

	if (!mt->mt_based) {
		mt->mt_based = meter_read_base(mt);
		mt->mt_since = now;
	}
	meter_switch(mt, call, now);
}

void
meter_begin(struct meter *mt, uint64_t now_us)
{
	PW_CHECK(meter_mine == NULL || meter_mine == mt);
	if (meter_mine == NULL) {
		meter_mine = mt;
		mt->mt_begin = now_us;
		mt->mt_based = false;
		if (!mt->mt_known)
			mt->mt_known = meter_read_base(mt);
	}
	meter_switch(mt, METER_ELSEWHERE, now_us);
}

void
meter_end(struct meter *mt, uint64_t now_us)
{
	if (meter_mine == NULL)
		return;
	if (!mt->mt_based && mt->mt_known &&
	    now_us - mt->mt_begin >= METER_LONG)
		meter_attribute(mt, now_us - mt->mt_begin);
	meter_switch(mt, METER_ELSEWHERE, now_us);
	meter_mine = NULL;
}

size_t
meter_sleeps(const struct meter *mt, struct pw_sleep list[PW_SLEEPS])
{
	size_t i;

	for (i = 0; i < METER_CALLS; i++) {
		list[i].sl_call = names[i];
		list[i].sl_times = counter_get(&mt->mt_times[i]);
		list[i].sl_us = counter_get(&mt->mt_us[i]);
	}
	return i;
}
