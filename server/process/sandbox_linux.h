/* sandbox_linux: declarations that the Linux files of the sandbox share. */
#ifndef SERVER_PROCESS_SANDBOX_LINUX_H
#define SERVER_PROCESS_SANDBOX_LINUX_H

struct os_confine;

/*
 * Drops all capabilities(7).  Keeps CAP_FOWNER if `keep` is true and the process has it.  Root
 * keeps all its capabilities.  Programs that the process executes inherit none.  Returns 0 or
 * -errno.
 */
int capability_limit(bool keep);

/* True in builds with a sanitizer, which inspects the process even while it exits. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED \
	(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/*
 * seccomp_enter restricts the process to the system calls that serving needs, and also checks some
 * arguments (seccomp(2)).  seccomp_enter returns 0 or -errno.  seccomp_probe restricts nothing, and
 * returns 0 if the kernel supports filters, else -errno.
 */
int seccomp_probe(void);
int seccomp_enter(const struct os_confine *);

/* Returns true if the filter refuses a forbidden call. */
bool seccomp_holds(void);

/*
 * landlock_enter restricts opens to files below the roots and a few others (landlock(7)), and
 * returns 0 or -errno.  landlock_version returns the kernel's version of Landlock, or -errno.
 */
int landlock_version(void);
int landlock_enter(const struct os_confine *, int version);

#endif
