/*
 * threads: the pthread functions and semaphores that the library calls.  A lock's state lives in the
 * memory of the lock.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "tests/sim/world.h"
#include "tests/sim/wrap.h"

#define LOCKS_MAX 16 /* locks that a task may hold at once */

struct lock {
	struct task *lo_owner;
	unsigned lo_readers, lo_magic;
};

#define LOCK_MAGIC 0x10c4ed11

_Static_assert(sizeof(struct lock) <= sizeof(pthread_mutex_t), "mutex");
_Static_assert(sizeof(struct lock) <= sizeof(pthread_rwlock_t), "rwlock");

/* Locks that are held for writing, with their owner, and the lock that a loop waits for. */
static struct lock *held[TASKS_MAX];
static unsigned nheld, nlocks;
static const struct lock *wanted[8];

unsigned
locks_held(void)
{
	unsigned i, n = 0;

	for (i = 0; i < nheld; i++)
		n += held[i]->lo_owner == world_me;
	return n;
}

void
locks_check_end(void)
{
	if (nheld > 0)
		world_fail("%u locks are held at the end", nheld);
	if (nlocks > 0)
		world_fail("%u locks were not destroyed", nlocks);
}

void
locks_check_io(void)
{
	unsigned i, j;

	for (i = 0; i < nheld; i++)
		for (j = 0; j < COUNT(wanted); j++)
			if (held[i]->lo_owner == world_me &&
			    wanted[j] == held[i])
				world_fail("loop %u waits for a lock that %s "
					   "holds while it waits for a disk",
				    j, task_name(world_me));
}

static void
lock_own(struct lock *lo)
{
	lo->lo_owner = world_me;
	held[nheld++] = lo;
	if (nheld == TASKS_MAX)
		world_fail("the simulator has too many locks");
}

static void
lock_release(struct lock *lo)
{
	unsigned i;

	if (lo->lo_owner != world_me)
		world_fail("%s unlocks a lock of %s", task_name(world_me),
		    task_name(lo->lo_owner));
	for (i = 0; held[i] != lo; i++)
		continue;
	held[i] = held[--nheld];
	lo->lo_owner = NULL;
	world_wake(lo, TASKS_MAX);
}

static struct lock *
lock_check(void *memory)
{
	struct lock *lo = memory;

	if (lo->lo_magic != LOCK_MAGIC)
		world_fail(
		    "%s uses a lock that does not exist", task_name(world_me));
	return lo;
}

static int
lock_create(void *memory)
{
	*(struct lock *)memory = (struct lock){.lo_magic = LOCK_MAGIC};
	nlocks++;
	return 0;
}

static int
lock_destroy(void *memory)
{
	struct lock *lo = lock_check(memory);

	if (lo->lo_owner != NULL || lo->lo_readers > 0)
		world_fail("a lock was destroyed that %s holds",
		    task_name(lo->lo_owner));
	lo->lo_magic = 0;
	nlocks--;
	return 0;
}

WRAP(int, pthread_mutex_init,
    (pthread_mutex_t * m, const pthread_mutexattr_t *a))
{
	(void)a;
	return lock_create(m);
}

WRAP(int, pthread_mutex_destroy, (pthread_mutex_t * m))
{
	return lock_destroy(m);
}

WRAP(int, pthread_mutex_trylock, (pthread_mutex_t * m))
{
	struct lock *lo = lock_check(m);

	world_point("trylock");
	if (lo->lo_owner != NULL)
		return EBUSY;
	lock_own(lo);
	return 0;
}

WRAP(int, pthread_mutex_lock, (pthread_mutex_t * m))
{
	struct lock *lo = lock_check(m);
	int loop = task_loop(world_me);

	world_point("lock");
	if (lo->lo_owner == world_me)
		world_fail("%s locks a lock twice", task_name(world_me));
	while (lo->lo_owner != NULL) {
		if (loop >= 0)
			wanted[loop] = lo;
		world_wait(lo, NEVER);
	}
	if (loop >= 0)
		wanted[loop] = NULL;
	lock_own(lo);
	return 0;
}

WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * m))
{
	lock_release(lock_check(m));
	world_point("unlock");
	return 0;
}

WRAP(int, pthread_rwlock_init,
    (pthread_rwlock_t * m, const pthread_rwlockattr_t *a))
{
	(void)a;
	return lock_create(m);
}

WRAP(int, pthread_rwlock_destroy, (pthread_rwlock_t * m))
{
	return lock_destroy(m);
}

WRAP(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * m))
{
	struct lock *lo = lock_check(m);

	world_point("tryrdlock");
	if (lo->lo_owner != NULL)
		return EBUSY;
	lo->lo_readers++;
	return 0;
}

WRAP(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * m))
{
	struct lock *lo = lock_check(m);

	world_point("trywrlock");
	if (lo->lo_owner != NULL || lo->lo_readers > 0)
		return EBUSY;
	lock_own(lo);
	return 0;
}

WRAP(int, pthread_rwlock_unlock, (pthread_rwlock_t * m))
{
	struct lock *lo = lock_check(m);

	if (lo->lo_readers > 0)
		lo->lo_readers--;
	else
		lock_release(lo);
	world_point("rwunlock");
	return 0;
}

/* ----------------------------------------------- conditions and semaphores */

WRAP(int, pthread_condattr_init, (pthread_condattr_t * a))
{
	(void)a;
	return 0;
}

WRAP(int, pthread_condattr_setclock, (pthread_condattr_t * a, clockid_t c))
{
	(void)a;
	return c == CLOCK_MONOTONIC ? 0 : EINVAL;
}

WRAP(int, pthread_condattr_destroy, (pthread_condattr_t * a))
{
	(void)a;
	return 0;
}

WRAP(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a))
{
	(void)a;
	memset(c, 0, sizeof(*c));
	return 0;
}

WRAP(int, pthread_cond_destroy, (pthread_cond_t * c))
{
	(void)c;
	return 0;
}

WRAP(int, pthread_cond_signal, (pthread_cond_t * c))
{
	world_wake(c, 1);
	world_point("signal");
	return 0;
}

WRAP(int, pthread_cond_broadcast, (pthread_cond_t * c))
{
	world_wake(c, TASKS_MAX);
	world_point("broadcast");
	return 0;
}

static uint64_t
threads_time(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * SECOND + (uint64_t)ts->tv_nsec;
}

WRAP(int, pthread_cond_timedwait,
    (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *end))
{
	bool woken;

	if (task_is_loop())
		world_fail("the loop waits for a condition");
	lock_release(lock_check(m));
	woken =
	    threads_time(end) > world_now && world_wait(c, threads_time(end));
	__wrap_pthread_mutex_lock(m);
	return woken ? 0 : ETIMEDOUT;
}

struct semaphore {
	unsigned se_count;
};

WRAP(int, sem_init, (sem_t * s, int shared_by, unsigned count))
{
	(void)shared_by;
	((struct semaphore *)s)->se_count = count;
	return 0;
}

WRAP(int, sem_destroy, (sem_t * s))
{
	(void)s;
	return 0;
}

WRAP(int, sem_post, (sem_t * s))
{
	((struct semaphore *)s)->se_count++;
	world_wake(s, 1);
	world_point("post");
	return 0;
}

WRAP(int, sem_trywait, (sem_t * s))
{
	struct semaphore *se = (struct semaphore *)s;

	world_point("trywait");
	if (se->se_count == 0) {
		errno = EAGAIN;
		return -1;
	}
	se->se_count--;
	return 0;
}

static int
threads_sem_wait(sem_t *s, uint64_t until)
{
	struct semaphore *se = (struct semaphore *)s;

	world_point("sem_wait");
	if (task_is_loop())
		world_fail("the loop waits for a semaphore");
	while (se->se_count == 0)
		if (!world_wait(s, until) && se->se_count == 0) {
			errno = ETIMEDOUT;
			return -1;
		}
	se->se_count--;
	return 0;
}

WRAP(int, sem_wait, (sem_t * s))
{
	return threads_sem_wait(s, NEVER);
}

WRAP(int, sem_clockwait, (sem_t * s, clockid_t c, const struct timespec *end))
{
	(void)c;
	return threads_sem_wait(s, threads_time(end));
}

/* ----------------------------------------------------------------- threads */

struct starting {
	void *(*st_function)(void *);
	void *st_arg;
};

static struct starting starting[TASKS_MAX];
static unsigned nstarted;

static void
threads_main(void *arg)
{
	struct starting st = *(struct starting *)arg;

	st.st_function(st.st_arg);
	((struct starting *)arg)->st_function = NULL;
}

/* Succeeds once the thread has returned. */
WRAP(int, pthread_timedjoin_np,
    (pthread_t t, void **result, const struct timespec *end))
{
	(void)result, (void)end;
	world_point("pthread_timedjoin_np");
	return starting[(t - 1) % TASKS_MAX].st_function != NULL ? ETIMEDOUT
								 : 0;
}

WRAP(int, pthread_detach, (pthread_t t))
{
	(void)t;
	return 0;
}

WRAP(int, pthread_setname_np, (pthread_t t, const char *name))
{
	(void)t;
	task_rename(name);
	return 0;
}

WRAP(int, pthread_create,
    (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *arg))
{
	char name[16];
	struct starting *st;

	(void)a;
	world_point("pthread_create");
	if (task_is_loop())
		world_fail("the loop starts a thread");
	if (has_fault(FAULT_THREADS) && world_once_in(4)) {
		covered("fault    no thread can be started");
		return EAGAIN;
	}
	st = &starting[nstarted % TASKS_MAX];
	snprintf(name, sizeof(name), "disk %u", ++nstarted);
	*st = (struct starting){f, arg};
	if (world_start(name, -1, threads_main, st) == NULL)
		return EAGAIN;
	*t = (pthread_t)nstarted;
	return 0;
}

WRAP(int, sched_yield, (void))
{
	world_point("sched_yield");
	world_yield();
	return 0;
}

WRAP(int, nanosleep, (const struct timespec *ts, struct timespec *left))
{
	(void)left;
	if (task_is_loop())
		world_fail("the loop sleeps");
	world_sleep(threads_time(ts));
	return 0;
}

WRAP(int, clock_gettime, (clockid_t c, struct timespec *ts))
{
	(void)c;
	world_point("clock");
	ts->tv_sec = (time_t)(world_now / SECOND);
	ts->tv_nsec = (long)(world_now % SECOND);
	/* The caller may lose the processor before it uses the time. */
	if (world_once_in(4))
		world_point("clock ends");
	return 0;
}

WRAP(int, gettimeofday, (struct timeval * tv, void *zone))
{
	(void)zone;
	tv->tv_sec = (time_t)(world_now / SECOND);
	tv->tv_usec = (suseconds_t)(world_now % SECOND / US);
	return 0;
}

WRAP(time_t, time, (time_t * t))
{
	(void)t;
	return (time_t)(world_now / SECOND);
}

WRAP(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old))
{
	(void)how, (void)set, (void)old;
	return 0;
}
