/*
 * huge: mappings by page size; hugetlb pages are reserved for the whole host,
 * so whoever takes them must give them back whatever ends the program.
 */
#include <sys/mman.h>
#include <sys/prctl.h>

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "huge.h"

#define NR_HUGEPAGES "/proc/sys/vm/nr_hugepages"
#define GIGANTIC     "/sys/kernel/mm/hugepages/hugepages-1048576kB/"
#define TRANSPARENT  "/sys/kernel/mm/transparent_hugepage/enabled"

static int nr_fd = -1; /* open while there is something to give back */
static char nr_old[24];

/* The number behind "key:" in one of the kernel's tables, or -1. */
static long
lookup(FILE *f, const char *key)
{
	char line[256];
	size_t len = strlen(key);

	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return strtol(line + len + 1, NULL, 10);
	return -1;
}

static long
meminfo(const char *key)
{
	FILE *f = fopen("/proc/meminfo", "re");
	long n;

	if (f == NULL)
		return -1;
	n = lookup(f, key);
	fclose(f);
	return n;
}

size_t
huge_memory(void)
{
	long kib = meminfo("MemAvailable");

	return kib > 0 ? (size_t)kib << 10 : 0;
}

size_t
huge_page(void)
{
	static long kib;

	if (kib == 0)
		kib = meminfo("Hugepagesize");
	return kib > 0 ? (size_t)kib << 10 : (size_t)2 << 20;
}

size_t
huge_size(enum page_kind kind, size_t size)
{
	size_t page = kind == PAGES_GIGANTIC ? HUGE_GIGANTIC : huge_page();

	return (size + page - 1) / page * page;
}

static size_t
round_up(size_t size)
{
	return huge_size(PAGES_HUGETLB, size);
}

static bool
read_text(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool got = f != NULL && fgets(buf, (int)size, f) != NULL;

	if (f != NULL)
		fclose(f);
	return got;
}

bool
huge_transparent(char *why, size_t size)
{
	char text[64];

	if (!read_text(TRANSPARENT, text, sizeof(text)))
		snprintf(
		    why, size, "this kernel has no transparent huge pages");
	else if (strstr(text, "[never]") != NULL)
		snprintf(why, size, "transparent huge pages are off");
	else
		return true;
	return false;
}

static void
give_back(void)
{
	int fd = nr_fd;

	nr_fd = -1;
	if (fd == -1)
		return;
	/*
	 * Pages still mapped become surplus and go with their mapping.  A
	 * second write behind the first would succeed and do nothing.
	 */
	if (pwrite(fd, nr_old, strlen(nr_old), 0) == -1)
		(void)!write(2, "nr_hugepages was not restored\n", 30);
	close(fd);
}

/* SA_RESETHAND: raised again, it ends the program as it would have. */
static void
on_signal(int sig)
{
	give_back();
	raise(sig);
}

static void
handle_signals(void (*handler)(int))
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESETHAND};
	size_t i;

	for (i = 0; i < sizeof(sigs) / sizeof(*sigs); i++)
		sigaction(sigs[i], &sa, NULL);
}

void
huge_disown(void)
{
	if (nr_fd != -1)
		close(nr_fd);
	nr_fd = -1;
	handle_signals(SIG_DFL);
}

void
huge_release(void)
{
	give_back();
	handle_signals(SIG_DFL);
}

static long
available(void)
{
	return meminfo("HugePages_Free") - meminfo("HugePages_Rsvd");
}

static bool
make_pages(const char *path, long missing, char *words, size_t size)
{
	static bool at_exit;
	char text[24];

	if (!read_text(path, nr_old, sizeof(nr_old))) {
		snprintf(words, size, "nr_hugepages cannot be read");
		return false;
	}
	nr_fd = open(path, O_WRONLY | O_CLOEXEC);
	if (nr_fd == -1) {
		snprintf(words, size,
		    "%ld hugetlb pages are missing and only root may make them",
		    missing);
		return false;
	}
	handle_signals(on_signal);
	if (!at_exit)
		at_exit = atexit(give_back) == 0;
	snprintf(text, sizeof(text), "%ld", atol(nr_old) + missing);
	if (write(nr_fd, text, strlen(text)) != -1)
		return true;
	snprintf(words, size, "the kernel refused %s in nr_hugepages", text);
	huge_release();
	return false;
}

bool
huge_reserve(size_t bytes, char *words, size_t size)
{
	long need, got = available();

	need = (long)(round_up(bytes) / huge_page());
	if (meminfo("HugePages_Total") < 0) {
		snprintf(words, size, "this kernel has no hugetlb pages");
		return false;
	}
	if (got >= need) {
		snprintf(words, size, "%ld hugetlb pages were free", got);
		return true;
	}
	if (!make_pages(NR_HUGEPAGES, need - got, words, size))
		return false;
	got = available();
	if (got < need) {
		snprintf(words, size,
		    "only %ld of %ld hugetlb pages could be reserved", got,
		    need);
		huge_release();
		return false;
	}
	snprintf(words, size, "%ld hugetlb pages reserved for the run", need);
	return true;
}

static long
gigantic_number(const char *path)
{
	char text[24];

	return read_text(path, text, sizeof(text)) ? atol(text) : -1;
}

/* Returns the pages of 1 GiB that are free and promised to no mapping. */
static long
gigantic_available(void)
{
	return gigantic_number(GIGANTIC "free_hugepages") -
	       gigantic_number(GIGANTIC "resv_hugepages");
}

bool
huge_reserve_gigantic(size_t bytes, char *words, size_t size)
{
	long got = gigantic_available();
	long need = (long)(huge_size(PAGES_GIGANTIC, bytes) / HUGE_GIGANTIC);

	if (gigantic_number(GIGANTIC "nr_hugepages") < 0) {
		snprintf(words, size, "this machine has no pages of 1 GiB");
		return false;
	}
	if (got >= need) {
		snprintf(words, size, "%ld pages of 1 GiB were free", got);
		return true;
	}
	if (!make_pages(GIGANTIC "nr_hugepages", need - got, words, size))
		return false;
	got = gigantic_available();
	if (got < need) {
		snprintf(words, size,
		    "memory has no %ld free pages of 1 GiB", need);
		huge_release();
		return false;
	}
	snprintf(words, size, "%ld pages of 1 GiB reserved for the run", need);
	return true;
}

/* Without the rest on both sides of the boundary. */
static char *
map_aligned(size_t size, int flags)
{
	char *p;
	size_t head;

	p = mmap(NULL, size + huge_page(), PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	head = (huge_page() - (uintptr_t)p % huge_page()) % huge_page();
	if (head > 0)
		munmap(p, head);
	munmap(p + head + size, huge_page() - head);
	p = mmap(p + head, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void *
huge_map(enum page_kind kind, bool populate, size_t size)
{
	int flags = populate ? MAP_POPULATE : 0;
	char *p;

	size = huge_size(kind, size);
	if (kind == PAGES_HUGETLB || kind == PAGES_GIGANTIC) {
		if (kind == PAGES_GIGANTIC)
			flags |= 30 << MAP_HUGE_SHIFT;
		p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	/* MAP_POPULATE leaves no time for an madvise. */
	prctl(PR_SET_THP_DISABLE, kind == PAGES_SMALL, 0, 0, 0);
	p = map_aligned(size, flags);
	if (p != NULL && kind == PAGES_TRANSPARENT)
		madvise(p, size, MADV_HUGEPAGE);
	return p;
}

void
huge_unmap(void *p, size_t size)
{
	munmap(p, round_up(size));
}

size_t
huge_missing(const void *p, size_t size)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long first, last;
	char line[512];
	long kib, got = 0;
	bool inside = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
			inside =
			    first < (uintptr_t)p + size && last > (uintptr_t)p;
		else if (inside &&
			 sscanf(line, "AnonHugePages: %ld", &kib) == 1)
			got += kib;
	if (f != NULL)
		fclose(f);
	return (size_t)got << 10 >= size ? 0 : size - ((size_t)got << 10);
}
