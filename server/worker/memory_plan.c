/*
 * memory_plan: see memory_plan.h.
 */
#include <sys/resource.h>

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"
#include "server/conf/conf.h"
#include "server/worker/heap_limit.h"
#include "server/worker/memory_plan.h"
#include "server/worker/worker.h"

#define PINS	  8 /* 1/8 of the memory may be locked (pw_pool_pinned) */
#define PINS_MOST ((uint64_t)16 << 30) /* maximum locked bytes */

static uint64_t
memory_plan_mib(uint64_t bytes)
{
	return bytes >> 20;
}

/* Returns the bytes that connections may use, or 0 if the server would not limit them. */
static uint64_t
memory_plan_connections(uint64_t hot_sets)
{
	struct heap_limit *hl;
	uint64_t most;

	if (heap_limit_create(hot_sets, &hl) != 0)
		return 0;
	most = heap_limit_most(hl);
	heap_limit_destroy(&hl);
	return most == UINT64_MAX || most < hot_sets ? 0 : most - hot_sets;
}

/* Returns the maximum bytes that are fetched and not sent yet, or 0 if memory is short. */
static uint64_t
memory_plan_unsent(void)
{
	struct pw_pool_stats ps;
	struct pw_pool *pool;

	if (pw_pool_create(NULL, &pool) != 0)
		return 0;
	pw_pool_stats(pool, &ps);
	(void)pw_pool_destroy(&pool, 0);
	return ps.ps_unsent_max;
}

/* Returns the bytes of windows that the server keeps in pipes where it cannot lock windows. */
static uint64_t
memory_plan_held(uint64_t wanted)
{
	int pagemap = os_pagemap_open();

	if (pagemap < 0)
		return 0;
	close(pagemap);
	return os_folio_pipes((size_t)wanted) * (uint64_t)OS_FOLIO;
}

/*
 * Prints a warning if the server would lock more memory than RLIMIT_MEMLOCK permits, apart from
 * windows in pipes.  A server that root starts lifts the limit, unless a container forbids that.
 * The send path "native" locks no memory.
 */
static void
memory_plan_print_locked(uint64_t memory)
{
	uint64_t wanted = memory / PINS < PINS_MOST ? memory / PINS : PINS_MOST;
	struct rlimit rl;

	if (pw_send_default() == pw_send_path("native"))
		return;
	if (geteuid() == 0 && os_lift_memlock() == 0)
		return;
	if (getrlimit(RLIMIT_MEMLOCK, &rl) == 0 &&
	    rl.rlim_cur != RLIM_INFINITY &&
	    (uint64_t)rl.rlim_cur + memory_plan_held(wanted) < wanted)
		printf("    ulimit -l (LimitMEMLOCK) permits this user "
		       "%" PRIu64 " MiB of locked memory: raise it to %" PRIu64
		       " "
		       "MiB for windows of large files\n",
		    memory_plan_mib((uint64_t)rl.rlim_cur),
		    memory_plan_mib(wanted));
}

static void
memory_plan_print_part(const char *what, uint64_t bytes)
{
	if (bytes > 0)
		printf(
		    "    %s %" PRIu64 " MiB\n", what, memory_plan_mib(bytes));
}

/*
 * Prints the limit of reads in flight, because the kernel has a buffer for each (lib/disk/cold.h).
 */
static void
memory_plan_print_reads(void)
{
	unsigned reads = os_native_reads();

	if (reads > 0)
		printf("    sendfile calls that may read from a disk, at most "
		       "%u of %u (vm.vnode_pbufs)\n",
		    reads / 2, reads);
}

void
memory_plan_print(const struct conf *conf)
{
	uint64_t hot_sets = (uint64_t)worker_hot_set(conf) * conf->conf_workers;
	struct os_memory om;

	os_memory(&om);
	printf("memory: %" PRIu64 " MiB of the %s\n",
	    memory_plan_mib(om.om_bytes),
	    om.om_limited ? "control group" : "machine");
	memory_plan_print_part("hot_set", hot_sets);
	if (hot_sets >= om.om_bytes)
		printf("    hot_set needs all of this memory: lower hot_set or "
		       "workers\n");
	memory_plan_print_part(
	    "connections, at most", memory_plan_connections(hot_sets));
	memory_plan_print_part(
	    "file data to be sent, at most", memory_plan_unsent());
	memory_plan_print_locked(om.om_bytes);
	memory_plan_print_reads();
}
