/*
 * kernel: see kernel.h.  FreeBSD's kernel TLS is not used.  In 15.1 it sometimes continued a body at
 * an earlier byte.  In 15.0 it never sends the header of a sendfile(2) call (sf_hdtr) that has to read
 * a page, nor what follows, since sendfile_iodone() has only the pages encrypted.
 */
#include <errno.h>

#include "server/tls/kernel.h"

bool
tls_kernel_can(void)
{
	return false;
}

bool
tls_kernel_begin(
    int fd, const struct record_key *rk, const struct record_material *rm)
{
	(void)fd, (void)rk, (void)rm;
	return false;
}

int
tls_kernel_say(int fd, unsigned char type, const void *data, size_t len)
{
	(void)fd, (void)type, (void)data, (void)len;
	return -ENOTSUP;
}
