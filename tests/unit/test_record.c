/*
 * Tests of server/tls/record.c and record_key.c: what it writes is read by OpenSSL's client, and what that
 * writes is read.
 */
#include "test.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/tls/key_schedule.h"
#include "server/tls/record.h"

/* A server and its client, with memory between them. */
struct pair {
	SSL_CTX *pr_contexts[2];
	SSL *pr_server;
	SSL *pr_client;
	BIO *pr_out; /* the server's bytes go in here */
	struct record_key pr_writes;
	struct record_key pr_reads;
	uint64_t pr_records;
};

static const struct suite {
	int su_version;
	const char *su_name;
} suites[] = {
    {TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256"},
    {TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384"},
    {TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256"},
    {TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305"},
};

#define SUITES (sizeof(suites) / sizeof(suites[0]))

static void
on_message(int writes, int version, int type, const void *data, size_t len,
    SSL *ssl, void *arg)
{
	struct pair *pr = arg;

	(void)version, (void)data, (void)len, (void)ssl;
	if (writes && type == SSL3_RT_HEADER && pr->pr_writes.rk_secret_len > 0)
		pr->pr_records++;
}

static void
use_certificate(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	assert_non_null(key);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), 0));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	assert_int_equal(X509_set_pubkey(cert, key), 1);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static SSL *
new_end(struct pair *pr, int which, const struct suite *su)
{
	SSL_CTX *ctx = which == 0 ? SSL_CTX_new_ex(NULL, KEY_SCHEDULE_QUERY,
					TLS_server_method())
				  : SSL_CTX_new(TLS_client_method());

	pr->pr_contexts[which] = ctx;
	assert_int_equal(SSL_CTX_set_min_proto_version(ctx, su->su_version), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, su->su_version), 1);
	assert_int_equal(su->su_version == TLS1_3_VERSION
			     ? SSL_CTX_set_ciphersuites(ctx, su->su_name)
			     : SSL_CTX_set_cipher_list(ctx, su->su_name),
	    1);
	if (which == 0)
		use_certificate(ctx);
	return SSL_new(ctx);
}

static void
shake_hands(struct pair *pr)
{
	int i, server = 0, client = 0;

	for (i = 0; i < 10 && (server != 1 || client != 1); i++) {
		client = SSL_do_handshake(pr->pr_client);
		key_schedule_store(&pr->pr_writes, &pr->pr_reads);
		server = SSL_do_handshake(pr->pr_server);
		key_schedule_store(NULL, NULL);
	}
	assert_int_equal(server, 1);
	assert_int_equal(client, 1);
}

static void
begin(struct pair *pr, struct record_key *rk, uint64_t number)
{
	struct record_material rm;

	assert_true(record_key_derive(rk, pr->pr_server, number, &rm));
	assert_true(record_key_begin(rk, &rm));
}

static void
open_pair(struct pair *pr, const struct suite *su)
{
	BIO *client;

	memset(pr, 0, sizeof(*pr));
	pr->pr_reads.rk_reads = true;
	pr->pr_server = new_end(pr, 0, su);
	pr->pr_client = new_end(pr, 1, su);
	SSL_set_msg_callback(pr->pr_server, on_message);
	SSL_set_msg_callback_arg(pr->pr_server, pr);
	assert_int_equal(
	    BIO_new_bio_pair(&pr->pr_out, 1 << 20, &client, 1 << 20), 1);
	SSL_set_bio(pr->pr_server, pr->pr_out, pr->pr_out);
	SSL_set_bio(pr->pr_client, client, client);
	SSL_set_accept_state(pr->pr_server);
	SSL_set_connect_state(pr->pr_client);
	shake_hands(pr);
	begin(pr, &pr->pr_writes, pr->pr_records);
	begin(pr, &pr->pr_reads, 0);
}

static void
close_pair(struct pair *pr)
{
	record_key_end(&pr->pr_writes);
	record_key_end(&pr->pr_reads);
	SSL_free(pr->pr_server);
	SSL_free(pr->pr_client);
	SSL_CTX_free(pr->pr_contexts[0]);
	SSL_CTX_free(pr->pr_contexts[1]);
}

static void
give(struct pair *pr, unsigned char type, const void *data, size_t len)
{
	SCOPED(free_at) unsigned char *record = malloc(len + RECORD_OVERHEAD);
	size_t n = record_write(&pr->pr_writes, type, data, len, record);

	assert_true(n > len && n <= len + RECORD_OVERHEAD);
	assert_int_equal(BIO_write(pr->pr_out, record, (int)n), (int)n);
}

/* All of it comes, and nothing more. */
static void
expect(struct pair *pr, const char *data, size_t len)
{
	char got[RECORD_PLAIN];
	size_t n, all = 0;

	while (all < len) {
		assert_int_equal(
		    SSL_read_ex(pr->pr_client, got, sizeof(got), &n), 1);
		assert_true(n <= len - all);
		assert_memory_equal(got, data + all, n);
		all += n;
	}
	assert_int_equal(SSL_read_ex(pr->pr_client, got, 1, &n), 0);
	assert_int_equal(SSL_get_error(pr->pr_client, 0), SSL_ERROR_WANT_READ);
}

static void
fill(char *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		data[i] = (char)(seed >> 16);
	}
}

TEST(client_reads_each_record_of_each_suite)
{
	static const size_t lengths[] = {
	    0, 1, 15, 16, 17, 1000, 4096, RECORD_PLAIN - 1, RECORD_PLAIN, 0, 3};
	char data[RECORD_PLAIN];
	struct pair pr;

	for (size_t i = 0; i < SUITES; i++) {
		open_pair(&pr, &suites[i]);
		for (size_t j = 0; j < sizeof(lengths) / sizeof(*lengths);
		     j++) {
			fill(data, lengths[j], (unsigned)(i + j));
			give(&pr, SSL3_RT_APPLICATION_DATA, data, lengths[j]);
			expect(&pr, data, lengths[j]);
		}
		close_pair(&pr);
	}
}

TEST(close_notify_is_the_end)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL3_AD_CLOSE_NOTIFY};
	struct pair pr;
	char byte;
	size_t n;

	for (size_t i = 0; i < SUITES; i++) {
		open_pair(&pr, &suites[i]);
		give(&pr, SSL3_RT_ALERT, close_notify, sizeof(close_notify));
		assert_int_equal(SSL_read_ex(pr.pr_client, &byte, 1, &n), 0);
		assert_int_equal(
		    SSL_get_error(pr.pr_client, 0), SSL_ERROR_ZERO_RETURN);
		close_pair(&pr);
	}
}

TEST(next_key_is_the_one_that_the_client_expects)
{
	static const unsigned char update[] = {
	    SSL3_MT_KEY_UPDATE, 0, 0, 1, SSL_KEY_UPDATE_NOT_REQUESTED};
	struct pair pr;

	for (size_t i = 0; suites[i].su_version == TLS1_3_VERSION; i++) {
		open_pair(&pr, &suites[i]);
		for (int times = 0; times < 3; times++) {
			give(&pr, SSL3_RT_HANDSHAKE, update, sizeof(update));
			assert_true(record_key_update(&pr.pr_writes));
			give(&pr, SSL3_RT_APPLICATION_DATA, "after", 5);
			expect(&pr, "after", 5);
		}
		close_pair(&pr);
	}
}

TEST(key_is_replaced_after_many_records_in_tls_1_3_only)
{
	struct pair pr;

	for (size_t i = 0; i < SUITES; i++) {
		open_pair(&pr, &suites[i]);
		assert_false(record_key_is_worn(&pr.pr_writes));
		pr.pr_writes.rk_number = RECORD_MOST - 1;
		assert_false(record_key_is_worn(&pr.pr_writes));
		pr.pr_writes.rk_number = RECORD_MOST;
		assert_int_equal(record_key_is_worn(&pr.pr_writes),
		    suites[i].su_version == TLS1_3_VERSION);
		close_pair(&pr);
	}
}

TEST(tls_1_2_has_no_next_key)
{
	SCOPED(close_pair) struct pair pr;

	open_pair(&pr, &suites[3]);
	assert_false(record_key_update(&pr.pr_writes));
}

/* A byte that was changed on its way is noticed: the tag covers all of it. */
TEST(changed_record_is_refused)
{
	unsigned char record[64];
	struct pair pr;
	size_t i, at, n;
	char got[16];

	for (i = 0; i < SUITES; i++) {
		for (at = 5; at < 64; at += 7) {
			open_pair(&pr, &suites[i]);
			n = record_write(&pr.pr_writes,
			    SSL3_RT_APPLICATION_DATA, "abc", 3, record);
			if (at < n) {
				record[at] ^= 1;
				BIO_write(pr.pr_out, record, (int)n);
				assert_int_equal(SSL_read_ex(pr.pr_client, got,
						     sizeof(got), &n),
				    0);
				assert_int_equal(SSL_get_error(pr.pr_client, 0),
				    SSL_ERROR_SSL);
			}
			close_pair(&pr);
		}
	}
}

/* ------------------------------------------------------------------- reading */

/* The next record of the client; its length. */
static size_t
come(struct pair *pr, unsigned char *mem)
{
	size_t len;

	assert_int_equal(
	    BIO_read(pr->pr_out, mem, (int)RECORD_HEADER), (int)RECORD_HEADER);
	len = record_length(mem, RECORD_HEADER);
	assert_true(len <= RECORD_LONGEST);
	len -= RECORD_HEADER;
	assert_int_equal(
	    BIO_read(pr->pr_out, mem + RECORD_HEADER, (int)len), (int)len);
	return RECORD_HEADER + len;
}

static void
expect_record(struct pair *pr, unsigned char type, const void *data, size_t len)
{
	SCOPED(free_at) unsigned char *mem = malloc(RECORD_LONGEST);
	struct record_text rt;
	size_t n = come(pr, mem);

	assert_int_equal(record_read(&pr->pr_reads, mem, n, &rt), 0);
	assert_int_equal(rt.rt_type, type);
	assert_int_equal(rt.rt_len, len);
	assert_memory_equal(rt.rt_data, data, len);
}

TEST(each_record_of_the_client_is_read)
{
	static const size_t lengths[] = {
	    1, 15, 16, 17, 1000, 4096, RECORD_PLAIN - 1, RECORD_PLAIN, 3};
	char data[RECORD_PLAIN];
	struct pair pr;
	size_t n;

	for (size_t i = 0; i < SUITES; i++) {
		open_pair(&pr, &suites[i]);
		for (size_t j = 0; j < sizeof(lengths) / sizeof(*lengths);
		     j++) {
			fill(data, lengths[j], (unsigned)(i + j));
			assert_int_equal(
			    SSL_write_ex(pr.pr_client, data, lengths[j], &n),
			    1);
			expect_record(
			    &pr, SSL3_RT_APPLICATION_DATA, data, lengths[j]);
		}
		close_pair(&pr);
	}
}

TEST(end_of_the_client_is_read)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL3_AD_CLOSE_NOTIFY};
	struct pair pr;

	for (size_t i = 0; i < SUITES; i++) {
		open_pair(&pr, &suites[i]);
		SSL_shutdown(pr.pr_client);
		expect_record(
		    &pr, SSL3_RT_ALERT, close_notify, sizeof(close_notify));
		close_pair(&pr);
	}
}

TEST(key_of_the_client_is_followed)
{
	unsigned char update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, 0};
	struct pair pr;
	size_t n;

	for (size_t i = 0; suites[i].su_version == TLS1_3_VERSION; i++) {
		open_pair(&pr, &suites[i]);
		for (int times = 0; times < 3; times++) {
			update[4] = (unsigned char)(times % 2);
			assert_int_equal(
			    SSL_key_update(pr.pr_client, update[4]), 1);
			assert_int_equal(
			    SSL_write_ex(pr.pr_client, "after", 5, &n), 1);
			expect_record(
			    &pr, SSL3_RT_HANDSHAKE, update, sizeof(update));
			assert_true(record_key_update(&pr.pr_reads));
			expect_record(
			    &pr, SSL3_RT_APPLICATION_DATA, "after", 5);
		}
		close_pair(&pr);
	}
}

/* Header and text, but for the length, by which the caller has found the record. */
TEST(changed_record_of_the_client_is_refused)
{
	unsigned char mem[64];
	struct record_text rt;
	struct pair pr;
	size_t len, n;

	for (size_t i = 0; i < SUITES; i++) {
		for (size_t at = 0; at < sizeof(mem); at++) {
			open_pair(&pr, &suites[i]);
			assert_int_equal(
			    SSL_write_ex(pr.pr_client, "abc", 3, &n), 1);
			len = come(&pr, mem);
			if (at < len && at != 3 && at != 4) {
				mem[at] ^= 0x80;
				assert_int_not_equal(
				    record_read(&pr.pr_reads, mem, len, &rt),
				    0);
			}
			close_pair(&pr);
		}
	}
}

TEST(record_of_no_length_is_refused)
{
	unsigned char mem[RECORD_LONGEST + 1] = {
	    SSL3_RT_APPLICATION_DATA, 3, 3};
	struct record_text rt;
	struct pair pr;

	for (size_t i = 0; i < SUITES; i++) {
		open_pair(&pr, &suites[i]);
		for (size_t n = RECORD_HEADER; n < RECORD_HEADER + 17; n++)
			assert_int_equal(record_read(&pr.pr_reads, mem, n, &rt),
			    SSL_AD_BAD_RECORD_MAC);
		assert_int_equal(
		    record_read(&pr.pr_reads, mem, sizeof(mem), &rt),
		    SSL_AD_RECORD_OVERFLOW);
		close_pair(&pr);
	}
}

/* A record of ours is one of a client's where both have the same key: TLS 1.3. */
static void
read_own(struct pair *pr, const void *data, size_t len, int alert)
{
	SCOPED(free_at) unsigned char *mem = malloc(RECORD_LONGEST);
	struct record_text rt;
	struct record_material rm = {
	    .rm_cipher = EVP_CIPHER_CTX_get0_cipher(pr->pr_writes.rk_cipher)};
	struct record_key rk = pr->pr_writes;
	size_t n;

	memset(rm.rm_key, 7, sizeof(rm.rm_key));
	assert_true(record_key_begin(&rk, &rm));
	/* The type is the last byte that is not zero. */
	n = record_write(&rk, 0, data, len, mem);
	record_key_end(&rk);
	rk = pr->pr_reads;
	memcpy(rk.rk_iv, pr->pr_writes.rk_iv, sizeof(rk.rk_iv));
	rk.rk_number = pr->pr_writes.rk_number;
	assert_true(record_key_begin(&rk, &rm));
	assert_int_equal(record_read(&rk, mem, n, &rt), alert);
	if (alert == 0) {
		assert_int_equal(rt.rt_type, 'd');
		assert_int_equal(rt.rt_len, 3);
		assert_memory_equal(rt.rt_data, "abc", 3);
	}
	record_key_end(&rk);
}

TEST(padding_is_taken_off)
{
	unsigned char data[RECORD_PLAIN] = "abcd";
	struct pair pr;

	for (size_t i = 0; suites[i].su_version == TLS1_3_VERSION; i++) {
		open_pair(&pr, &suites[i]);
		read_own(&pr, data, 4, 0);
		read_own(&pr, data, 5, 0);
		read_own(&pr, data, sizeof(data), 0);
		/* No type. */
		read_own(&pr, data + 4, 0, SSL_AD_UNEXPECTED_MESSAGE);
		read_own(
		    &pr, data + 4, sizeof(data) - 4, SSL_AD_UNEXPECTED_MESSAGE);
		close_pair(&pr);
	}
}

int
setup_all(void **state)
{
	(void)state;
	if (record_key_prepare() != 0)
		return 1;
	return 0;
}
