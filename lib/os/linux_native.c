/*
 * linux_native: os_native_send does not exist on Linux, whose sendfile(2) waits for missing pages.
 */
#include <errno.h>

#include "lib/os/os.h"

int
os_native_send(int sock, int fd, off_t off, size_t len,
    const struct os_native *on, size_t *sent)
{
	(void)sock, (void)fd, (void)off, (void)len, (void)on;
	*sent = 0;
	return -ENOSYS;
}

int
os_native_map(int fd, off_t off, size_t block)
{
	(void)fd, (void)off, (void)block;
	return -EOPNOTSUPP;
}

long
os_unready(int sock)
{
	(void)sock;
	return -ENOSYS;
}

uint64_t
os_peer(int sock)
{
	(void)sock;
	return 0;
}

unsigned
os_native_reads(void)
{
	return 0;
}

int
os_native_probe(const char **why)
{
	*why = "only sendfile(2) of FreeBSD does not wait for the disk";
	return -ENOSYS;
}
