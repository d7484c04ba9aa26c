/*
 * seccomp: restricts the process to some system calls, with seccomp(2) and libseccomp(3).
 *
 * A forbidden call fails with ENOSYS and does not kill the process.  So a newer libc or library
 * that tries a newer call falls back to the older call, as on an older kernel.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/process/sandbox_linux.h"

#ifndef PAGEMAP_SCAN /* Linux 6.7, newer than the headers of Debian 12 */
#define PAGEMAP_SCAN _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 96)
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR)

/*
 * Calls allowed with any arguments.  A call that the processor or libseccomp does not know is
 * skipped.
 */
static const char *const calls[] = {
    /* open descriptors */
    "read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "close",
    "lseek", "_llseek", "dup", "pipe", "pipe2", "fstat", "fstat64", "fstatfs",
    "fstatfs64", "newfstatat", "fstatat64", "statx", "getdents64", "sendfile",
    "sendfile64", "splice", "vmsplice", "fgetxattr",
    /* files below the roots: Landlock checks the path */
    "openat2",
    /* page cache */
    "fadvise64", "fadvise64_64", "arm_fadvise64_64", "readahead", "mincore",
    "mlock", "mlock2", "munlock",
    /* connections */
    "accept", "accept4", "recvfrom", "recvmsg", "recv", "shutdown",
    "getsockopt", "getsockname", "getpeername",
    /* events */
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "poll", "ppoll", "ppoll_time64", "eventfd2", "timerfd_create",
    "timerfd_settime", "timerfd_gettime", "timerfd_settime64",
    /* memory */
    "brk", "munmap", "mremap",
    /* threads */
    "futex", "futex_time64", "set_robust_list", "rseq", "gettid", "sched_yield",
    "getcpu", "exit", "exit_group",
    /* signals */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn",
    "rt_sigtimedwait", "rt_sigtimedwait_time64", "sigaltstack",
    "restart_syscall",
    /* time and identity */
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_nanosleep",
    "clock_nanosleep_time64", "nanosleep", "gettimeofday", "time", "getrandom",
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage",
    "getrlimit", "ugetrlimit", "sysinfo"};

/* Numbers of calls that the libseccomp of Debian 12 does not know. */
static const int numbers[] = {451 /* cachestat */};

static const char *const async_calls[] = {
    "io_uring_setup", "io_uring_enter", "io_uring_register"};

/* Calls that truncate a log.  Only logs are open for writing. */
static const char *const cut_calls[] = {"ftruncate", "ftruncate64"};

/* Calls on the open files of a tier, and readlinkat, which returns the paths of other open files. */
static const char *const tier_calls[] = {"pwrite64", "flock", "readlinkat"};

/*
 * Calls that sanitizers need.  LeakSanitizer clones a process that stops all threads, and a report
 * contains function names.
 */
static const char *const sanitizer_calls[] = {"clone", "clone3", "openat",
    "open", "readlink", "readlinkat", "ptrace", "wait4", "process_vm_readv",
    "prctl", "personality", "ioctl", "fcntl", "getdents", "stat", "lstat",
    "sched_getparam", "sched_getaffinity", "getpgrp", "uname", "setrlimit",
    "prlimit64", "kill", "tgkill", "mmap", "mprotect", "access", "faccessat",
    "dup2", "dup3", "socket", "fork", "vfork", "execve", "pselect6",
    "arch_prctl"};

/* Calls allowed for some values of one or two arguments. */
static const struct {
	const char *arg_call;
	unsigned arg_n;
	struct scmp_arg_cmp arg_are[2];
} args[] = {
#define IS(arg, value)                                 \
	{                                              \
		arg, SCMP_CMP_EQ, (uint64_t)(value), 0 \
	}
/* Rule for a call: one argument has this value after a mask. */
#define MASKED(call, arg, mask, value)                                     \
	{                                                                  \
		call, 1,                                                   \
		{                                                          \
			{                                                  \
				arg, SCMP_CMP_MASKED_EQ, (uint64_t)(mask), \
				    (uint64_t)(value)                      \
			}                                                  \
		}                                                          \
	}
#define EQUAL(call, arg, value)        \
	{                              \
		call, 1,               \
		{                      \
			IS(arg, value) \
		}                      \
	}
#define BOTH(call, arg1, value1, arg2, value2)             \
	{                                                  \
		call, 2,                                   \
		{                                          \
			IS(arg1, value1), IS(arg2, value2) \
		}                                          \
	}
    /* opening for reading only */
    MASKED("openat", 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
    MASKED("open", 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
    /*
     * sending without MSG_FASTOPEN, because MSG_FASTOPEN connects and Landlock does not check such
     * a connect
     */
    MASKED("sendto", 3, ~(uint32_t)SEND_FLAGS, 0),
    MASKED("sendmsg", 2, ~(uint32_t)SEND_FLAGS, 0),
    MASKED("send", 3, ~(uint32_t)SEND_FLAGS, 0),
    /* creating threads, but no processes */
    MASKED("clone", 0, CLONE_VM | CLONE_THREAD, CLONE_VM | CLONE_THREAD),
    /* memory without execute permission */
    MASKED("mmap", 2, PROT_EXEC, 0),
    MASKED("mmap2", 2, PROT_EXEC, 0),
    MASKED("mprotect", 2, PROT_EXEC, 0),
    /*
     * all advice except 20 and 21: with CAP_FOWNER, MADV_COLD and MADV_PAGEOUT can evict pages of
     * files
     */
    MASKED("madvise", 2, UINT32_MAX - 15, 0),
    MASKED("madvise", 2, UINT32_MAX - 3, 16),
    MASKED("madvise", 2, UINT32_MAX - 1, 22),  /* MADV_POPULATE_* */
    MASKED("madvise", 2, UINT32_MAX - 1, 102), /* MADV_GUARD_*: stacks */
    /* for this process or thread only; limits can be read, but not set */
    EQUAL("sched_getaffinity", 0, 0),
    EQUAL("sched_setattr", 0, 0),
    EQUAL("sched_setscheduler", 0, 0),
    BOTH("setpriority", 0, PRIO_PROCESS, 1, 0),
    BOTH("getpriority", 0, PRIO_PROCESS, 1, 0),
    BOTH("prlimit64", 0, 0, 2, 0),
    /* SO_LINGER makes a close a reset; listen_listen resets the option on listening sockets */
    BOTH("setsockopt", 1, SOL_SOCKET, 2, SO_LINGER),
    /* for the key tcp_memory */
    BOTH("setsockopt", 1, IPPROTO_TCP, 2, TCP_NOTSENT_LOWAT),
    EQUAL("prctl", 0, PR_SET_NAME),
    BOTH("prctl", 0, PR_SET_PDEATHSIG, 1, 0),
    EQUAL("ioctl", 1, FIONREAD),
    EQUAL("ioctl", 1, TIOCOUTQ),      /* equals SIOCOUTQ */
    EQUAL("ioctl", 1, TCGETS),	      /* for isatty(3) */
    EQUAL("ioctl", 1, PAGEMAP_SCAN),  /* for os_fetch_folio */
    EQUAL("ioctl", 1, FS_IOC_FIEMAP), /* for os_place */
    EQUAL("fcntl", 1, F_SETFD),	      /* for fdopendir(3) */
    EQUAL("fcntl", 1, F_GETFL),
    EQUAL("fcntl", 1, F_DUPFD_CLOEXEC),
    EQUAL("fcntl", 1, F_SETPIPE_SZ),
    EQUAL("fcntl64", 1, F_SETFD),
    EQUAL("fcntl64", 1, F_GETFL),
    EQUAL("fcntl64", 1, F_DUPFD_CLOEXEC),
    EQUAL("fcntl64", 1, F_SETPIPE_SZ),
};

static int
seccomp_allow_ktls(scmp_filter_ctx ctx)
{
	int error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt),
	    2, SCMP_A1(SCMP_CMP_EQ, IPPROTO_TCP),
	    SCMP_A2(SCMP_CMP_EQ, TCP_ULP));

	return error != 0
		   ? error
		   : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt),
			 1, SCMP_A1(SCMP_CMP_EQ, SOL_TLS));
}

static int
seccomp_allow_calls(scmp_filter_ctx ctx, const char *const *names, size_t n)
{
	size_t i;
	int number, error;

	for (i = 0; i < n; i++) {
		number = seccomp_syscall_resolve_name(names[i]);
		if (number == __NR_SCMP_ERROR)
			continue;
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
		if (error != 0)
			return error;
	}
	return 0;
}

static int
seccomp_allow_numbers(scmp_filter_ctx ctx)
{
	size_t i;
	int error = 0;

	for (i = 0; error == 0 && i < COUNT(numbers); i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, numbers[i], 0);
	return error;
}

static int
seccomp_allow_args(scmp_filter_ctx ctx)
{
	size_t i;
	int number, error;

	for (i = 0; i < COUNT(args); i++) {
		number = seccomp_syscall_resolve_name(args[i].arg_call);
		if (number == __NR_SCMP_ERROR)
			continue;
		error = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number,
		    args[i].arg_n, args[i].arg_are);
		if (error != 0)
			return error;
	}
	/* for abort(3) */
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
	    SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid()));
}

/*
 * Refuses clone3 with ENOSYS, so that libc falls back to clone.  Ignores EACCES and EEXIST, which
 * mean that the filter refuses unlisted calls with ENOSYS anyway, or that it allows clone3 already.
 */
static int
seccomp_forbid_softly(scmp_filter_ctx ctx)
{
	int error =
	    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	return error == -EACCES || error == -EEXIST ? 0 : error;
}

static int
seccomp_allow_all(scmp_filter_ctx ctx, const struct os_confine *oc)
{
	int error;

	error = seccomp_allow_calls(ctx, calls, COUNT(calls));
	if (error == 0)
		error = seccomp_allow_numbers(ctx);
	if (error == 0 && oc->oc_async)
		error =
		    seccomp_allow_calls(ctx, async_calls, COUNT(async_calls));
	if (error == 0 && oc->oc_cuts)
		error = seccomp_allow_calls(ctx, cut_calls, COUNT(cut_calls));
	if (error == 0 && oc->oc_tier)
		error = seccomp_allow_calls(ctx, tier_calls, COUNT(tier_calls));
	/*
	 * Allows whole calls before it adds rules for arguments, because a call that is allowed as
	 * a whole needs no such rules.
	 */
	if (error == 0 && SANITIZED)
		error = seccomp_allow_calls(
		    ctx, sanitizer_calls, COUNT(sanitizer_calls));
	if (error == 0 && oc->oc_ktls)
		error = seccomp_allow_ktls(ctx);
	if (error == 0)
		error = seccomp_allow_args(ctx);
	if (error == 0)
		error = seccomp_forbid_softly(ctx);
	return error;
}

/* Returns true in a debug build if the environment sets the variable.  For tests. */
static bool
seccomp_is_wanted(const char *variable)
{
#ifdef PW_DEBUG
	return getenv(variable) != NULL;
#else
	(void)variable;
	return false;
#endif
}

/*
 * Returns true if a forbidden call must kill the process.  Tests use this to find calls that the
 * lists lack.
 */
static bool
seccomp_is_strict(void)
{
	return seccomp_is_wanted("PAGEWISE_STRICT");
}

/* Passes NULL as the filter, so a kernel that supports filters fails with EFAULT. */
int
seccomp_probe(void)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == 0 ||
	    errno == EFAULT)
		return 0;
	/* EINVAL means that the kernel does not support filters. */
	return errno == EINVAL ? -ENOSYS : -errno;
}

/*
 * Loads the filter.  Disables the mitigation of Spectre 4, which protects programs that run foreign
 * code: kernels before 5.16 enable it with each filter.  The kernel caches calls that are allowed
 * with any arguments; for other calls the filter is a binary tree rather than a list.
 */
int
seccomp_enter(const struct os_confine *oc)
{
	scmp_filter_ctx ctx;
	int error;

	ctx = seccomp_init(seccomp_is_strict() ? SCMP_ACT_KILL_PROCESS
					       : SCMP_ACT_ERRNO(ENOSYS));
	if (ctx == NULL)
		return -ENOMEM;
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	error = seccomp_attr_set(
	    ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/*
	 * Applies the filter to all threads, because ThreadSanitizer has already started a thread.
	 */
	if (error == 0)
		error = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (error == 0)
		error = seccomp_allow_all(ctx, oc);
	if (error == 0 && !seccomp_is_wanted("PAGEWISE_SECCOMP_IDLE"))
		error = seccomp_load(ctx);
	seccomp_release(ctx);
	return error;
}

/*
 * Tests the filter with fchmod(-1).  ENOSYS means that the filter refused the call; EBADF means
 * that the kernel ran it.
 */
bool
seccomp_holds(void)
{
	return seccomp_is_strict() || (fchmod(-1, 0) == -1 && errno == ENOSYS);
}
