/*
 * record: see record.h.
 */
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <string.h>

#include "server/tls/record.h"

/* Minimum payload of a record of TLS 1.3, bytes: a type and a tag. */
#define LEAST	   (1 + RECORD_TAG)
/* maximum payload of a record of TLS 1.3, bytes */
#define LONGEST_13 (RECORD_PLAIN + 256)

/* version in the header of each encrypted record: TLS 1.2, also in TLS 1.3 */
static const unsigned char version[] = {3, 3};

static void
record_put_length(unsigned char *to, size_t len)
{
	to[0] = (unsigned char)(len >> 8);
	to[1] = (unsigned char)len;
}

static void
record_put_header(unsigned char *to, unsigned char type, size_t len)
{
	to[0] = type;
	memcpy(to + 1, version, sizeof(version));
	record_put_length(to + 1 + sizeof(version), len);
}

static void
record_make_nonce(
    const struct record_key *rk, unsigned char nonce[RECORD_NONCE])
{
	unsigned char number[RECORD_EXPLICIT];

	record_put_number(number, rk->rk_number);
	memcpy(nonce, rk->rk_iv, RECORD_NONCE);
	if (rk->rk_explicit) {
		memcpy(nonce + RECORD_NONCE - RECORD_EXPLICIT, number,
		    RECORD_EXPLICIT);
		return;
	}
	for (int i = 0; i < RECORD_EXPLICIT; i++)
		nonce[RECORD_NONCE - RECORD_EXPLICIT + i] ^= number[i];
}

static bool
record_encrypt(
    EVP_CIPHER_CTX *ctx, const void *data, size_t len, unsigned char *to)
{
	int n;

	return len == 0 || EVP_EncryptUpdate(ctx, to, &n, data, (int)len) == 1;
}

/*
 * Encrypts the data, and the type unless it is NULL, and appends the tag.  The tag also
 * authenticates `aad`.
 */
static bool
record_seal(struct record_key *rk, const unsigned char *aad, size_t aad_len,
    const void *data, size_t len, const unsigned char *type, unsigned char *to)
{
	EVP_CIPHER_CTX *ctx = rk->rk_cipher;
	unsigned char nonce[RECORD_NONCE], *end = to + len;
	int n;

	record_make_nonce(rk, nonce);
	if (EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, nonce) != 1 ||
	    EVP_EncryptUpdate(ctx, NULL, &n, aad, (int)aad_len) != 1 ||
	    !record_encrypt(ctx, data, len, to))
		return false;
	if (type != NULL && !record_encrypt(ctx, type, 1, end++))
		return false;
	return EVP_EncryptFinal_ex(ctx, end, &n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(
		   ctx, EVP_CTRL_AEAD_GET_TAG, RECORD_TAG, end) == 1;
}

static size_t
record_write_13(struct record_key *rk, unsigned char type, const void *data,
    size_t len, unsigned char *to)
{
	record_put_header(to, SSL3_RT_APPLICATION_DATA, len + 1 + RECORD_TAG);
	if (!record_seal(
		rk, to, RECORD_HEADER, data, len, &type, to + RECORD_HEADER))
		return 0;
	return RECORD_HEADER + len + 1 + RECORD_TAG;
}

static size_t
record_write_12(struct record_key *rk, unsigned char type, const void *data,
    size_t len, unsigned char *to)
{
	size_t skip = rk->rk_explicit ? RECORD_EXPLICIT : 0;
	unsigned char aad[RECORD_EXPLICIT + RECORD_HEADER];

	record_put_number(aad, rk->rk_number);
	record_put_header(aad + RECORD_EXPLICIT, type, len);
	record_put_header(to, type, skip + len + RECORD_TAG);
	if (skip > 0)
		record_put_number(to + RECORD_HEADER, rk->rk_number);
	if (!record_seal(rk, aad, sizeof(aad), data, len, NULL,
		to + RECORD_HEADER + skip))
		return 0;
	return RECORD_HEADER + skip + len + RECORD_TAG;
}

/* Never uses a record number twice, even after a failure. */
size_t
record_write(struct record_key *rk, unsigned char type, const void *data,
    size_t len, unsigned char *to)
{
	size_t n = rk->rk_hides ? record_write_13(rk, type, data, len, to)
				: record_write_12(rk, type, data, len, to);

	rk->rk_number++;
	return n;
}

/* ------------------------------------------------------------------- reading */

size_t
record_length(const unsigned char *mem, size_t len)
{
	return len < RECORD_HEADER
		   ? 0
		   : RECORD_HEADER + ((size_t)mem[3] << 8 | mem[4]);
}

static bool
record_has_version(const unsigned char *mem)
{
	return memcmp(mem + 1, version, sizeof(version)) == 0;
}

static bool
record_decrypt(EVP_CIPHER_CTX *ctx, unsigned char *data, size_t len)
{
	int n;

	return len == 0 ||
	       EVP_DecryptUpdate(ctx, data, &n, data, (int)len) == 1;
}

/* Decrypts `data` in place, and checks the tag that follows it. */
static bool
record_open_sealed(struct record_key *rk, const unsigned char *nonce,
    const unsigned char *aad, size_t aad_len, unsigned char *data, size_t len)
{
	EVP_CIPHER_CTX *ctx = rk->rk_cipher;
	unsigned char *tag = data + len;
	int n;

	rk->rk_number++;
	return EVP_DecryptInit_ex(ctx, NULL, NULL, NULL, nonce) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &n, aad, (int)aad_len) == 1 &&
	       record_decrypt(ctx, data, len) &&
	       EVP_CIPHER_CTX_ctrl(
		   ctx, EVP_CTRL_AEAD_SET_TAG, (int)RECORD_TAG, tag) == 1 &&
	       EVP_DecryptFinal_ex(ctx, tag, &n) == 1;
}

/*
 * Removes the padding (zeros), and the type that precedes the padding, from the end of the
 * plaintext.  Returns 0 or an alert.
 */
static int
record_take_type(struct record_text *rt)
{
	size_t n = rt->rt_len;

	while (n > 0 && rt->rt_data[n - 1] == 0)
		n--;
	if (n == 0)
		return SSL_AD_UNEXPECTED_MESSAGE;
	rt->rt_len = n - 1;
	rt->rt_type = rt->rt_data[n - 1];
	return rt->rt_len > RECORD_PLAIN ? SSL_AD_RECORD_OVERFLOW : 0;
}

static int
record_read_13(struct record_key *rk, unsigned char *mem, size_t len,
    struct record_text *rt)
{
	unsigned char nonce[RECORD_NONCE];

	if (mem[0] != SSL3_RT_APPLICATION_DATA)
		return SSL_AD_UNEXPECTED_MESSAGE;
	if (!record_has_version(mem))
		return SSL_AD_DECODE_ERROR;
	if (len < RECORD_HEADER + LEAST)
		return SSL_AD_BAD_RECORD_MAC;
	if (len > RECORD_HEADER + LONGEST_13)
		return SSL_AD_RECORD_OVERFLOW;
	rt->rt_data = mem + RECORD_HEADER;
	rt->rt_len = len - RECORD_HEADER - RECORD_TAG;
	record_make_nonce(rk, nonce);
	if (!record_open_sealed(
		rk, nonce, mem, RECORD_HEADER, rt->rt_data, rt->rt_len))
		return SSL_AD_BAD_RECORD_MAC;
	return record_take_type(rt);
}

static int
record_read_12(struct record_key *rk, unsigned char *mem, size_t len,
    struct record_text *rt)
{
	size_t skip = rk->rk_explicit ? RECORD_EXPLICIT : 0;
	unsigned char nonce[RECORD_NONCE], aad[RECORD_EXPLICIT + RECORD_HEADER];
	size_t same = RECORD_HEADER - 2; /* all but the length */

	if (!record_has_version(mem))
		return SSL_AD_PROTOCOL_VERSION;
	if (len < RECORD_HEADER + skip + RECORD_TAG)
		return SSL_AD_BAD_RECORD_MAC;
	if (len > RECORD_LONGEST)
		return SSL_AD_RECORD_OVERFLOW;
	rt->rt_type = mem[0];
	rt->rt_data = mem + RECORD_HEADER + skip;
	rt->rt_len = len - RECORD_HEADER - skip - RECORD_TAG;
	if (rt->rt_len > RECORD_PLAIN)
		return SSL_AD_RECORD_OVERFLOW;
	record_make_nonce(rk, nonce);
	/* The client chooses the explicit part of the nonce. */
	memcpy(nonce + RECORD_NONCE - skip, mem + RECORD_HEADER, skip);
	record_put_number(aad, rk->rk_number);
	memcpy(aad + RECORD_EXPLICIT, mem, same);
	record_put_length(aad + RECORD_EXPLICIT + same, rt->rt_len);
	return record_open_sealed(
		   rk, nonce, aad, sizeof(aad), rt->rt_data, rt->rt_len)
		   ? 0
		   : SSL_AD_BAD_RECORD_MAC;
}

int
record_read(struct record_key *rk, unsigned char *mem, size_t len,
    struct record_text *rt)
{
	return rk->rk_hides ? record_read_13(rk, mem, len, rt)
			    : record_read_12(rk, mem, len, rt);
}
