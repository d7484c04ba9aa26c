/*
 * memory_plan: prints how the server would divide its memory, for a check of the configuration
 * (-t).
 */
#ifndef SERVER_WORKER_MEMORY_PLAN_H
#define SERVER_WORKER_MEMORY_PLAN_H

struct conf;

/* Prints the plan to stdout, with a warning if too little memory may be locked. */
void memory_plan_print(const struct conf *);

#endif
