/*
 * Tests of lib/os/meter.c: the thread really sleeps, computes, or has its processor taken away.
 * Nothing is timed: who wakes it looks whether it is asleep.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "lib_fixture.h"

#include "lib/os/meter.h"
#include "lib/util/clock.h"

#define LONG (2 * METER_LOOKS)

/*
 * Another thread wakes this one, each time once it has slept for so long that it is looked
 * at: by a byte, or, the last time, by giving a lock back.
 */
struct alarm {
	pid_t al_tid;
	int al_times;
	atomic_int al_asked; /* this thread is about to sleep once more */
	int al_pipe[2];
	pthread_mutex_t al_lock;
	atomic_bool al_locked;
	pthread_t al_thread;
};

static bool
asleep(pid_t tid)
{
	char path[64], text[512], *end;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end != NULL && end[2] == 'S';
}

static void
spin(uint64_t us)
{
	uint64_t end = clock_now() + us;

	while (clock_now() < end)
		;
}

static void *
wake(void *arg)
{
	struct alarm *al = arg;

	pthread_mutex_lock(&al->al_lock);
	atomic_store(&al->al_locked, true);
	for (int i = 1; i <= al->al_times; i++) {
		while (atomic_load(&al->al_asked) < i || !asleep(al->al_tid))
			sched_yield();
		spin(LONG);
		if (i < al->al_times)
			assert_int_equal(write(al->al_pipe[1], "", 1), 1);
	}
	pthread_mutex_unlock(&al->al_lock);
	if (al->al_times > 0)
		assert_int_equal(write(al->al_pipe[1], "", 1), 1);
	return NULL;
}

static void
alarm_start(struct alarm *al, int times)
{
	*al = (struct alarm){
	    .al_tid = (pid_t)syscall(SYS_gettid),
	    .al_times = times,
	    .al_lock = PTHREAD_MUTEX_INITIALIZER,
	};
	assert_int_equal(pipe(al->al_pipe), 0);
	assert_int_equal(pthread_create(&al->al_thread, NULL, wake, al), 0);
	while (!atomic_load(&al->al_locked))
		;
}

static void
alarm_end(struct alarm *al)
{
	assert_int_equal(atomic_load(&al->al_asked), al->al_times);
	pthread_join(al->al_thread, NULL);
	close(al->al_pipe[0]);
	close(al->al_pipe[1]);
}

static void
sleep_once(struct alarm *al)
{
	char byte;

	atomic_fetch_add(&al->al_asked, 1);
	assert_int_equal(read(al->al_pipe[0], &byte, 1), 1);
}

static struct pw_sleep
slept(const char *call)
{
	struct pw_sleep list[PW_SLEEPS], none = {call, 0, 0};
	size_t i, n = pw_loop_sleeps(fx->fx_loop, list);

	for (i = 0; i < n; i++)
		if (strcmp(list[i].sl_call, call) == 0)
			return list[i];
	fail_msg("no call is named %s", call);
	return none;
}

static uint64_t
slept_at_all(void)
{
	struct pw_sleep list[PW_SLEEPS];
	size_t i, n = pw_loop_sleeps(fx->fx_loop, list);
	uint64_t times = 0;

	for (i = 0; i < n; i++)
		times += list[i].sl_times;
	return times;
}

static void
awake(void)
{
	pw_loop_awake(fx->fx_loop, clock_now());
}

static void
rest(void)
{
	pw_loop_rest(fx->fx_loop, clock_now());
}

TEST(each_sleep_is_counted_with_the_call_that_it_was_in)
{
	struct pw_sleep sl;
	struct alarm al;

	alarm_start(&al, 3);
	awake();
	meter_call(METER_SENDFILE);
	sleep_once(&al);
	meter_call(METER_OPENAT2);
	sleep_once(&al);
	meter_call(METER_SENDFILE);
	sleep_once(&al);
	rest();
	alarm_end(&al);
	sl = slept("sendfile");
	assert_int_equal(sl.sl_times, 2);
	assert_true(sl.sl_us >= 2 * (uint64_t)LONG);
	assert_int_equal(slept("openat2").sl_times, 1);
	assert_int_equal(slept_at_all(), 3);
}

TEST(work_after_a_call_is_not_counted_as_its_sleep)
{
	struct alarm al;

	alarm_start(&al, 1);
	awake();
	meter_call(METER_SENDFILE);
	awake();
	sleep_once(&al);
	rest();
	alarm_end(&al);
	assert_int_equal(slept("elsewhere").sl_times, 1);
	assert_int_equal(slept_at_all(), 1);
}

TEST(waiting_for_events_does_not_count)
{
	struct alarm al;
	int turn;

	alarm_start(&al, 3);
	for (turn = 0; turn < 3; turn++) {
		awake();
		meter_call(METER_SENDFILE);
		rest();
		sleep_once(&al);
	}
	awake();
	spin(2 * METER_LONG);
	rest();
	awake();
	meter_call(METER_SENDFILE);
	spin(LONG);
	rest();
	alarm_end(&al);
	assert_int_equal(slept_at_all(), 0);
}

TEST(other_threads_may_sleep)
{
	struct alarm al;

	alarm_start(&al, 1);
	assert_null(meter_mine);
	meter_call(METER_SENDFILE);
	sleep_once(&al);
	alarm_end(&al);
	assert_int_equal(slept_at_all(), 0);
}

TEST(a_call_that_computes_does_not_count)
{
	awake();
	meter_call(METER_SENDFILE);
	spin(2 * METER_LONG);
	meter_call(METER_PREADV2);
	spin(2 * METER_LONG);
	rest();
	assert_int_equal(slept_at_all(), 0);
}

static long
taken_away(void)
{
	struct rusage ru;

	assert_int_equal(getrusage(RUSAGE_THREAD, &ru), 0);
	return ru.ru_nivcsw;
}

static void *
hog(void *arg)
{
	const atomic_bool *end = arg;

	while (!atomic_load(end))
		;
	return NULL;
}

/* The other thread computes on the only processor that the two have. */
TEST(a_thread_whose_processor_is_taken_away_does_not_count)
{
	atomic_bool end = false;
	cpu_set_t all;
	pthread_t thread;
	long before;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	stay_on_one_cpu();
	assert_int_equal(pthread_create(&thread, NULL, hog, &end), 0);
	awake();
	meter_call(METER_SENDFILE);
	before = taken_away();
	while (taken_away() < before + 3)
		;
	rest();
	atomic_store(&end, true);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	assert_int_equal(slept_at_all(), 0);
}

TEST(a_lock_held_by_another_thread_is_named)
{
	struct alarm al;

	alarm_start(&al, 1);
	awake();
	meter_call(METER_SENDFILE);
	atomic_fetch_add(&al.al_asked, 1);
	meter_lock(&al.al_lock);
	rest();
	pthread_mutex_unlock(&al.al_lock);
	alarm_end(&al);
	assert_int_equal(slept("lock").sl_times, 1);
	assert_int_equal(slept_at_all(), 1);
}

TEST(short_wait_for_a_lock_is_not_blamed_on_what_computes_afterwards)
{
	struct alarm al;

	alarm_start(&al, 1);
	awake();
	meter_call(METER_PREADV2);
	atomic_fetch_add(&al.al_asked, 1);
	meter_lock(&al.al_lock);
	meter_mine->mt_since = clock_now(); /* as if it had been short */
	meter_call(METER_SENDFILE);
	spin(LONG);
	rest();
	pthread_mutex_unlock(&al.al_lock);
	alarm_end(&al);
	assert_int_equal(slept("sendfile").sl_times, 0);
}

TEST(a_free_lock_does_not_change_the_call)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	awake();
	meter_call(METER_SENDFILE);
	meter_lock(&lock);
	assert_int_equal(meter_mine->mt_call, METER_SENDFILE);
	pthread_mutex_unlock(&lock);
	rest();
}

static bool
evicts(void)
{
	SCOPED(close_at) int fd = open(path_in("f"), O_RDONLY);
	bool done;

	assert_true(fd >= 0);
	done = evict(fd, 4096);
	return done;
}

/* Of the loop's own turn; named: after a call of the library. */
static bool
faults(bool named)
{
	const size_t size = 4096;
	int fd = open(path_in("f"), O_RDONLY);
	volatile char *map;
	bool evicted;

	assert_true(fd >= 0);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	evicted = evict(fd, size);
	awake();
	if (named)
		meter_call(METER_SENDFILE);
	(void)map[0];
	spin(2 * METER_LONG);
	rest();
	munmap((void *)(uintptr_t)map, size);
	close(fd);
	return evicted && slept("page fault").sl_times > 0;
}

static bool
faults_in_a_call(void)
{
	return faults(true);
}

static bool
faults_elsewhere(void)
{
	return faults(false);
}

TEST(a_page_fault_that_reads_the_disk_is_named)
{
	make_file("f", 4096);
	if (!evicts())
		skip();
	assert_true(holds_in_one_of(10, faults_in_a_call));
	assert_int_equal(slept("sendfile").sl_times, 0);
}

TEST(a_page_fault_in_a_turn_without_a_call_is_named)
{
	make_file("f", 4096);
	if (!evicts())
		skip();
	assert_true(holds_in_one_of(10, faults_elsewhere));
}

/* What the loop's functions call is named: a sleep of sendfile(2) is not lost. */
TEST(calls_of_the_library_are_named)
{
	char byte;
	size_t n;

	awake();
	os_sendfile(-1, -1, 0, 1, &n);
	assert_int_equal(meter_mine->mt_call, METER_SENDFILE);
	os_send(-1, "", 1, false, &n);
	assert_int_equal(meter_mine->mt_call, METER_SEND);
	os_cachestat(-1, 0, 1);
	assert_int_equal(meter_mine->mt_call, METER_CACHESTAT);
	os_nowait(-1, 0, 1);
	assert_int_equal(meter_mine->mt_call, METER_PREADV2);
	os_lookup(-1, "x", OS_CACHED);
	assert_int_equal(meter_mine->mt_call, METER_OPENAT2);
	os_read(-1, 0, &byte, 1, true);
	assert_int_equal(meter_mine->mt_call, METER_PREAD);
	os_splice_in(-1, -1, 0, 1, &n);
	assert_int_equal(meter_mine->mt_call, METER_SPLICE);
	rest();
}
