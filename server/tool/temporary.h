/*
 * temporary: a file that is written under a temporary name, and renamed once it is complete
 * (rename(2)).  The name begins with a dot, so no listing shows the file and the server does not
 * send it.  The writer locks the file (flock(2)), so that temporary_clean can distinguish a
 * leftover of a killed program from a file that is being written, even by another machine.
 */
#ifndef SERVER_TOOL_TEMPORARY_H
#define SERVER_TOOL_TEMPORARY_H

#include <stdbool.h>
#include <sys/stat.h>

#define TEMPORARY_NAME 32 /* maximum bytes of a name, with the NUL */

struct temporary {
	/* the caller's descriptor of the directory; must stay open */
	int tmp_dir;
	int tmp_fd;
	char tmp_name[TEMPORARY_NAME];
};

/* Creates the file in the directory.  Returns 0 or -errno. */
int temporary_create(struct temporary *, int dirfd);

/*
 * Sets mode, owner and modification time to those of another file, as far as permitted, and renames
 * the file, replacing an existing one.  If the group cannot be set, the group gets only the rights
 * that all users have.  Syncs the file before the rename, so that a power failure leaves no empty
 * file of this name.  Returns 0, or -errno after removing the file.
 */
int temporary_commit(
    struct temporary *, const char *name, const struct stat *as);
void temporary_remove(struct temporary *);

/*
 * temporary_is returns true if the name is the name of a temporary file.  temporary_clean removes
 * such a file, unless a program is writing it.
 */
bool temporary_is(const char *name);
void temporary_clean(int dirfd, const char *name);

#endif
