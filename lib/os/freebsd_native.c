/*
 * freebsd_native: os_native_send by sendfile(2), which is asynchronous since FreeBSD 11, and
 * what belongs to it.
 * It has a file of its own, so that tests on other systems can build it with a sendfile
 * of their own.
 */
#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <unistd.h>

#include "lib/os/meter.h"
#include "lib/os/os.h"

#define ASYNCHRONOUS 1100000 /* __FreeBSD_version of FreeBSD 11 */
/* maximum pages in SF_FLAGS; the kernel reads fewer */
#define PAGES_MOST   0x7fff

static int
freebsd_native_flags(const struct os_native *on)
{
	size_t page = os_page_size(),
	       pages = (on->on_readahead + page - 1) / page;

	if (pages > PAGES_MOST)
		pages = PAGES_MOST;
	return SF_FLAGS(
	    (int)pages, SF_NODISKIO | (on->on_nocache ? SF_NOCACHE : 0));
}

/*
 * Refuses a `len` of 0, which would mean up to the end of the file.  Returns -EBUSY for ENOBUFS
 * too, since a lack of buffers is as brief as a busy page.
 */
int
os_native_send(int sock, int fd, off_t off, size_t len,
    const struct os_native *on, size_t *sent)
{
	struct iovec head = {
	    .iov_base = (void *)(uintptr_t)on->on_mem,
	    .iov_len = on->on_mem_len,
	};
	struct sf_hdtr hdtr = {.headers = &head, .hdr_cnt = 1};
	off_t sbytes = 0;
	int error;

	*sent = 0;
	if (len == 0)
		return -EINVAL;
	meter_call(METER_SENDFILE);
	error = sendfile(fd, sock, off, len, on->on_mem_len > 0 ? &hdtr : NULL,
		    &sbytes, freebsd_native_flags(on)) == -1
		    ? -errno
		    : 0;
	*sent = (size_t)sbytes;
	return error == -ENOBUFS ? -EBUSY : error;
}

/* Returns true if the kernel, the file system or Capsicum does not support FIOBMAP2. */
static bool
freebsd_native_lacks_bmap(int error)
{
	return error == EOPNOTSUPP || error == ENOTTY || error == ENOTCAPABLE;
}

/*
 * Calls lseek(2) where FIOBMAP2 is not supported, as on nullfs, which passes only the ioctl of SEEK_DATA
 * to the file system below.  SEEK_DATA reads the same indirect blocks, and more of a hole.  It first
 * writes dirty pages of the file.  The offset of the descriptor is not used.
 */
int
os_native_map(int fd, off_t off, size_t block)
{
	struct fiobmap2_arg arg = {.bn = off / (off_t)block};

	if (ioctl(fd, FIOBMAP2, &arg) == 0)
		return 0;
	if (!freebsd_native_lacks_bmap(errno))
		return -errno;
	/* ENXIO means that the rest of the file is a hole. */
	if (lseek(fd, off, SEEK_DATA) != -1 || errno == ENXIO)
		return 0;
	return errno == EINVAL || errno == ENOTTY ? -EOPNOTSUPP : -errno;
}

int
os_native_probe(const char **why)
{
	*why = getosreldate() >= ASYNCHRONOUS
		   ? NULL
		   : "it needs FreeBSD 11 or later, where sendfile(2) does not "
		     "wait for the disk";
	return *why == NULL ? 0 : -ENOSYS;
}
