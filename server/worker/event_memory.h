/*
 * event_memory: allocates libevent's small pieces of memory from an area of their own.
 *
 * libevent allocates 24 bytes when a descriptor number is first used, and never frees them.  In
 * malloc's heap these pieces would lie between the buffers of connections, one in a page: 9000 of
 * them prevented the return of 12 MiB to the kernel (release.h).
 */
#ifndef SERVER_WORKER_EVENT_MEMORY_H
#define SERVER_WORKER_EVENT_MEMORY_H

/* Makes libevent use this allocator.  Call before any other function of libevent. */
void event_memory_use(void);

#endif
