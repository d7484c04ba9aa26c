/*
 * disk: the disks of the machine, their file systems and their names.
 */
#include <stdio.h>

#include "tests/sim/kernel.h"

struct disk disks[DISKS_MAX];

static void
disk_hang(void *arg)
{
	struct disk *di = arg;

	di->di_hung = world_now + world_between(100 * MS, 20 * SECOND);
	story("disk %u hangs for %llu ms", (unsigned)(di - disks),
	    (unsigned long long)((di->di_hung - world_now) / MS));
	covered("fault    a disk hangs");
	world_at(
	    di->di_hung + world_between(SECOND, 60 * SECOND), disk_hang, di);
}

/* Draws a size: many files are small, some are larger than several windows. */
static off_t
disk_file_size(void)
{
	switch (world_one_of(plan.pl_sizes, 5)) {
	case 0:
		return (off_t)world_between(1, 20000);
	case 1:
		return (off_t)world_between(1, 300000);
	case 2:
		return (off_t)world_between(1, 40) * 65536;
	case 3:
		return (off_t)world_between(1 << 20, 6 << 20);
	default:
		return (off_t)world_between(1 << 20, 16 << 20);
	}
}

static void
disk_draw_one(struct disk *di, unsigned number)
{
	*di = (struct disk){.di_dev = (dev_t)(0x800 + number),
	    .di_kind = (enum kind)(plan.pl_flavour == MIXED && world_once_in(2)
				       ? EXT4
				       : world_one_of(plan.pl_kinds, KINDS)),
	    .di_latency = world_between(20 * US, 200 * US),
	    .di_page = world_between(US, 4 * US)};
	di->di_nowait = di->di_kind == EXT4 || di->di_kind == NFS;
	if (has_fault(FAULT_SLOW))
		di->di_latency = world_between(2 * MS, 80 * MS);
	di->di_copies = has_fault(FAULT_REFUSED) && world_once_in(4);
	if (has_fault(FAULT_HANG) && di->di_kind != TMPFS && world_once_in(2))
		world_at(
		    world_now + world_between(0, 20 * SECOND), disk_hang, di);
}

void
disk_draw(void)
{
	unsigned i;
	struct disk *di;
	struct name *na;

	for (i = 0; i < plan.pl_disks; i++)
		disk_draw_one(&disks[i], i);
	for (i = 0; i < plan.pl_files; i++) {
		di = &disks[i % plan.pl_disks];
		if (di->di_nnames == NAMES_MAX)
			continue;
		na = &di->di_names[di->di_nnames++];
		snprintf(na->na_text, sizeof(na->na_text), "f%u", i);
		na->na_inode = inode_create(di, disk_file_size());
		inodes[na->na_inode].in_name = i;
		na->na_cached = world_once_in(2);
	}
}

/* A disk serves one request after another. */
uint64_t
disk_end(struct disk *di, unsigned pages)
{
	uint64_t begin = di->di_free > world_now ? di->di_free : world_now;

	if (di->di_kind == TMPFS)
		return world_now;
	di->di_free =
	    begin + world_between(di->di_latency / 2, di->di_latency * 3 / 2) +
	    pages * di->di_page;
	return di->di_free > di->di_hung ? di->di_free
					 : di->di_hung + world_between(0, MS);
}

void
disk_is_waited_for(const char *call)
{
	if (task_is_loop() && *task_step() != NEVER)
		world_fail("%s would wait for the disk in %s",
		    task_name(world_me), call);
}

void
disk_wait(struct disk *di)
{
	if (di->di_kind == TMPFS)
		return;
	locks_check_io();
	do
		world_sleep(disk_end(di, 1) - world_now);
	while (di->di_hung > world_now);
}
