/*
 * kernel: the kernel encrypts what is sent on a socket, so that sendfile(2) works (Linux: TLS_TX of
 * Documentation/networking/tls.rst).  What is received is decrypted by record.h all the same.
 */
#ifndef SERVER_TLS_KERNEL_H
#define SERVER_TLS_KERNEL_H

#include "server/tls/record_key.h"

/* Does this kernel (TCP_ULP in tcp(7))?  As root it may load the module. */
bool tls_kernel_can(void);

/*
 * From the next byte on it makes the records; rk_cipher is not needed.  False: not of this
 * cipher, and the socket is as it was.
 */
bool tls_kernel_begin(
    int fd, const struct record_key *, const struct record_material *);

/* A record that is no data: 0 or -errno. */
int tls_kernel_say(int fd, unsigned char type, const void *data, size_t len);

#endif
