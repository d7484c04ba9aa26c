/*
 * maps: mappings of files.  A mapping is an address range that nobody can read, so that a program that
 * reads one itself crashes.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <linux/sockios.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

#include "tests/sim/kernel.h"
#include "tests/sim/wrap.h"

#define MAPS_MAX 1024

struct map {
	char *ma_addr;
	size_t ma_len;
	struct inode *ma_inode;
	off_t ma_off;
	bool ma_huge;
	struct mapped {
		bool mp_there, mp_locked; /* it keeps its page */
		bool mp_locks;		  /* a page that comes is locked */
		uint32_t mp_epoch;
	} * ma_pages;
};

static struct map maps[MAPS_MAX];
static unsigned nmaps;
static uint64_t locked;

struct map *
map_of(const void *mem)
{
	const char *p = mem;
	unsigned i;

	for (i = 0; i < nmaps; i++)
		if (maps[i].ma_addr != NULL && p >= maps[i].ma_addr &&
		    p < maps[i].ma_addr + maps[i].ma_len)
			return &maps[i];
	return NULL;
}

struct inode *
map_place(struct map *ma, const void *mem, off_t *off)
{
	*off = ma->ma_off + ((const char *)mem - ma->ma_addr);
	return ma->ma_inode;
}

unsigned
maps_left(void)
{
	unsigned i, n = 0;

	for (i = 0; i < nmaps; i++)
		n += maps[i].ma_addr != NULL;
	return n;
}

WRAP(void *, mmap,
    (void *addr, size_t len, int prot, int flags, int fd, off_t off))
{
	struct fd *f;
	unsigned i;

	world_point("mmap");
	if (fd == -1)
		return mmap(addr, len, prot, flags, -1, 0);
	f = fd_of(fd);
	if (f == NULL || f->fd_kind != FD_FILE)
		return MAP_FAILED;
	for (i = 0; i < MAPS_MAX && maps[i].ma_addr != NULL; i++)
		continue;
	if (i == MAPS_MAX || len == 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (i >= nmaps)
		nmaps = i + 1;
	maps[i] = (struct map){
	    .ma_addr = mmap(NULL, len, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
	    .ma_len = len,
	    .ma_inode = f->fd_inode,
	    .ma_off = off,
	    .ma_pages = calloc((len + PAGE - 1) / PAGE, sizeof(struct mapped))};
	f->fd_inode->in_opens++;
	return maps[i].ma_addr;
}

/* The page of the file behind page i of the mapping, or NULL behind its end. */
static struct page *
map_page(const struct map *ma, size_t i)
{
	off_t off = ma->ma_off + (off_t)i * PAGE;

	return off < ma->ma_inode->in_size ? page_at(ma->ma_inode, off) : NULL;
}

static bool
map_has(const struct map *ma, size_t i)
{
	const struct page *pg = map_page(ma, i);

	return pg != NULL && ma->ma_pages[i].mp_there &&
	       pg->pg_epoch == ma->ma_pages[i].mp_epoch &&
	       pg->pg_state == RESIDENT;
}

static void
map_forget(struct map *ma, size_t i)
{
	struct page *pg = map_page(ma, i);

	if (map_has(ma, i) && pg->pg_maps > 0)
		pg->pg_maps--;
	if (ma->ma_pages[i].mp_locked && pg != NULL)
		page_let_go(pg, ma->ma_pages[i].mp_epoch);
	ma->ma_pages[i].mp_there = ma->ma_pages[i].mp_locked = false;
}

static void
map_unlock(struct map *ma, size_t i)
{
	map_forget(ma, i);
	locked -= ma->ma_pages[i].mp_locks ? PAGE : 0;
	ma->ma_pages[i].mp_locks = false;
}

static size_t
map_index(const struct map *ma, const void *addr)
{
	return (size_t)((const char *)addr - ma->ma_addr) / PAGE;
}

WRAP(int, munmap, (void *addr, size_t len))
{
	struct map *ma;
	struct inode *in;
	size_t i;

	world_point("munmap");
	ma = map_of(addr);
	if (ma == NULL)
		return munmap(addr, len);
	if (ma->ma_addr != addr || ma->ma_len != len)
		world_fail(
		    "%s unmaps a part of a mapping", task_name(world_me));
	for (i = 0; i < (len + PAGE - 1) / PAGE; i++)
		map_unlock(ma, i);
	munmap(addr, len);
	free(ma->ma_pages);
	in = ma->ma_inode;
	ma->ma_addr = NULL;
	inode_release(in);
	return 0;
}

/* Reads a page into the mapping.  With huge pages a whole folio is read at once. */
static int
map_fault(struct map *ma, size_t i)
{
	struct page *pg = map_page(ma, i);
	off_t off = ma->ma_off + (off_t)i * PAGE;
	int error;

	if (pg == NULL)
		return -EFAULT;
	error = page_need(ma->ma_inode, off, PAGE, "a page fault");
	if (error != 0)
		return -EFAULT;
	pg = map_page(ma, i);
	if (pg == NULL || ma->ma_addr == NULL)
		return -EFAULT;
	if (map_has(ma, i))
		return 0;
	map_forget(ma, i);
	pg->pg_maps++;
	ma->ma_pages[i].mp_there = true;
	ma->ma_pages[i].mp_locked = ma->ma_pages[i].mp_locks;
	ma->ma_pages[i].mp_epoch = pg->pg_epoch;
	if (ma->ma_pages[i].mp_locks)
		page_keep(pg);
	return 0;
}

/*
 * Reads a whole folio, as Linux does at the first fault in a mapping with MADV_HUGEPAGE.  If a page is resident,
 * reads single pages.
 */
static void
map_read_folio(struct map *ma, size_t from, size_t n)
{
	off_t off = ma->ma_off + (off_t)from * PAGE;
	bool folio =
	    machine.ma_folios && off % ((off_t)FOLIO_PAGES * PAGE) == 0;
	size_t i;

	for (i = from; i < from + n && folio; i++)
		folio = map_page(ma, i) != NULL &&
			map_page(ma, i)->pg_state == ABSENT;
	pages_read(ma->ma_inode, off, off + (off_t)n * PAGE, true);
	if (!folio)
		return;
	covered("fetch    a large folio");
	for (i = from; i < from + n; i++)
		map_page(ma, i)->pg_folio = true;
}

static int
map_populate(struct map *ma, size_t from, size_t n)
{
	off_t off = ma->ma_off + (off_t)from * PAGE;
	size_t i;
	int error = 0;

	disk_is_waited_for("madvise");
	if (ma->ma_huge)
		map_read_folio(ma, from, n > 1 ? n : FOLIO_PAGES);
	else
		pages_read(ma->ma_inode, off, off + (off_t)n * PAGE, true);
	for (i = from; i < from + n && error == 0; i++)
		error = map_fault(ma, i);
	return error;
}

/* Counts all pages of the range at once, as Linux does. */
WRAP(int, mlock2, (const void *addr, size_t len, int flags))
{
	struct map *ma = map_of(addr);
	size_t i, from, n = (len + PAGE - 1) / PAGE;

	world_point("mlock2");
	if (ma == NULL)
		return 0;
	if (locked + len > machine.ma_memlock)
		return failed(ENOMEM);
	from = map_index(ma, addr);
	for (i = from; i < from + n; i++) {
		locked += ma->ma_pages[i].mp_locks ? 0 : PAGE;
		ma->ma_pages[i].mp_locks = true;
	}
	if ((flags & MLOCK_ONFAULT) != 0)
		return 0;
	return map_populate(ma, from, n) == 0 ? 0 : failed(ENOMEM);
}

WRAP(int, munlock, (const void *addr, size_t len))
{
	struct map *ma = map_of(addr);
	size_t i, from;

	world_point("munlock");
	if (ma == NULL)
		return 0;
	from = map_index(ma, addr);
	for (i = from; i < from + (len + PAGE - 1) / PAGE; i++)
		map_unlock(ma, i);
	return 0;
}

WRAP(int, madvise, (void *addr, size_t len, int advice))
{
	struct map *ma = map_of(addr);
	size_t i, from, n = (len + PAGE - 1) / PAGE;
	int error = 0;

	world_point("madvise");
	if (ma == NULL)
		return madvise(addr, len,
		    advice == MADV_POPULATE_READ ? MADV_NORMAL : advice);
	from = map_index(ma, addr);
	if (advice == MADV_HUGEPAGE)
		ma->ma_huge = true;
	if (advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED)
		for (i = from; i < from + n; i++)
			map_forget(ma, i);
	if (advice == MADV_POPULATE_READ)
		error = map_populate(ma, from, n);
	return error == 0 ? 0 : failed(-error);
}

/* mincore(2) tells only the owner of the file; others hear that all pages are resident. */
WRAP(int, mincore, (void *addr, size_t len, unsigned char *vec))
{
	struct map *ma;
	const struct page *pg;
	size_t i, from;

	world_point("mincore");
	ma = map_of(addr);
	if (ma == NULL)
		return mincore(addr, len, vec);
	from = (size_t)((char *)addr - ma->ma_addr) / PAGE;
	kernel_call("mincore", ma->ma_inode, ma->ma_off + (off_t)from * PAGE);
	for (i = 0; i < (len + PAGE - 1) / PAGE; i++) {
		pg = map_page(ma, from + i);
		vec[i] = !ma->ma_inode->in_owned ||
			 (pg != NULL && pg->pg_state == RESIDENT);
	}
	world_point("mincore ends");
	return 0;
}

/* ---------------------------------------------------------------------- ioctl */

struct region {
	uint64_t re_start, re_end, re_categories;
};

struct scan {
	uint64_t sc_size, sc_flags, sc_start, sc_end, sc_walk_end, sc_vec,
	    sc_vec_len, sc_max_pages;
	uint64_t sc_inverted, sc_mask, sc_anyof_mask, sc_return_mask;
};

#define IS_HUGE (1 << 6)

/* PAGEMAP_SCAN: the first pages that are present, or present as parts of a folio. */
static int
map_scan(struct scan *sc)
{
	struct region *re = (struct region *)(uintptr_t)sc->sc_vec;
	struct map *ma = map_of((const void *)(uintptr_t)sc->sc_start);
	bool huge = (sc->sc_mask & IS_HUGE) != 0, in = false;
	size_t i, from;
	uint64_t at;

	if (!machine.ma_pagemap)
		return failed(ENOTTY);
	if (ma == NULL)
		return 0;
	from = (size_t)(sc->sc_start - (uintptr_t)ma->ma_addr) / PAGE;
	kernel_call(
	    "PAGEMAP_SCAN", ma->ma_inode, ma->ma_off + (off_t)from * PAGE);
	for (i = from, at = sc->sc_start; at < sc->sc_end; i++, at += PAGE) {
		if (i >= (ma->ma_len + PAGE - 1) / PAGE || !map_has(ma, i) ||
		    (huge && !map_page(ma, i)->pg_folio)) {
			if (in)
				break;
			continue;
		}
		if (!in)
			re->re_start = at;
		in = true;
		re->re_end = at + PAGE;
	}
	story("PAGEMAP_SCAN of file %llu at %lld, %llu bytes: %llu are %s",
	    (unsigned long long)ma->ma_inode->in_number,
	    (long long)from * PAGE + (long long)ma->ma_off,
	    (unsigned long long)(sc->sc_end - sc->sc_start),
	    in ? (unsigned long long)(re->re_end - re->re_start) : 0,
	    huge ? "huge" : "present");
	world_point("PAGEMAP_SCAN ends");
	return in;
}

WRAP(int, ioctl, (int fd, unsigned long request, ...))
{
	struct fd *f = fd_of(fd);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	world_point("ioctl");
	if (request == SIOCOUTQ && (f == NULL || f->fd_kind != FD_SOCKET))
		world_fail("%s uses descriptor %d as a socket, which the "
			   "program has closed",
		    task_name(world_me), fd);
	if (f == NULL)
		return -1;
	if (f->fd_kind == FD_PAGEMAP)
		return map_scan(arg);
	if (f->fd_kind == FD_SOCKET && request == SIOCOUTQ) {
		*(int *)arg = (int)sock_queued(f->fd_sock);
		return 0;
	}
	if (f->fd_kind == FD_FILE)
		disk_is_waited_for("ioctl");
	return failed(ENOTTY);
}
