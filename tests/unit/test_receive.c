/*
 * Tests of server/tls/receive.c: a client whose records are made by hand, with the keys of a
 * handshake of OpenSSL's client.
 */
#include <setjmp.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util/clock.h"
#include "server/tls/session.h"

static struct tls_context *context;

/* A session and its client. */
struct pair {
	struct tls *pr_tls;
	SSL_CTX *pr_context;
	SSL *pr_client;
	struct record_key pr_key; /* of the client's records */
	int pr_fds[2];
};

static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};

static size_t
first_site(const void *arg, const char *name, size_t len)
{
	(void)arg, (void)name, (void)len;
	return 0;
}

static int
make_context(void **state)
{
	static struct identity id = {.id_file = (char *)(uintptr_t) "memory"};
	static struct tls_site site = {.ts_identities = &id};
	static const struct tls_site *const sites[] = {&site};
	struct tls_settings tc = {.tc_ktls = TLS_KTLS_OFF,
	    .tc_sites = sites,
	    .tc_nsites = 1,
	    .tc_find = first_site};
	char why[256];

	(void)state;
	id.id_key = EVP_EC_gen("P-256");
	id.id_cert = X509_new();
	X509_gmtime_adj(X509_getm_notBefore(id.id_cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(id.id_cert), 3600);
	X509_set_pubkey(id.id_cert, id.id_key);
	X509_sign(id.id_cert, id.id_key, EVP_sha256());
	return tls_prepare() == 0
		   ? tls_context_create(&tc, &context, why, sizeof(why))
		   : -1;
}

static int
end_context(void **state)
{
	(void)state;
	tls_context_destroy(&context);
	return 0;
}

static void
on_secret(const SSL *ssl, const char *line)
{
	struct pair *pr = SSL_get_app_data(ssl);

	record_key_take(&pr->pr_key, line);
}

static void
take_client_key(struct pair *pr)
{
	struct record_material rm;

	assert_true(record_key_derive(&pr->pr_key, pr->pr_client, 0, &rm));
	pr->pr_key.rk_reads = false;
	assert_true(record_key_begin(&pr->pr_key, &rm));
}

static void
begin_pair(struct pair *pr, int version)
{
	memset(pr, 0, sizeof(*pr));
	pr->pr_key.rk_reads = true;
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pr->pr_fds), 0);
	pr->pr_tls = tls_create(context, pr->pr_fds[0]);
	pr->pr_context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_keylog_callback(pr->pr_context, on_secret);
	SSL_CTX_set_min_proto_version(pr->pr_context, version);
	SSL_CTX_set_max_proto_version(pr->pr_context, version);
	pr->pr_client = SSL_new(pr->pr_context);
	SSL_set_app_data(pr->pr_client, pr);
	SSL_set_fd(pr->pr_client, pr->pr_fds[1]);
	SSL_set_connect_state(pr->pr_client);
}

static void
open_pair(struct pair *pr, int version)
{
	int i;

	begin_pair(pr, version);
	for (i = 0; i < 10 && pr->pr_tls->tl_state < TLS_OPEN; i++) {
		SSL_do_handshake(pr->pr_client);
		tls_step(pr->pr_tls);
	}
	assert_int_equal(SSL_do_handshake(pr->pr_client), 1);
	assert_int_equal(pr->pr_tls->tl_state, TLS_OPEN);
	assert_null(pr->pr_tls->tl_ssl);
	take_client_key(pr);
}

static void
close_pair(struct pair *pr)
{
	tls_destroy(&pr->pr_tls);
	record_key_end(&pr->pr_key);
	SSL_free(pr->pr_client);
	SSL_CTX_free(pr->pr_context);
	close(pr->pr_fds[0]);
	close(pr->pr_fds[1]);
}

static void
put(struct pair *pr, const void *data, size_t len)
{
	assert_int_equal(write(pr->pr_fds[1], data, len), (ssize_t)len);
}

static size_t
make(struct pair *pr, unsigned char type, const void *data, size_t len,
    unsigned char *to)
{
	size_t n = record_write(&pr->pr_key, type, data, len, to);

	assert_true(n > len);
	return n;
}

static void
give(struct pair *pr, unsigned char type, const void *data, size_t len)
{
	unsigned char *mem = malloc(len + RECORD_OVERHEAD);

	put(pr, mem, make(pr, type, data, len, mem));
	free(mem);
}

static void
give_text(struct pair *pr, const char *text)
{
	give(pr, SSL3_RT_APPLICATION_DATA, text, strlen(text));
}

static void
expect(struct pair *pr, const char *text, size_t room)
{
	char got[64] = "";
	size_t len = strlen(text), n = 0;
	long more;

	while (n < len) {
		more = tls_recv(pr->pr_tls, got + n, room);
		assert_true(more > 0);
		n += (size_t)more;
	}
	assert_string_equal(got, text);
}

static void
expect_nothing(struct pair *pr)
{
	char byte;

	assert_int_equal(tls_recv(pr->pr_tls, &byte, 1), -EAGAIN);
	assert_true(tls_is_drained(pr->pr_tls));
}

/* The session is of no more use, and the client is told why; 0: it is not. */
static void
expect_refusal(struct pair *pr, int alert)
{
	char byte;
	int reason;

	assert_int_equal(tls_recv(pr->pr_tls, &byte, 1), -EPROTO);
	assert_int_equal(tls_recv(pr->pr_tls, &byte, 1), -EPROTO);
	assert_int_equal(tls_end(pr->pr_tls), -EPIPE);
	ERR_clear_error();
	assert_true(SSL_read(pr->pr_client, &byte, 1) <= 0);
	reason = ERR_GET_REASON(ERR_peek_error());
	assert_int_equal(reason, alert == 0 ? 0 : alert + SSL_AD_REASON_OFFSET);
}

/* What one record brings. */
static void
children_refused(
    int version, unsigned char type, const void *data, size_t len, int alert)
{
	struct pair pr;

	open_pair(&pr, version);
	give(&pr, type, data, len);
	expect_refusal(&pr, alert);
	close_pair(&pr);
}

/* ----------------------------------------------------------------------- data */

/* The client's last flight of TLS 1.2, in which each byte of Finished has a record. */
static void
send_in_pieces(struct pair *pr, unsigned char *flight, size_t len)
{
	struct record_key read = {.rk_reads = true};
	unsigned char piece[64];
	struct record_material rm;
	struct record_text rt;
	size_t n, at = 0;

	while (flight[at] != SSL3_RT_CHANGE_CIPHER_SPEC)
		at += record_length(flight + at, len - at);
	at += record_length(flight + at, len - at);
	assert_int_equal(write(pr->pr_fds[1], flight, at), at);
	assert_true(record_key_derive(&read, pr->pr_client, 0, &rm));
	read.rk_number = 0;
	assert_true(record_key_begin(&read, &rm));
	assert_int_equal(record_read(&read, flight + at, len - at, &rt), 0);
	record_key_end(&read);
	take_client_key(pr);
	pr->pr_key.rk_number = 0;
	for (size_t i = 0; i < rt.rt_len; i++) {
		n = record_write(
		    &pr->pr_key, SSL3_RT_HANDSHAKE, rt.rt_data + i, 1, piece);
		assert_int_equal(write(pr->pr_fds[1], piece, n), n);
	}
}

static void
finished_may_come_in_pieces(void **state)
{
	struct pair pr;
	unsigned char *flight;
	BIO *bio = BIO_new(BIO_s_mem());
	long len;

	(void)state;
	begin_pair(&pr, TLS1_2_VERSION);
	SSL_do_handshake(pr.pr_client);
	tls_step(pr.pr_tls);
	SSL_set0_wbio(pr.pr_client, bio);
	SSL_do_handshake(pr.pr_client);
	len = BIO_get_mem_data(bio, &flight);
	send_in_pieces(&pr, flight, (size_t)len);
	tls_step(pr.pr_tls);
	assert_int_equal(pr.pr_tls->tl_state, TLS_OPEN);
	assert_int_equal(SSL_do_handshake(pr.pr_client), 1);
	give_text(&pr, "behind it");
	expect(&pr, "behind it", 64);
	close_pair(&pr);
}

static void
text_comes_as_it_was_sent(void **state)
{
	struct pair pr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		expect_nothing(&pr);
		give_text(&pr, "GET / HTTP/1.1");
		expect(&pr, "GET / HTTP/1.1", 64);
		expect_nothing(&pr);
		close_pair(&pr);
	}
}

static void
record_may_come_byte_by_byte(void **state)
{
	unsigned char mem[64];
	struct pair pr;
	size_t n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		n = make(&pr, SSL3_RT_APPLICATION_DATA, "text", 4, mem);
		for (size_t at = 0; at < n; at++) {
			expect_nothing(&pr);
			assert_int_equal(tls_has_input(pr.pr_tls), at > 0);
			put(&pr, mem + at, 1);
		}
		expect(&pr, "text", 64);
		assert_false(tls_has_input(pr.pr_tls));
		close_pair(&pr);
	}
}

static void
many_records_are_taken_with_any_room(void **state)
{
	struct pair pr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (size_t room = 1; room < 12; room++) {
			open_pair(&pr, versions[i]);
			give_text(&pr, "abc");
			give_text(&pr, "defgh");
			give_text(&pr, "i");
			expect(&pr, "abcdefghi", room);
			expect_nothing(&pr);
			close_pair(&pr);
		}
	}
}

static void
rest_is_not_forgotten(void **state)
{
	char byte;
	struct pair pr;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	give_text(&pr, "ab");
	give_text(&pr, "c");
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), 1);
	assert_false(tls_is_drained(pr.pr_tls));
	assert_true(tls_has_input(pr.pr_tls));
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), 1);
	assert_false(tls_is_drained(pr.pr_tls));
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), 1);
	expect_nothing(&pr);
	close_pair(&pr);
}

/* Nothing may follow it, and then there is no edge. */
static void
end_behind_data_is_not_forgotten(void **state)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL_AD_CLOSE_NOTIFY};
	unsigned char end[2 + RECORD_OVERHEAD];
	char got[64];
	struct pair pr;
	size_t n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		give_text(&pr, "ab");
		n = make(&pr, SSL3_RT_ALERT, close_notify, sizeof(close_notify),
		    end);
		put(&pr, end, n);
		assert_int_equal(tls_recv(pr.pr_tls, got, sizeof(got)), 2);
		assert_false(tls_is_drained(pr.pr_tls));
		assert_int_equal(tls_recv(pr.pr_tls, got, sizeof(got)), 0);
		close_pair(&pr);
	}
}

/* More has come since the socket was empty, and its edge with it. */
static void
what_comes_behind_a_rest_is_looked_for(void **state)
{
	char got[2];
	struct pair pr;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	give_text(&pr, "abc");
	assert_int_equal(tls_recv(pr.pr_tls, got, 1), 1);
	give_text(&pr, "d");
	assert_int_equal(tls_recv(pr.pr_tls, got, 2), 2);
	assert_false(tls_is_drained(pr.pr_tls));
	expect(&pr, "d", 64);
	expect_nothing(&pr);
	close_pair(&pr);
}

static void
largest_record_is_taken(void **state)
{
	char *data = calloc(1, RECORD_PLAIN), *got = malloc(RECORD_PLAIN);
	struct pair pr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		for (int times = 0; times < 3; times++) {
			memset(data, 'a' + times, RECORD_PLAIN);
			give(&pr, SSL3_RT_APPLICATION_DATA, data, RECORD_PLAIN);
		}
		for (int times = 0; times < 3; times++) {
			memset(data, 'a' + times, RECORD_PLAIN);
			assert_int_equal(tls_recv(pr.pr_tls, got, RECORD_PLAIN),
			    (long)RECORD_PLAIN);
			assert_memory_equal(got, data, RECORD_PLAIN);
		}
		expect_nothing(&pr);
		close_pair(&pr);
	}
	free(data);
	free(got);
}

/* ----------------------------------------------------------------------- ends */

static void
close_notify_is_the_end(void **state)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL3_AD_CLOSE_NOTIFY};
	struct pair pr;
	char byte;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		give_text(&pr, "last");
		give(&pr, SSL3_RT_ALERT, close_notify, sizeof(close_notify));
		give_text(&pr, "behind");
		expect(&pr, "last", 64);
		assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), 0);
		assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), 0);
		/* It may still be answered. */
		assert_int_equal(tls_end(pr.pr_tls), 0);
		assert_true(SSL_read(pr.pr_client, &byte, 1) <= 0);
		assert_int_equal(
		    SSL_get_error(pr.pr_client, 0), SSL_ERROR_ZERO_RETURN);
		close_pair(&pr);
	}
}

static void
end_without_a_word_is_an_error(void **state)
{
	struct pair pr;
	char byte;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	shutdown(pr.pr_fds[1], SHUT_WR);
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), -ECONNRESET);
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), -EPROTO);
	close_pair(&pr);
}

static void
alerts_of_the_client(void **state)
{
	static const unsigned char fatal[] = {2, SSL_AD_INTERNAL_ERROR},
				   warning[] = {1, SSL_AD_NO_RENEGOTIATION},
				   cancelled[] = {1, SSL_AD_USER_CANCELLED};
	struct pair pr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		children_refused(versions[i], SSL3_RT_ALERT, fatal, 2, 0);
		children_refused(versions[i], SSL3_RT_ALERT, "", 0,
		    SSL_AD_UNEXPECTED_MESSAGE);
		children_refused(
		    versions[i], SSL3_RT_ALERT, fatal, 1, SSL_AD_DECODE_ERROR);
		children_refused(
		    versions[i], SSL3_RT_ALERT, "abc", 3, SSL_AD_DECODE_ERROR);
		open_pair(&pr, versions[i]);
		give(&pr, SSL3_RT_ALERT, cancelled, 2);
		give_text(&pr, "all the same");
		expect(&pr, "all the same", 64);
		close_pair(&pr);
	}
	children_refused(TLS1_3_VERSION, SSL3_RT_ALERT, warning, 2, 0);
	open_pair(&pr, TLS1_2_VERSION);
	give(&pr, SSL3_RT_ALERT, warning, 2);
	give_text(&pr, "all the same");
	expect(&pr, "all the same", 64);
	close_pair(&pr);
}

/* -------------------------------------------------------------------- refused */

static void
other_types_are_refused(void **state)
{
	static const unsigned char types[] = {
	    SSL3_RT_CHANGE_CIPHER_SPEC, 24, 1, 255};

	(void)state;
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof(types); k++)
			children_refused(versions[i], types[k], "\1", 1,
			    SSL_AD_UNEXPECTED_MESSAGE);
}

static void
type_that_is_not_encrypted_is_refused(void **state)
{
	static const unsigned char spec[] = {20, 3, 3, 0, 1, 1},
				   alert[] = {21, 3, 3, 0, 2, 2, 40};
	struct pair pr;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	put(&pr, spec, sizeof(spec));
	expect_refusal(&pr, SSL_AD_UNEXPECTED_MESSAGE);
	close_pair(&pr);
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		put(&pr, alert, sizeof(alert));
		expect_refusal(&pr,
		    i == 0 ? SSL_AD_UNEXPECTED_MESSAGE : SSL_AD_BAD_RECORD_MAC);
		close_pair(&pr);
	}
}

static void
damage_is_refused(void **state)
{
	unsigned char mem[64];
	struct pair pr;
	size_t n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		n = make(&pr, SSL3_RT_APPLICATION_DATA, "text", 4, mem);
		mem[n - 1] ^= 1;
		put(&pr, mem, n);
		give_text(&pr, "behind");
		expect_refusal(&pr, SSL_AD_BAD_RECORD_MAC);
		close_pair(&pr);
	}
}

static void
what_came_before_damage_is_taken(void **state)
{
	struct pair pr;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	give_text(&pr, "whole");
	put(&pr, "\x17\3\3\0\x11 no record at all", 5 + 17);
	expect(&pr, "whole", 64);
	expect_refusal(&pr, SSL_AD_BAD_RECORD_MAC);
	close_pair(&pr);
}

/* As soon as its length has come. */
static void
record_that_is_too_long_is_refused(void **state)
{
	struct pair pr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		put(&pr, "\x17\3\3\xff\xff", 5);
		expect_refusal(&pr, SSL_AD_RECORD_OVERFLOW);
		close_pair(&pr);
	}
}

static void
records_without_data_are_bounded(void **state)
{
	struct pair pr;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		for (int n = 0; n < 100; n++) {
			if (n % 32 == 0) {
				give_text(&pr, "x");
				expect(&pr, "x", 1);
			}
			give(&pr, SSL3_RT_APPLICATION_DATA, "", 0);
			expect_nothing(&pr);
		}
		for (int n = 0; n < 32; n++)
			give(&pr, SSL3_RT_APPLICATION_DATA, "", 0);
		expect_refusal(&pr, SSL_AD_UNEXPECTED_MESSAGE);
		close_pair(&pr);
	}
}

/* ------------------------------------------------------------------- new keys */

static void
give_update(struct pair *pr, unsigned char asks)
{
	unsigned char update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, asks};

	give(pr, SSL3_RT_HANDSHAKE, update, sizeof(update));
	assert_true(record_key_update(&pr->pr_key));
}

static void
key_of_the_client_is_followed(void **state)
{
	struct pair pr;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	for (int i = 0; i < 32; i++) {
		give_update(&pr, 0);
		give_text(&pr, "next");
		expect(&pr, "next", 64);
	}
	close_pair(&pr);
}

/* Sends data behind it.  Returns false if the session has ended by it. */
static bool
update_is_taken(struct pair *pr, int version)
{
	char byte;

	if (version == TLS1_3_VERSION)
		give_update(pr, 0);
	else
		give(pr, SSL3_RT_HANDSHAKE, "\1\0\0\1\0", 5);
	give_text(pr, "x");
	return tls_recv(pr->pr_tls, &byte, 1) == 1;
}

/* So is what asks for a handshake before TLS 1.3. */
static void
updates_with_data_between_them_are_bounded(void **state)
{
	struct pair pr;
	uint64_t begin;
	unsigned n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		begin = clock_now();
		for (n = 0; n < 1000 && update_is_taken(&pr, versions[i]); n++)
			continue;
		assert_in_range(n, 32, 33 + (clock_now() - begin) / 1000000);
		assert_int_equal(
		    pr.pr_tls->tl_alert[1], SSL_AD_UNEXPECTED_MESSAGE);
		close_pair(&pr);
		open_pair(&pr, versions[i]);
		for (n = 0; n < 32; n++)
			assert_true(update_is_taken(&pr, versions[i]));
		usleep(1100000);
		assert_true(update_is_taken(&pr, versions[i]));
		close_pair(&pr);
	}
}

/* Keys take time: a call reads no more of them than others may wait for. */
static void
one_call_follows_few_keys(void **state)
{
	struct pair pr;
	char got[64];

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	for (int i = 0; i < 20; i++) {
		give_text(&pr, "x");
		give_update(&pr, 0);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(tls_recv(pr.pr_tls, got, sizeof(got)), 1);
	expect_nothing(&pr);
	close_pair(&pr);
}

static void
own_key_is_replaced_on_request(void **state)
{
	struct pair pr;
	size_t taken;
	char got[8];

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	for (int i = 0; i < 5; i++) {
		give_update(&pr, 1);
		give_update(&pr, 1);
		expect_nothing(&pr);
		/* Once for both; OpenSSL reads it with the key after this. */
		assert_int_equal(pr.pr_tls->tl_writes.rk_number, 0);
		assert_int_equal(
		    tls_sink(pr.pr_tls)->sk_ops->take(
			tls_sink(pr.pr_tls), "answer", 6, false, &taken),
		    0);
		assert_int_equal(SSL_read(pr.pr_client, got, sizeof(got)), 6);
		assert_memory_equal(got, "answer", 6);
		give_text(&pr, "next");
		expect(&pr, "next", 64);
	}
	close_pair(&pr);
}

static void
update_may_come_in_pieces(void **state)
{
	static const char update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, 0};
	struct pair pr;

	(void)state;
	open_pair(&pr, TLS1_3_VERSION);
	for (size_t i = 0; i < sizeof(update); i++)
		give(&pr, SSL3_RT_HANDSHAKE, update + i, 1);
	assert_true(record_key_update(&pr.pr_key));
	give_text(&pr, "next");
	expect(&pr, "next", 64);
	/* But nothing comes between them. */
	give(&pr, SSL3_RT_HANDSHAKE, update, 3);
	give_text(&pr, "between");
	expect_refusal(&pr, SSL_AD_UNEXPECTED_MESSAGE);
	close_pair(&pr);
}

static void
other_messages_are_refused(void **state)
{
	static const struct {
		const char *mg_data;
		size_t mg_len;
		int mg_alert;
	} messages[] = {
	    {"", 0, SSL_AD_UNEXPECTED_MESSAGE},
	    {"\1", 1, SSL_AD_UNEXPECTED_MESSAGE},
	    {"\1\0\0\1\0", 5, SSL_AD_UNEXPECTED_MESSAGE},
	    {"\x18\0\0\1\0\x18", 6, SSL_AD_UNEXPECTED_MESSAGE},
	    {"\x18\0\0\1\0\x18\0\0\1\0", 10, SSL_AD_UNEXPECTED_MESSAGE},
	    {"\x18\0\0\2\0", 5, SSL_AD_DECODE_ERROR},
	    {"\x18\0\0\2\1\0", 6, SSL_AD_DECODE_ERROR},
	    /* No fifth byte is waited for. */
	    {"\x18\0\0\0", 4, SSL_AD_DECODE_ERROR},
	    {"\x18\1", 2, SSL_AD_DECODE_ERROR},
	    {"\x18\0\0\1\2", 5, SSL_AD_ILLEGAL_PARAMETER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
		children_refused(TLS1_3_VERSION, SSL3_RT_HANDSHAKE,
		    messages[i].mg_data, messages[i].mg_len,
		    messages[i].mg_alert);
}

static void
second_handshake_is_not_made(void **state)
{
	struct pair pr;
	char got[64];

	(void)state;
	open_pair(&pr, TLS1_2_VERSION);
	for (int i = 0; i < 3; i++) {
		give(&pr, SSL3_RT_HANDSHAKE, "\1\0\0\1\0", 5);
		expect_nothing(&pr);
		/* A warning is the answer. */
		assert_int_equal(
		    read(pr.pr_fds[1], got, sizeof(got)), 5 + 8 + 2 + 16);
		assert_int_equal(got[0], SSL3_RT_ALERT);
		give_text(&pr, "all the same");
		expect(&pr, "all the same", 64);
	}
	close_pair(&pr);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finished_may_come_in_pieces),
	    cmocka_unit_test(text_comes_as_it_was_sent),
	    cmocka_unit_test(record_may_come_byte_by_byte),
	    cmocka_unit_test(many_records_are_taken_with_any_room),
	    cmocka_unit_test(rest_is_not_forgotten),
	    cmocka_unit_test(end_behind_data_is_not_forgotten),
	    cmocka_unit_test(what_comes_behind_a_rest_is_looked_for),
	    cmocka_unit_test(largest_record_is_taken),
	    cmocka_unit_test(close_notify_is_the_end),
	    cmocka_unit_test(end_without_a_word_is_an_error),
	    cmocka_unit_test(alerts_of_the_client),
	    cmocka_unit_test(other_types_are_refused),
	    cmocka_unit_test(type_that_is_not_encrypted_is_refused),
	    cmocka_unit_test(damage_is_refused),
	    cmocka_unit_test(what_came_before_damage_is_taken),
	    cmocka_unit_test(record_that_is_too_long_is_refused),
	    cmocka_unit_test(records_without_data_are_bounded),
	    cmocka_unit_test(key_of_the_client_is_followed),
	    cmocka_unit_test(updates_with_data_between_them_are_bounded),
	    cmocka_unit_test(one_call_follows_few_keys),
	    cmocka_unit_test(own_key_is_replaced_on_request),
	    cmocka_unit_test(update_may_come_in_pieces),
	    cmocka_unit_test(other_messages_are_refused),
	    cmocka_unit_test(second_handshake_is_not_made),
	};

	return cmocka_run_group_tests(tests, make_context, end_context);
}
