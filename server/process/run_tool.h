/*
 * run_tool: the words for which another program, pagewise-tool, takes this one's place:
 * "pagewise precompress DIR".  The program is looked up in this program's directory, then in libexec
 * beside that directory: PREFIX/libexec for PREFIX/sbin.
 */
#ifndef SERVER_PROCESS_RUN_TOOL_H
#define SERVER_PROCESS_RUN_TOOL_H

/*
 * Runs the tool.  Returns -1 if the first argument is no such word, nor similar to one.  Otherwise
 * returns only if the program cannot run: the exit status, after a message.
 */
int run_tool(int argc, char **argv);

#endif
