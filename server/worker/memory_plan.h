/*
 * memory_plan: how the server would divide its memory, for a check of the configuration (-t).
 */
#ifndef SERVER_WORKER_MEMORY_PLAN_H
#define SERVER_WORKER_MEMORY_PLAN_H

struct conf;

/* Prints some lines to stdout; one more if too little memory may be locked.  Reads files. */
void memory_plan_print(const struct conf *);

#endif
