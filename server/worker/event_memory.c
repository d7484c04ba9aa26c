/*
 * event_memory: see event_memory.h.
 */
#include <event2/event.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/event_memory.h"

#define PIECE ((size_t)32)   /* size of a piece, bytes */
#define RUN   ((size_t)4096) /* bytes that a thread reserves at a time */
#ifdef PW_DEBUG /* LeakSanitizer reads all of it at the end of each process */
#define AREA (64 * RUN)
#else
#define AREA (1024 * RUN) /* 131072 pieces, then malloc(3) */
#endif

/* The kernel provides the area's pages on first use. */
static alignas(4096) char event_area[AREA];
static atomic_size_t event_taken;

/* Free pieces of a thread, which only this thread uses. */
static _Thread_local struct {
	void *et_free;	/* list of free pieces */
	char *et_run;	/* start of the run that is in use */
	size_t et_left; /* unused bytes of that run */
} event_thread;

static bool
event_memory_owns(const void *p)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)event_area;

	return at < AREA;
}

/* Reserves a run for this thread.  Returns false if the area is full. */
static bool
event_memory_run(void)
{
	size_t at = atomic_load(&event_taken);

	do
		if (at == AREA)
			return false;
	while (!atomic_compare_exchange_weak(&event_taken, &at, at + RUN));
	event_thread.et_run = event_area + at;
	event_thread.et_left = RUN;
	return true;
}

static void *
event_memory_piece(void)
{
	void *p = event_thread.et_free;

	if (p != NULL) {
		memcpy(&event_thread.et_free, p, sizeof(void *));
		return p;
	}
	if (event_thread.et_left == 0 && !event_memory_run())
		return NULL;
	event_thread.et_left -= PIECE;
	return event_thread.et_run + event_thread.et_left;
}

static void *
event_memory_take(size_t size)
{
	void *p = size <= PIECE ? event_memory_piece() : NULL;

	return p != NULL ? p : malloc(size);
}

static void
event_memory_give(void *p)
{
	if (!event_memory_owns(p)) {
		free(p);
		return;
	}
	memcpy(p, &event_thread.et_free, sizeof(void *));
	event_thread.et_free = p;
}

static void *
event_memory_grow(void *old, size_t size)
{
	void *p;

	if (!event_memory_owns(old))
		return realloc(old, size);
	if (size <= PIECE)
		return old;
	p = malloc(size);
	if (p == NULL)
		return NULL;
	memcpy(p, old, PIECE);
	event_memory_give(old);
	return p;
}

void
event_memory_use(void)
{
	event_set_mem_functions(
	    event_memory_take, event_memory_grow, event_memory_give);
}
