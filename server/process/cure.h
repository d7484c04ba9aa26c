/*
 * cure: what an administrator can do about a resource that ran out at the start.
 */
#ifndef SERVER_PROCESS_CURE_H
#define SERVER_PROCESS_CURE_H

/* Returns "; " and a cure to follow the text of a -errno, or "" if the error has no general one. */
const char *cure_of(int error);

#endif
