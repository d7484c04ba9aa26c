/*
 * tool: pagewise-tool, the program behind "pagewise precompress" and the other words: what
 * commands that walk directories share.  It walks directories and hands each file to one of several threads.
 * A program of its own, so that the server links no compressor.  Manual:
 * pagewise-tool(8).
 */
#ifndef SERVER_TOOL_TOOL_H
#define SERVER_TOOL_TOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "server/tool/walk.h"

struct tool;

/* A command's part; all of it may run in several threads at once, but for tc_end. */
struct tool_command {
	const char *tc_name;
	/* By the name alone: is it one to look at? */
	bool (*tc_wants)(const struct tool *, const char *name);
	/* The file is open for reading and regular; the descriptor stays the caller's. */
	void (*tc_file)(struct tool *, const struct walk_file *, int fd,
	    const struct stat *);
	/* A name that tc_wants is not asked about: what a killed run has left, or NULL. */
	void (*tc_dotfile)(struct tool *, const struct walk_file *);
	/* Prints what was done. */
	void (*tc_end)(const struct tool *);
};

struct tool {
	const struct tool_command *to_command;
	void *to_own; /* the command's */
	unsigned to_jobs;
	bool to_dotfiles;
	bool to_force; /* also what is current */
	bool to_quiet;
	/* counts; any thread */
	_Atomic uint64_t to_failed;
	_Atomic uint64_t to_files;     /* looked at */
	_Atomic uint64_t to_bytes;     /* of these */
	_Atomic uint64_t to_all_files; /* that there are, as far as counted */
	_Atomic uint64_t to_all_bytes; /* of these */
	_Atomic bool to_counted;       /* that is all */
};

/* All directories.  Returns the exit status. */
int tool_run(struct tool *, char *const *dirs);

/* Asked between two steps that take a while: has a signal, or tool_give_up, ended the run? */
bool tool_stopped(void);

/* The others would fail as well: no file is begun any more. */
void tool_give_up(void);

/*
 * "pagewise NAME: DIR/FILE: text" on standard error, and one more in to_failed.  name NULL: the
 * directory itself.
 */
void tool_fail(struct tool *, const struct walk_dir *, const char *name,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* As tool_fail, on standard output: what --check has found. */
void tool_found(struct tool *, const struct walk_file *, const char *what);

/*
 * Waits until a second change of the file could not have the same modification time: two
 * seconds on file systems that count these, else some clock ticks.  False: it was stopped.
 */
bool tool_settle(const struct stat *);

/* Is it what it was, as far as size and modification time say? */
bool tool_unchanged(int fd, const struct stat *);

#endif
