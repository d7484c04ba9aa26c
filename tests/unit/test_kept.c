/*
 * Windows on a device with a long read-ahead, for a server that may not ask what is resident: sent windows
 * are kept until they prove that their read-ahead marks can be removed (lib/disk/fetch.c).
 */
#include "xfer_fixture.h"

#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/os/os.h"

#define FOLIOS 6
#define SIZE   (FOLIOS * OS_FOLIO)

static unsigned asked; /* calls of os_nowait behind the first folio */
static unsigned unmarked[FOLIOS]; /* calls of os_unmark, by folio */

int __wrap_os_cachestat(int, off_t, size_t);
int __real_os_nowait(int, off_t, size_t);
int __wrap_os_nowait(int, off_t, size_t);
void __wrap_os_unmark(int, off_t);

int
__wrap_os_cachestat(int fd, off_t off, size_t len)
{
	(void)fd, (void)off, (void)len;
	return -EPERM;
}

int
__wrap_os_nowait(int fd, off_t off, size_t len)
{
	asked += off >= (off_t)OS_FOLIO && off < (off_t)SIZE;
	return __real_os_nowait(fd, off, len);
}

/* Does not call the function: the device's own read-ahead is another one, which would read. */
void
__wrap_os_unmark(int fd, off_t off)
{
	(void)fd;
	unmarked[(size_t)off / OS_FOLIO]++;
}

/* Opens a file that can be evicted, on a device that says it has a read-ahead of a folio. */
static struct pw_file *
marked_file(void)
{
	struct pw_device *dv;
	struct pw_file *file;

	skip_unless(NEED_EVICTION | NEED_NOWAIT);
	file = new_file("f", SIZE);
	as_another_owner(file);
	dv = file_priv(file)->fp_device;
	device_step(dv);
	atomic_store(&dv->dv_readahead, OS_FOLIO);
	return file;
}

static void
send_cold(struct pw_file *file)
{
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	pins_reap(fx->fx_pool->pl_pins, file->fil_dev);
	assert_true(evict(file->fil_fd, SIZE));
	memset(unmarked, 0, sizeof(unmarked));
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = (off_t)SIZE;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	wire_has_file(&wr, 0, (off_t)SIZE);
}

TEST(each_mark_is_removed_once_without_a_residency_check)
{
	SCOPED_FILE *file = marked_file();

	send_cold(file);
	if (unmarked[FOLIOS - 1] == 0)
		skip(); /* RLIMIT_MEMLOCK, or no large folios here */
	for (size_t i = 0; i < FOLIOS; i++)
		assert_int_equal(unmarked[i], 1);
	/* RWF_NOWAIT may check windows that were fetched before: the second download could ask. */
	send_cold(file);
	for (size_t i = 1; i < FOLIOS; i++)
		assert_int_equal(unmarked[i], 1);
	assert_int_equal(asked, 0);
}
