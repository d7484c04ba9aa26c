/*
 * run_tool: the words for which another program, pagewise-tool, takes this one's place:
 * "pagewise precompress DIR".  It is looked for beside this program, then in libexec beside its
 * directory: PREFIX/libexec for PREFIX/sbin.
 */
#ifndef SERVER_PROCESS_RUN_TOOL_H
#define SERVER_PROCESS_RUN_TOOL_H

/*
 * Returns -1 if the first argument is no such word, nor nearly one; else only when the program
 * cannot be run: the exit status; it was said why.
 */
int run_tool(int argc, char **argv);

#endif
