/*
 * run_tool: executes pagewise-tool in place of this program for commands such as "pagewise
 * precompress DIR".  Looks for pagewise-tool in the directory of this program, then in libexec
 * beside that directory: PREFIX/libexec for PREFIX/sbin.
 */
#ifndef SERVER_PROCESS_RUN_TOOL_H
#define SERVER_PROCESS_RUN_TOOL_H

/*
 * Executes the tool if the first argument is one of its commands.  If the argument only resembles a
 * command, or the tool cannot be executed, prints a message and returns the exit status.  Returns
 * -1 for any other argument, and if there is no argument.
 */
int run_tool(int argc, char **argv);

#endif
