/*
 * Counts the names in a directory on a disk thread.
 */
#include <dirent.h>
#include <errno.h>
#include <pagewise.h>
#include <unistd.h>

struct count {
	struct pw_task task; /* first member, since it is cast */
	struct pw_root *root;
	const char *path;
	long names;
	void (*counted)(struct count *, int error);
};

/* Runs on a disk thread. */
static int
work(struct pw_task *tk)
{
	struct count *c = (struct count *)tk;
	int fd = pw_root_open_dir(c->root, c->path);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		return fd;
	if (dir == NULL) {
		close(fd);
		return -ENOMEM;
	}
	for (c->names = 0; readdir(dir) != NULL; c->names++)
		;
	closedir(dir);
	return 0;
}

/* Runs on the loop's thread. */
static void
on_done(struct pw_waiter *w)
{
	struct count *c = (struct count *)w;

	c->counted(c, w->wt_error);
}

int
count_names(struct pw_loop *loop, struct count *c)
{
	c->task =
	    (struct pw_task){.tk_waiter.wt_done = on_done, .tk_work = work};
	return pw_task_run(loop, pw_root_dev(c->root), &c->task);
}
