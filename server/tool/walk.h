/*
 * walk: all files of a tree.  No symbolic link is followed, and every step is taken from an
 * open directory: what is renamed meanwhile leads nowhere else.  A level of the tree takes one
 * descriptor and one name.
 */
#ifndef SERVER_TOOL_WALK_H
#define SERVER_TOOL_WALK_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Levels below the directory that is given: no path of more is short enough for a lookup. */
#define WALK_DEPTH 2048

/* Counted; open as long as somebody has a reference. */
struct walk_dir {
	DIR *wd_dir; /* the walk's */
	int wd_fd;   /* everybody's */
	atomic_uint wd_refs;
	struct walk_dir
	    *wd_parent; /* a reference; NULL of the one that was given */
	unsigned wd_depth;
	char wd_name[]; /* as it was given, or in its parent */
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
	/* name NULL: the directory itself.  error: for walk_error. */
	void (*wk_failed)(
	    void *arg, const struct walk_dir *, const char *name, int error);
};

/*
 * path itself may be a link, or lead over links; but not over one in a directory that belongs to
 * another user than root and the caller, or in which others may write (given.h).  Files may be
 * gone, or be something else, once they are opened.
 */
void walk_tree(const struct walk *, const char *path);

/* Why a directory was not walked, for a message. */
const char *walk_error(int error);

void walk_ref(struct walk_dir *);
void walk_unref(struct walk_dir **);

/*
 * Writes "/DIR/NAME" as seen from the directory that was given.  Returns the length, or
 * -ENAMETOOLONG.
 */
long walk_path(const struct walk_file *, char *path, size_t size);

/*
 * Prints the whole path; name may be NULL.  A byte that is not printable ASCII, or is a backslash,
 * becomes \xHH, as in the access log: nothing that a name holds reaches the terminal.
 */
void walk_print(FILE *, const struct walk_dir *, const char *name);

#endif
