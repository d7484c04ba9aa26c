/*
 * walk: all files of a tree.  No symbolic link is followed, and every step is taken from an
 * open directory: what is renamed meanwhile leads nowhere else.
 */
#ifndef SERVER_TOOL_WALK_H
#define SERVER_TOOL_WALK_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Counted; open as long as somebody has a reference. */
struct walk_dir {
	DIR *wd_dir; /* the walk's */
	int wd_fd;   /* everybody's */
	atomic_uint wd_refs;
	char *wd_path; /* for messages */
};

struct walk_file {
	struct walk_dir *wf_dir; /* whoever keeps it takes a reference */
	const char *wf_name;
};

struct walk {
	void *wk_arg;
	/* A name that is not "." or ".." and no directory; links are left out. */
	void (*wk_file)(void *arg, const struct walk_file *);
	/* Is this directory to be entered? */
	bool (*wk_enter)(void *arg, const char *name);
	bool (*wk_stopped)(void);
	/* name NULL: the directory itself. */
	void (*wk_failed)(
	    void *arg, const struct walk_dir *, const char *name, int error);
};

/* path itself may be a link.  Files may be gone, or be something else, once they are opened. */
void walk_tree(const struct walk *, const char *path);

void walk_ref(struct walk_dir *);
void walk_unref(struct walk_dir **);

#endif
