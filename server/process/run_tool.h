/*
 * run_tool: executes pagewise-tool instead of this program, for commands such as "pagewise
 * precompress DIR".  Searches the directory of this program, then libexec beside that directory:
 * PREFIX/libexec for PREFIX/sbin.
 */
#ifndef SERVER_PROCESS_RUN_TOOL_H
#define SERVER_PROCESS_RUN_TOOL_H

/*
 * Executes pagewise-tool if the first argument is one of its commands.  If the tool cannot be
 * executed, or the argument only resembles a command, prints a message and returns the exit status.
 * Returns -1 for any other argument, or without arguments.
 */
int run_tool(int argc, char **argv);

#endif
