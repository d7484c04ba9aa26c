/*
 * sandbox_linux: what the files behind sandbox_os_confine share.
 */
#ifndef SERVER_PROCESS_SANDBOX_LINUX_H
#define SERVER_PROCESS_SANDBOX_LINUX_H

struct os_confine;

/*
 * capabilities(7): none is left, or with keep CAP_FOWNER if it was there; root keeps all.
 * Programs inherit none.  0 or -errno.
 */
int capability_limit(bool keep);

/* Builds with sanitizers: these look at the process, also at its end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED \
	(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/*
 * seccomp(2): only the system calls that serving needs, by number and arguments.
 * seccomp_probe: are there filters?  0 or -errno: nothing is held back.
 */
int seccomp_probe(void);
int seccomp_enter(const struct os_confine *);

/* Does it refuse what it should? */
bool seccomp_holds(void);

/* landlock(7): its version, or -errno; then only what lies below the descriptors. */
int landlock_version(void);
int landlock_enter(const struct os_confine *, int version);

#endif
