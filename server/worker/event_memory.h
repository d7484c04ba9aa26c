/*
 * event_memory: where libevent's small pieces of memory are.
 *
 * libevent allocates 24 bytes when a number is first used by a descriptor, and never frees them.  In
 * malloc's heap they would lie between the buffers of the connections that came then, one in a page,
 * and 9000 of them kept 12 MiB from being returned to the kernel (release.h).  So they have an area
 * of their own.
 */
#ifndef SERVER_WORKER_EVENT_MEMORY_H
#define SERVER_WORKER_EVENT_MEMORY_H

/* Call before anything else of libevent. */
void event_memory_use(void);

#endif
