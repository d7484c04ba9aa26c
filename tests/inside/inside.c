/*
 * inside: see inside.h.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/inside/inside.h"

struct inside {
	struct pw_task in_task;
	struct worker *in_worker;
	int in_root;		/* descriptors of directories */
	const char *in_outside; /* a path */
	char in_text[1900];
};

int
inside_root(const struct inside *in)
{
	return in->in_root;
}

static int
result(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : -1;
}

/* seccomp sees the flags of openat, but not of this: Landlock does. */
static int
open_how(int dirfd, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags};

	if ((flags & O_CREAT) != 0)
		how.mode = 0600;
	return result(
	    (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how)));
}

static const char *
outside(const struct inside *in, const char *name)
{
	static _Thread_local char path[4096];

	snprintf(path, sizeof(path), "%s/%s", in->in_outside, name);
	return path;
}

static int
read_root(struct inside *in)
{
	return open_how(in->in_root, "index.html", O_RDONLY);
}

static int
read_outside(struct inside *in)
{
	return result(open(outside(in, "secret"), O_RDONLY | O_CLOEXEC));
}

static int
write_outside(struct inside *in)
{
	return open_how(AT_FDCWD, outside(in, "secret"), O_WRONLY);
}

/* Nobody looks for O_TRUNC in the flags of this but Landlock, since version 3. */
static int
empty_root(struct inside *in)
{
	return open_how(in->in_root, "victim", O_RDONLY | O_TRUNC);
}

static int
create_outside(struct inside *in)
{
	return open_how(AT_FDCWD, outside(in, "new"), O_WRONLY | O_CREAT);
}

static int
write_root(struct inside *in)
{
	return open_how(in->in_root, "index.html", O_WRONLY);
}

static int
create_root(struct inside *in)
{
	return open_how(in->in_root, "new", O_WRONLY | O_CREAT);
}

static int
openat_root(struct inside *in)
{
	return result(openat(in->in_root, "index.html", O_RDWR | O_CLOEXEC));
}

static int
truncate_outside(struct inside *in)
{
	return truncate(outside(in, "secret"), 1);
}

/* EINVAL if it may be tried: it is not open for writing. */
static int
cut(struct inside *in)
{
	return ftruncate(in->in_root, 0);
}

static int
rename_root(struct inside *in)
{
	return renameat(in->in_root, "victim", in->in_root, "victim");
}

static int
link_root(struct inside *in)
{
	return linkat(in->in_root, "victim", in->in_root, "linked", 0) == 0
		   ? unlinkat(in->in_root, "linked", 0)
		   : -1;
}

static int
mkdir_root(struct inside *in)
{
	return mkdirat(in->in_root, "made", 0700) == 0
		   ? unlinkat(in->in_root, "made", AT_REMOVEDIR)
		   : -1;
}

static int
chmod_root(struct inside *in)
{
	return fchmodat(in->in_root, "index.html", 0644, 0);
}

/* What create_root has made, or else what was there. */
static int
unlink_root(struct inside *in)
{
	return unlinkat(in->in_root,
	    faccessat(in->in_root, "new", F_OK, 0) == 0 ? "new" : "victim", 0);
}

/* Of a program that is not there: ENOENT if it may be tried. */
static int
exec(struct inside *in)
{
	char *none[] = {NULL};

	return execve(outside(in, "none"), none, none);
}

static int
become_root(struct inside *in)
{
	(void)in;
	return (int)syscall(SYS_setuid, 0);
}

static int
ring(struct inside *in)
{
	char params[256] = {0};

	(void)in;
	return result((int)syscall(SYS_io_uring_setup, 1, params));
}

static int
ring_open(struct inside *in)
{
	return inside_ring_open(outside(in, "secret"));
}

static int
ring_tcp(struct inside *in)
{
	(void)in;
	return inside_ring_connect(AF_INET, SOCK_STREAM, NULL);
}

static int
ring_udp(struct inside *in)
{
	(void)in;
	return inside_ring_connect(AF_INET, SOCK_DGRAM, NULL);
}

/* ENOENT if it may be tried. */
static int
ring_unix(struct inside *in)
{
	return inside_ring_connect(AF_UNIX, SOCK_STREAM, outside(in, "none"));
}

static int
run_memory(struct inside *in)
{
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)in;
	return map == MAP_FAILED ? -1 : munmap(map, 4096);
}

static const struct {
	const char *try_name;
	int (*try_it)(struct inside *);
} tries[] = {
    {"read_root", read_root},
    {"read_outside", read_outside},
    {"write_outside", write_outside},
    {"create_outside", create_outside},
    {"write_root", write_root},
    {"openat_root", openat_root},
    {"create_root", create_root},
    {"empty_root", empty_root},
    {"truncate", truncate_outside},
    {"cut", cut},
    {"rename", rename_root},
    {"link", link_root},
    {"mkdir", mkdir_root},
    {"chmod", chmod_root},
    {"unlink", unlink_root},
    {"exec", exec},
    {"fork", inside_fork},
    {"connect", inside_connect},
    {"bind", inside_bind},
    {"fastopen_to", inside_fastopen_to},
    {"fastopen_msg", inside_fastopen_msg},
    {"option", inside_option},
    {"option_twin", inside_option_twin},
    {"option_tcp", inside_option_tcp},
    {"ptrace", inside_ptrace},
    {"kill", inside_kill},
    {"tgkill", inside_tgkill},
    {"schedule", inside_schedule},
    {"affinity", inside_affinity},
    {"limit", inside_limit},
    {"setuid", become_root},
    {"io_uring", ring},
    {"ring_open", ring_open},
    {"ring_tcp", ring_tcp},
    {"ring_udp", ring_udp},
    {"ring_unix", ring_unix},
    {"run_memory", run_memory},
    {"ask_theirs", inside_ask_theirs},
    {"chmod_theirs", inside_chmod_theirs},
    {"utimes_theirs", inside_utimes_theirs},
    {"acl_theirs", inside_acl_theirs},
    {"flags_theirs", inside_flags_theirs},
    {"noatime_theirs", inside_noatime_theirs},
    {"pageout_theirs", inside_pageout_theirs},
    {"link_theirs", inside_link_theirs},
    {"rename_theirs", inside_rename_theirs},
    {"unlink_theirs", inside_unlink_theirs},
};

static void
try_all(struct inside *in)
{
	size_t i, len = 0;
	int got;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		errno = 0;
		got = tries[i].try_it(in);
		len += (size_t)snprintf(in->in_text + len,
		    sizeof(in->in_text) - len, " %s=%s", tries[i].try_name,
		    got == 0 ? "ok" : strerrorname_np(errno));
	}
}

static int
try_on_pool(struct pw_task *tk)
{
	try_all((struct inside *)(void *)tk);
	return 0;
}

static void
pool_tried(struct pw_waiter *w)
{
	struct inside *in =
	    (struct inside *)(void *)((char *)w -
				      offsetof(struct pw_task, tk_waiter));

	log_notice(
	    in->in_worker->wk_service.svc_log, "inside pool:%s", in->in_text);
	free(in);
}

static void
suppress(struct worker *wk)
{
	uint64_t kind;

	if (getenv("PAGEWISE_SUPPRESSED") == NULL)
		return;
	for (kind = 0; kind < TOLD_KINDS; kind++)
		wk->wk_service.svc_told[kind].lim_left = kind + 1;
}

void
inside_try(struct worker *wk)
{
	const char *path = getenv("PAGEWISE_INSIDE");
	struct inside *in;

	suppress(wk);
	if (path == NULL)
		return;
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		return;
	in->in_worker = wk;
	in->in_root = pw_root_fd(wk->wk_service.svc_roots[0]);
	in->in_outside = path;
	try_all(in);
	log_notice(wk->wk_service.svc_log, "inside worker:%s", in->in_text);
	in->in_task.tk_work = try_on_pool;
	in->in_task.tk_waiter.wt_done = pool_tried;
	if (pw_task_run(wk->wk_service.svc_loop,
		pw_root_dev(wk->wk_service.svc_roots[0]), &in->in_task) != 0)
		free(in);
}
