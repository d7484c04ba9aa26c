/*
 * tool: the parts that commands of pagewise-tool share if they walk directories.  One thread walks,
 * and passes each file to one of several threads.  pagewise-tool is the program behind "pagewise
 * precompress" and other commands, separate from the server, so that the server links no
 * compressor.  Manual: pagewise-tool(8).
 */
#ifndef SERVER_TOOL_TOOL_H
#define SERVER_TOOL_TOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "server/tool/walk.h"

struct tool;

/* A command's callbacks.  All except tc_end may run in several threads at once. */
struct tool_command {
	const char *tc_name;
	/* Returns true if the command handles files of this name. */
	bool (*tc_wants)(const struct tool *, const char *name);
	/* Handles a regular file that is open for reading.  The caller owns the descriptor. */
	void (*tc_file)(struct tool *, const struct walk_file *, int fd,
	    const struct stat *);
	/* Handles a file whose name has a leading dot, such as a temporary file.  May be NULL. */
	void (*tc_dotfile)(struct tool *, const struct walk_file *);
	/* Prints the results. */
	void (*tc_end)(const struct tool *);
};

struct tool {
	const struct tool_command *to_command;
	void *to_own;	  /* data of the command */
	unsigned to_jobs; /* number of threads that handle files */
	bool to_dotfiles; /* true to include names with a leading dot */
	bool to_force;	  /* true to handle even files with a current result */
	bool to_quiet;	  /* true to print errors only */
	_Atomic uint64_t to_failed;    /* errors and findings printed */
	_Atomic uint64_t to_files;     /* files handled */
	_Atomic uint64_t to_bytes;     /* bytes of the files handled */
	_Atomic uint64_t to_all_files; /* files counted so far */
	_Atomic uint64_t to_all_bytes; /* bytes of the files counted */
	_Atomic bool to_counted;       /* true once all files are counted */
};

/* Runs the command on the files of all directories.  Returns the exit status. */
int tool_run(struct tool *, char *const *dirs);

/* Returns true if a signal or tool_give_up stopped the run.  Call between two lengthy steps. */
bool tool_stopped(void);

/* Stops the run before the next file.  Call if the remaining files would also fail. */
void tool_give_up(void);

/*
 * Prints "pagewise NAME: DIR/FILE: text" on standard error and increments to_failed.  `name` is
 * NULL for the directory itself.
 */
void tool_fail(struct tool *, const struct walk_dir *, const char *name,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Prints a finding of --check like tool_fail, but on standard output. */
void tool_found(struct tool *, const struct walk_file *, const char *what);

/*
 * Sleeps until a further change of the file would get a new modification time: two seconds after
 * the last change if that time is a whole second, else 20 ms after the last change.  Returns false
 * if the run was stopped.
 */
bool tool_settle(const struct stat *);

/* Returns true if the file's size and modification time are those in the struct. */
bool tool_unchanged(int fd, const struct stat *);

#endif
