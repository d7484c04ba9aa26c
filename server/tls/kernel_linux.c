/*
 * kernel: see kernel.h.
 */
#include <openssl/ssl.h>
#include <sys/types.h>

#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/tls/kernel.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

static bool
tls_kernel_linux_use(int fd)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0;
}

/*
 * Tries an unconnected socket.  A kernel that supports TLS refuses such a socket with ENOTCONN;
 * other kernels fail with another error.
 */
bool
tls_kernel_can(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool can = fd != -1 && !tls_kernel_linux_use(fd) && errno == ENOTCONN;

	if (fd != -1)
		close(fd);
	return can;
}

/*
 * Fills in the kernel's structure of a cipher.  All these structures have the same members: key,
 * salt (the first bytes of each nonce), iv (the rest of a nonce) and rec_seq.  If records carry
 * the rest of their nonce, iv is the rest for the first record.
 */
#define FILL(ci, rk, rm, name)                                          \
	do {                                                            \
		(ci)->info.version =                                    \
		    (rk)->rk_hides ? TLS_1_3_VERSION : TLS_1_2_VERSION; \
		(ci)->info.cipher_type = name;                          \
		memcpy((ci)->key, (rm)->rm_key, sizeof((ci)->key));     \
		memcpy((ci)->salt, (rk)->rk_iv, name##_SALT_SIZE);      \
		memcpy((ci)->iv, (rk)->rk_iv + name##_SALT_SIZE,        \
		    sizeof((ci)->iv));                                  \
		record_put_number((ci)->rec_seq, (rk)->rk_number);      \
		if ((rk)->rk_explicit)                                  \
			record_put_number((ci)->iv, (rk)->rk_number);   \
	} while (0)

union cipher {
	struct tls12_crypto_info_aes_gcm_128 ci_gcm128;
	struct tls12_crypto_info_aes_gcm_256 ci_gcm256;
	struct tls12_crypto_info_chacha20_poly1305 ci_chacha;
};

/*
 * Describes the cipher for the kernel.  Returns the length of the structure, or 0 if the cipher is
 * not supported.
 */
static socklen_t
tls_kernel_linux_describe(const struct record_key *rk,
    const struct record_material *rm, union cipher *ci)
{
	switch (EVP_CIPHER_get_nid(rm->rm_cipher)) {
	case NID_aes_128_gcm:
		FILL(&ci->ci_gcm128, rk, rm, TLS_CIPHER_AES_GCM_128);
		return sizeof(ci->ci_gcm128);
	case NID_aes_256_gcm:
		FILL(&ci->ci_gcm256, rk, rm, TLS_CIPHER_AES_GCM_256);
		return sizeof(ci->ci_gcm256);
	case NID_chacha20_poly1305:
		FILL(&ci->ci_chacha, rk, rm, TLS_CIPHER_CHACHA20_POLY1305);
		return sizeof(ci->ci_chacha);
	default:
		return 0;
	}
}

bool
tls_kernel_begin(
    int fd, const struct record_key *rk, const struct record_material *rm)
{
	union cipher ci = {.ci_gcm128 = {.info = {0}}};
	socklen_t len = tls_kernel_linux_describe(rk, rm, &ci);
	bool done = len > 0 && tls_kernel_linux_use(fd) &&
		    setsockopt(fd, SOL_TLS, TLS_TX, &ci, len) == 0;

	OPENSSL_cleanse(&ci, sizeof(ci));
	return done;
}

int
tls_kernel_say(int fd, unsigned char type, const void *data, size_t len)
{
	union {
		struct cmsghdr first;
		unsigned char room[CMSG_SPACE(sizeof(type))];
	} control = {.first = {0}};
	struct iovec iov = {(void *)(uintptr_t)data, len};
	struct msghdr msg = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control.room)};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

	cm->cmsg_level = SOL_TLS;
	cm->cmsg_type = TLS_SET_RECORD_TYPE;
	cm->cmsg_len = CMSG_LEN(sizeof(type));
	memcpy(CMSG_DATA(cm), &type, sizeof(type));
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == -1 ? -errno
								    : 0;
}
