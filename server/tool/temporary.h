/*
 * temporary: a file that is written under another name, and gets its own once it is whole
 * (rename(2)).  The name begins with a dot, so no listing shows it and no client gets it.  Its
 * writer holds a lock on it (flock(2)): so one that a killed program has left can be told from
 * one that is being written, also by another machine.
 */
#ifndef SERVER_TOOL_TEMPORARY_H
#define SERVER_TOOL_TEMPORARY_H

#include <stdbool.h>
#include <sys/stat.h>

#define TEMPORARY_NAME 32

struct temporary {
	int tmp_dir; /* the caller's, open as long */
	int tmp_fd;
	char tmp_name[TEMPORARY_NAME];
};

/* 0 or -errno. */
int temporary_create(struct temporary *, int dirfd);

/*
 * Gives it the mode, the owner and the modification time of another file, as far as it may,
 * and the name, in place of what may have it.  What its group may not be told, when the group
 * cannot be kept, is taken from the mode.  On stable storage before it has the name: after a
 * loss of power there is no empty file of this name.  0 or -errno, and then it is gone.
 */
int temporary_commit(
    struct temporary *, const char *name, const struct stat *as);
void temporary_remove(struct temporary *);

/* Is it a name of one?  Then temporary_clean removes it, unless it is being written. */
bool temporary_is(const char *name);
void temporary_clean(int dirfd, const char *name);

#endif
