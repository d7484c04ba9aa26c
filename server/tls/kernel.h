/*
 * kernel: makes the kernel encrypt the data of a socket, so that sendfile(2) works (Linux: TLS_TX
 * of Documentation/networking/tls.rst).  record.h still decrypts received records.
 */
#ifndef SERVER_TLS_KERNEL_H
#define SERVER_TLS_KERNEL_H

#include "server/tls/record_key.h"

/*
 * Returns true if this kernel can encrypt records (TCP_ULP in tcp(7)).  If the caller is root, the
 * check may make the kernel load its module "tls".
 */
bool tls_kernel_can(void);

/*
 * Makes the kernel encrypt all bytes sent from now on, so that rk_cipher is not needed.  Returns
 * false if the kernel does not support the cipher; the kernel then encrypts nothing.
 */
bool tls_kernel_begin(
    int fd, const struct record_key *, const struct record_material *);

/* Sends a record that is not application data.  Returns 0 or -errno. */
int tls_kernel_say(int fd, unsigned char type, const void *data, size_t len);

#endif
