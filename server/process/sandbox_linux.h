/*
 * sandbox_linux: what the files behind sandbox_os_confine share.
 */
#ifndef SERVER_PROCESS_SANDBOX_LINUX_H
#define SERVER_PROCESS_SANDBOX_LINUX_H

struct os_confine;

/*
 * Drops all capabilities(7), except CAP_FOWNER if keep is true and the process has it; root keeps
 * all.  Executed programs inherit none.  Returns 0 or -errno.
 */
int capability_limit(bool keep);

/* Builds with sanitizers, which inspect the process, even while it exits. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED \
	(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/*
 * Restrict the process by seccomp(2) to the system calls that serving needs, by number and
 * arguments.  seccomp_probe returns 0 if the kernel has filters, else -errno, and restricts
 * nothing.
 */
int seccomp_probe(void);
int seccomp_enter(const struct os_confine *);

/* Returns true if the filter refuses a forbidden call. */
bool seccomp_holds(void);

/*
 * Restrict opens by landlock(7) to files below the descriptors.  landlock_version returns the
 * version, or -errno.
 */
int landlock_version(void);
int landlock_enter(const struct os_confine *, int version);

#endif
