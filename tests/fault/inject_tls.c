/*
 * inject_tls: OpenSSL's calls that may fail, and its memory.  What fails of its own accord
 * leaves a cause in its queue; these leave none, as for want of memory.
 */
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "inject_wrap.h"

#define LOCKS 2 /* with which OpenSSL begins, before all else */

/* OpenSSL's allocations, wherever: one site each.  Its first locks are a site of their own. */
NUMBER(openssl_begin)
NUMBER(openssl_malloc)
NUMBER(openssl_realloc)
extern void *__real_malloc(size_t);
extern void *__real_realloc(void *, size_t);

static bool
is_beginning(void)
{
	static atomic_uint n;

	return atomic_load(&n) < LOCKS && atomic_fetch_add(&n, 1) < LOCKS;
}

static void *
openssl_malloc(size_t size, const char *file, int line)
{
	unsigned call;

	(void)file, (void)line;
	if (size == 0)
		return NULL;
	call = is_beginning() ? call_openssl_begin : call_openssl_malloc;
	if (inject_library(call) <= 0)
		return __real_malloc(size);
	errno = ENOMEM;
	return NULL;
}

static void *
openssl_realloc(void *mem, size_t size, const char *file, int line)
{
	(void)file, (void)line;
	if (inject_library(call_openssl_realloc) <= 0)
		return __real_realloc(mem, size);
	errno = ENOMEM;
	return NULL;
}

static void
openssl_free(void *mem, const char *file, int line)
{
	(void)file, (void)line;
	free(mem);
}

__attribute__((constructor)) static void
openssl_memory(void)
{
	CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free);
}

WRAP(SSL_new, SSL *, NULL, (SSL_CTX * ctx), (ctx))
WRAP(SSL_set_ex_data, int, 0, (SSL * ssl, int index, void *data),
    (ssl, index, data))
WRAP(SSL_do_handshake, int, -1, (SSL * ssl), (ssl))
WRAP(BIO_new, BIO *, NULL, (const BIO_METHOD *method), (method))
WRAP(SSL_CTX_new, SSL_CTX *, NULL, (const SSL_METHOD *method), (method))
WRAP(SSL_CTX_new_ex, SSL_CTX *, NULL,
    (OSSL_LIB_CTX * lib, const char *query, const SSL_METHOD *method),
    (lib, query, method))
WRAP(SSL_CTX_use_cert_and_key, int, 0,
    (SSL_CTX * ctx, X509 *cert, EVP_PKEY *key, STACK_OF(X509) * chain,
	int replaces),
    (ctx, cert, key, chain, replaces))
WRAP(EVP_EncryptUpdate, int, 0,
    (EVP_CIPHER_CTX * ctx, unsigned char *to, int *len,
	const unsigned char *from, int n),
    (ctx, to, len, from, n))
WRAP(EVP_EncryptFinal_ex, int, 0,
    (EVP_CIPHER_CTX * ctx, unsigned char *to, int *len), (ctx, to, len))
WRAP(EVP_DecryptUpdate, int, 0,
    (EVP_CIPHER_CTX * ctx, unsigned char *to, int *len,
	const unsigned char *from, int n),
    (ctx, to, len, from, n))
WRAP(EVP_DecryptFinal_ex, int, 0,
    (EVP_CIPHER_CTX * ctx, unsigned char *to, int *len), (ctx, to, len))
