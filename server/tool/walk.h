/*
 * walk: visits all files of a tree.  Follows no symbolic link, and opens each entry relative to the
 * open directory that contains it, so that a concurrent rename cannot redirect the walk.  Each
 * level of the tree needs one descriptor and the memory of one name.
 */
#ifndef SERVER_TOOL_WALK_H
#define SERVER_TOOL_WALK_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Maximum number of directory levels below the given directory.  Deeper paths would be too long for
 * a lookup.
 */
#define WALK_DEPTH 2048

/* A directory with a reference count, open while it has references. */
struct walk_dir {
	DIR *wd_dir; /* stream, used only by the walking thread */
	int wd_fd;   /* descriptor of the stream, used by all threads */
	atomic_uint wd_refs;
	/* parent, with a reference; NULL for the given directory */
	struct walk_dir *wd_parent;
	unsigned wd_depth;
	char wd_name[]; /* path as given, or name in the parent */
};

struct walk_file {
	struct walk_dir *wf_dir; /* borrowed; call walk_ref to keep it */
	const char *wf_name;
};

struct walk {
	void *wk_arg;
	/* Handles a regular file. */
	void (*wk_file)(void *arg, const struct walk_file *);
	/* Returns true if the walk must enter the directory. */
	bool (*wk_enter)(void *arg, const char *name);
	bool (*wk_stopped)(void);
	/*
	 * Handles a failure.  `name` is NULL for the directory itself; `error` is for walk_error.
	 */
	void (*wk_failed)(
	    void *arg, const struct walk_dir *, const char *name, int error);
};

/*
 * Walks a tree.  `path` may contain symbolic links that given_open accepts.  Files may be removed
 * or replaced before a callback opens them.
 */
void walk_tree(const struct walk *, const char *path);

/* Returns the text of an error that wk_failed reports, for a message. */
const char *walk_error(int error);

void walk_ref(struct walk_dir *);
void walk_unref(struct walk_dir **);

/*
 * Writes the path of the file relative to the given directory: "/DIR/NAME".  Returns its length, or
 * -ENAMETOOLONG.
 */
long walk_path(const struct walk_file *, char *path, size_t size);

/*
 * Prints the whole path of the directory, and of the file in it unless `name` is NULL.  Writes a
 * backslash, and each byte that is not printable ASCII, as \xHH, as in the access log, so that
 * names cannot control the terminal.
 */
void walk_print(FILE *, const struct walk_dir *, const char *name);

#endif
