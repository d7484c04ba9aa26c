/*
 * What the transmission of a file on trial leaves on its pages: Linux makes a page active at
 * its second use, and reading it for the first answer has to count as one.
 */
#include "xfer_fixture.h"

#define SMALL	   ((size_t)300 * KIB)
#define LARGE	   ((size_t)8 << 20) /* windows of 2 MiB */
#define KPF_ACTIVE 6		     /* linux/kernel-page-flags.h */
#define PFN	   ((UINT64_C(1) << 55) - 1)

static uint64_t
word_of(const char *path, uint64_t i)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t word = 0;

	if (fd == -1)
		return 0;
	if (pread(fd, &word, sizeof(word), (off_t)(i * sizeof(word))) !=
	    (ssize_t)sizeof(word))
		word = 0;
	close(fd);
	return word;
}

/* Root only: to others the numbers of pages are 0. */
static size_t
pages_active(int fd, size_t size)
{
	volatile char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i, n = 0;
	uint64_t pfn;

	assert_true(map != MAP_FAILED);
	for (i = 0; i < pages_in(size); i++) {
		(void)map[i * page];
		pfn = word_of("/proc/self/pagemap",
			  (uint64_t)(uintptr_t)&map[i * page] / page) &
		      PFN;
		n += pfn != 0 &&
		     (word_of("/proc/kpageflags", pfn) >> KPF_ACTIVE & 1) != 0;
	}
	munmap((void *)(uintptr_t)map, size);
	return n;
}

static void
send_all(struct pw_file *file, size_t size)
{
	SCOPED_WIRE wr = wide_wire();
	SCOPED_XFER xf;

	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = (off_t)size;
	xf.xf_send.snd_cache = PW_CACHE_AUTO;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
}

/* All pages of a file, by two reads through a descriptor of its own. */
static bool
kernel_tells(void)
{
	SCOPED_FILE *file = new_file("known", SMALL);
	static char data[SMALL];
	bool yes;

	assert_true(evict(file->fil_fd, SMALL));
	for (int i = 0; i < 3; i++)
		yes = pread(file->fil_fd, data, SMALL, 0) == (ssize_t)SMALL;
	yes = yes && pages_active(file->fil_fd, SMALL) > 0;
	return yes;
}

/* A page that is waited for, and one of each 64 KiB that is asked about, count twice. */
static void
check_active(const char *name, size_t size)
{
	SCOPED_FILE *file = new_file(name, size);
	size_t pages = pages_in(size);

	assert_true(evict(file->fil_fd, size));
	send_all(file, size);
	assert_int_equal(pages_resident(file->fil_fd, 0, size), pages);
	assert_in_range(pages_active(file->fil_fd, size), 0, pages / 2);
	send_all(file, size);
	send_all(file, size);
	assert_in_range(pages_active(file->fil_fd, size), pages * 3 / 4, pages);
}

TEST(only_pages_sent_twice_are_active)
{
	skip_unless(NEED_EVICTION | NEED_NOWAIT | NEED_EXACT);
	if (!kernel_tells()) {
		print_message("the kernel does not tell here\n");
		skip();
	}
	check_active("small", SMALL);
	check_active("large", LARGE);
}
