/*
 * sandbox: see sandbox.h.
 */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/process/cure.h"
#include "server/process/roots.h"
#include "server/process/sandbox.h"

#define NOT_ALL "sandbox: incomplete on this kernel: "
#define GIVEN_UP                                                              \
	"keep_fowner: cannot keep CAP_FOWNER: %s; residency checks of other " \
	"users' files take more CPU time"

static const char *
sandbox_cure(int error)
{
	const char *cure = cure_of(error);

	return cure[0] != '\0' ? cure : "; report this, or set sandbox = off";
}

static int
sandbox_fail(const char *what, const char *which, const char *remedy)
{
	log_error(NULL, "cannot %s %s: %s%s", what, which, strerror(errno),
	    remedy[0] != '\0' ? remedy : cure_of(-errno));
	return -1;
}

/* Checks the configured user.  Call without root, because only root can change its user. */
static int
sandbox_check_user(const struct conf *conf)
{
	if (conf->conf_chroot != NULL) {
		log_error(
		    NULL, "chroot needs root: start as root, or remove chroot");
		return -1;
	}
	if (conf->conf_user != NULL && conf->conf_uid != geteuid()) {
		log_error(NULL,
		    "user: cannot switch to %s: not started as root; start as "
		    "%s%s, or remove user",
		    conf->conf_user, conf->conf_uid == 0 ? "" : "root or as ",
		    conf->conf_user);
		return -1;
	}
	if (conf->conf_group != NULL && conf->conf_gid != getegid()) {
		log_error(NULL,
		    "group: cannot switch to %s: not started as root; start as "
		    "root or with that group, or remove group",
		    conf->conf_group);
		return -1;
	}
	return 0;
}

static bool
sandbox_is_for_good(const struct conf *conf)
{
	uid_t ruid, euid, suid, uid = conf->conf_uid;
	gid_t rgid, egid, sgid, gid = conf->conf_gid;

	if (getresuid(&ruid, &euid, &suid) == -1 ||
	    getresgid(&rgid, &egid, &sgid) == -1)
		return false;
	if (ruid != uid || euid != uid || suid != uid || rgid != gid ||
	    egid != gid || sgid != gid)
		return false;
	return uid == 0 || setuid(0) == -1;
}

/* Returns the cure for an error of the system calls in sandbox_change_user. */
static const char *
sandbox_cure_user(int error)
{
	if (error == EPERM && os_one_user())
		return ": this user namespace has only one user; set user = "
		       "root (--user root), who has no rights outside of it";
	if (error == EPERM)
		return "; allow CAP_SETUID and CAP_SETGID, or start as that "
		       "user";
	if (error == EINVAL)
		return ": this user namespace lacks the user or one of its "
		       "groups; map them, or set user = root (--user root), "
		       "who has no rights outside of it";
	return cure_of(-error);
}

static int
sandbox_change_user(const struct conf *conf)
{
	uid_t uid = conf->conf_uid;
	gid_t gid = conf->conf_gid;
	pid_t parent = getppid();

	/* In a container, root may lack the right to make the calls below. */
	if (uid == 0 && conf->conf_group == NULL)
		return 0;
	if (setgroups(conf->conf_ngroups, conf->conf_groups) == -1 ||
	    setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1)
		return sandbox_fail("switch to user", conf->conf_user,
		    sandbox_cure_user(errno));
	/*
	 * The change of the user has cancelled the signal that kills this process when the master
	 * exits.
	 */
	if (os_follow_parent(parent) == -ESRCH)
		return -1;
	if (sandbox_is_for_good(conf))
		return 0;
	log_error(NULL,
	    "user %s can become root again: the server process exits; set user "
	    "to another account",
	    conf->conf_user);
	return -1;
}

static int
sandbox_change(const struct conf *conf, bool again)
{
	const char *root = conf->conf_chroot;

	if (!conf->conf_user_chosen && !again)
		log_notice(NULL, "started as root: switching to user nobody "
				 "(set user to change this)");
	if (root != NULL && (chroot(root) == -1 || chdir("/") == -1))
		return sandbox_fail("chroot to", root,
		    errno == EPERM ? "; allow CAP_SYS_CHROOT, or remove chroot"
				   : "");
	return sandbox_change_user(conf);
}

/*
 * Calls f for the settings of each site and location until a call fails.  Returns the last result
 * of f.
 */
static int
sandbox_each_settings(
    const struct conf *conf, int (*f)(const struct settings *))
{
	const struct site *site;
	size_t i, j;
	int no = 0;

	for (i = 0; no == 0 && i < conf->conf_nsites; i++) {
		site = &conf->conf_sites[i];
		no = f(&site->site_set);
		for (j = 0; no == 0 && j < site->site_nlocations; j++)
			no = f(&site->site_locations[j].loc_set);
	}
	return no;
}

static int
sandbox_is_async(const struct settings *set)
{
	return set->set_send_path == pw_send_path("uring") ||
	       set->set_send_path == pw_send_path("ring") ||
	       set->set_send_path == pw_send_path("aio");
}

/* Checks the send path for this user, which may lack rights that root had. */
static int
sandbox_probe(const struct settings *set)
{
	const char *why = NULL;

	if (pw_send_probe(set->set_send_path, &why) == 0)
		return 0;
	log_error(NULL,
	    "send_path: not available to this user: %s; set send_path = auto",
	    why != NULL ? why : "unknown cause");
	return -1;
}

/* Returns true if the access log is a file, which the server may have to truncate (sink.h). */
static bool
sandbox_opens_log(const struct conf *conf)
{
	return conf->conf_access_log != NULL &&
	       strcmp(conf->conf_access_log, "-") != 0;
}

/*
 * Prepares the drop of capabilities.  Sets *keep to true if CAP_FOWNER can be kept.  Logs a missing
 * CAP_FOWNER only for root, because other users do not expect to have it.
 */
static int
sandbox_begin(const struct conf *conf, bool *keep)
{
	int result = sandbox_os_begin(conf->conf_keep_fowner);

	*keep = conf->conf_keep_fowner && result == 0;
	if (result < 0) {
		log_error(NULL, "cannot enter the sandbox: capabilities: %s%s",
		    strerror(-result), sandbox_cure(result));
		return -1;
	}
	if (result == 1 && geteuid() == 0)
		log_notice(NULL, GIVEN_UP,
		    "root lacks this capability, or securebits forbid it");
	return 0;
}

static int
sandbox_confine(
    const struct conf *conf, struct pw_root *const *roots, bool keep)
{
	struct os_confine oc = {
	    .oc_async = sandbox_each_settings(conf, sandbox_is_async) != 0,
	    .oc_cuts = sandbox_opens_log(conf),
	    .oc_tier = conf->conf_tier != NULL,
	    .oc_ktls = conf_has_tls(conf) && conf->conf_ktls == TLS_KTLS_ON,
	    .oc_keep = keep,
	};
	int *fds = calloc(conf->conf_nroots, sizeof(*fds));
	char missing[512];
	size_t i;
	int error;

	if (fds == NULL)
		return sandbox_fail("enter", "the sandbox", "");
	for (i = 0; i < conf->conf_nroots; i++)
		fds[i] = pw_root_fd(roots[i]);
	oc.oc_roots = fds;
	oc.oc_nroots = conf->conf_nroots;
	error = sandbox_os_confine(&oc, missing, sizeof(missing));
	free(fds);
	if (error < 0) {
		log_error(NULL, "cannot enter the sandbox: %s: %s%s", missing,
		    strerror(-error), sandbox_cure(error));
		return -1;
	}
	if (error == 1)
		log_warn(NULL, NOT_ALL "%s", missing);
	else if (missing[0] != '\0')
		log_notice(NULL, NOT_ALL "%s", missing);
	if (oc.oc_gave_up != NULL)
		log_notice(NULL, GIVEN_UP, oc.oc_gave_up);
	return 0;
}

/*
 * Checks that the new user can read the roots.  The process opened the roots as the user root, and
 * the new user may be unable to traverse their paths.
 */
static int
sandbox_check_roots(const struct conf *conf, struct pw_root *const *roots)
{
	const char *who =
	    conf->conf_user != NULL ? conf->conf_user : "that started pagewise";
	size_t i;
	int fd;

	for (i = 0; i < conf->conf_nroots; i++) {
		fd = pw_root_open_dir(roots[i], ".");
		if (fd < 0) {
			log_error(NULL,
			    "root: %s: user %s cannot read it: %s; chmod o+rx "
			    "it, or set user",
			    conf->conf_roots[i], who, strerror(-fd));
			return -1;
		}
		close(fd);
	}
	return 0;
}

int
sandbox_enter(const struct conf *conf, struct pw_root *const *roots, bool again)
{
	bool keep = false;

	if (conf->conf_sandbox && sandbox_begin(conf, &keep) == -1)
		return -1;
	if ((geteuid() == 0 ? sandbox_change(conf, again)
			    : sandbox_check_user(conf)) == -1)
		return -1;
	/*
	 * Forbids core files, because they would contain private keys.  The change of the user
	 * resets this setting, so this call follows the change.
	 */
	if (conf_has_tls(conf) && !conf->conf_traceable) {
		int error = os_forbid_cores();

		if (error != 0)
			log_warn(NULL,
			    "cannot disable core dumps, which would contain "
			    "TLS keys: %s; set ulimit -c 0",
			    strerror(-error));
	}
	if (conf->conf_sandbox && sandbox_confine(conf, roots, keep) == -1)
		return -1;
	if (sandbox_check_roots(conf, roots) == -1)
		return -1;
	return sandbox_each_settings(conf, sandbox_probe);
}

static int
sandbox_try_roots(const struct conf *conf)
{
	struct pw_root **roots = NULL;

	if (roots_open(conf, &roots) == -1 || sandbox_change_user(conf) == -1)
		return -1;
	return sandbox_check_roots(conf, roots);
}

/* Makes the checks in a child process, because a change of the user is permanent. */
int
sandbox_try(const struct conf *conf)
{
	int status;
	pid_t pid, parent = getpid();

	if (geteuid() != 0)
		return 0;
	pid = fork();
	if (pid == 0)
		_exit(os_follow_parent(parent) != -ESRCH &&
			      sandbox_try_roots(conf) == 0
			  ? 0
			  : 1);
	if (pid == -1 || waitpid(pid, &status, 0) == -1)
		return sandbox_fail(
		    "check the roots", "as the configured user", "");
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == 0 ? 0 : -1;
	log_error(NULL,
	    "cannot check the roots as the configured user: signal %d "
	    "killed the process that checks them",
	    WTERMSIG(status));
	return -1;
}
