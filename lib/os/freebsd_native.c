/*
 * freebsd_native: os_native_send, by sendfile(2), which is asynchronous since FreeBSD 11, and the
 * functions that other modules need for it.  These functions have a file of their own, so that
 * tests on other systems can build them with a sendfile of their own.
 */
#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <unistd.h>

#include "lib/os/freebsd.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"

#define ASYNCHRONOUS 1100000 /* __FreeBSD_version of FreeBSD 11 */
/* maximum pages in SF_FLAGS; the kernel reads fewer */
#define PAGES_MOST   0x7fff
#define READS_LEAST  32 /* fewest vm.vnode_pbufs that the kernel chooses */

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
 * Does not call lseek(2) with SEEK_DATA where FIOBMAP2 is not supported, as on nullfs.  That call reads
 * the same indirect blocks, but has an exclusive lock on the vnode meanwhile, for which sendfile(2) on the
 * loop would wait.
 */
int
os_native_map(int fd, off_t off, size_t block)
{
	struct fiobmap2_arg arg = {.bn = off / (off_t)block};

	if (ioctl(fd, FIOBMAP2, &arg) == 0)
		return 0;
	return freebsd_native_lacks_bmap(errno) ? -EOPNOTSUPP : -errno;
}

/*
 * FIONSPACE counts all bytes in the queue, and FIONWRITE those in front of the first page that is not
 * ready.  FIONSPACE comes first, so bytes that are acknowledged in between make the result too large, not
 * too small.
 */
long
os_unready(int sock)
{
	int size, space, ready;
	socklen_t len = sizeof(size);

	if (getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, &len) == -1 ||
	    ioctl(sock, FIONSPACE, &space) == -1 ||
	    ioctl(sock, FIONWRITE, &ready) == -1)
		return -errno;
	return size - space > ready ? size - space - ready : 0;
}

uint64_t
os_peer(int sock)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer), i;
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	if (getpeername(sock, (struct sockaddr *)&peer, &len) == -1 ||
	    peer.ss_family == AF_UNIX)
		return 0;
	for (i = 0; i < len && i < sizeof(peer); i++)
		hash =
		    (hash ^ ((const unsigned char *)&peer)[i]) * 0x100000001b3;
	return hash | 1;
}

unsigned
os_native_reads(void)
{
	int pbufs = os_freebsd_sysctl("vm.vnode_pbufs");

	return pbufs > 0 ? (unsigned)pbufs : READS_LEAST;
}

int
os_native_probe(const char **why)
{
	*why = getosreldate() >= ASYNCHRONOUS
		   ? NULL
		   : "before FreeBSD 11 sendfile(2) waits for the disk";
	return *why == NULL ? 0 : -ENOSYS;
}
