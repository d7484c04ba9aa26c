/*
 * kernel: see kernel.h.  FreeBSD's kernel TLS is not used, since kernel TLS in 15.1 sometimes
 * continued a body at an earlier byte.
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
