/*
 * Tests of server/tls/receive.c: records of data, ends of a connection, and records that are
 * refused.
 */
#include "receive_fixture.h"

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

TEST(finished_may_come_in_pieces)
{
	SCOPED(close_pair) struct pair pr;
	unsigned char *flight;
	BIO *bio = BIO_new(BIO_s_mem());
	long len;

	begin_pair(&pr, TLS1_2_VERSION);
	shake(&pr);
	tls_step(pr.pr_tls);
	SSL_set0_wbio(pr.pr_client, bio);
	shake(&pr);
	len = BIO_get_mem_data(bio, &flight);
	send_in_pieces(&pr, flight, (size_t)len);
	tls_step(pr.pr_tls);
	assert_int_equal(pr.pr_tls->tl_state, TLS_OPEN);
	assert_int_equal(shake(&pr), 1);
	give_text(&pr, "behind it");
	expect(&pr, "behind it", 64);
}

TEST(text_comes_as_it_was_sent)
{
	struct pair pr;

	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		expect_nothing(&pr);
		give_text(&pr, "GET / HTTP/1.1");
		expect(&pr, "GET / HTTP/1.1", 64);
		expect_nothing(&pr);
		close_pair(&pr);
	}
}

TEST(record_may_come_byte_by_byte)
{
	unsigned char mem[64];
	struct pair pr;
	size_t n;

	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		n = make(&pr, SSL3_RT_APPLICATION_DATA, "text", 4, mem);
		for (size_t at = 0; at < n; at++) {
			expect_nothing(&pr);
			assert_false(tls_has_input(pr.pr_tls));
			assert_int_equal(tls_has_part(pr.pr_tls), at > 0);
			put(&pr, mem + at, 1);
		}
		expect(&pr, "text", 64);
		assert_false(tls_has_input(pr.pr_tls));
		close_pair(&pr);
	}
}

TEST(many_records_are_taken_with_any_room)
{
	struct pair pr;

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

TEST(rest_is_not_forgotten)
{
	char byte;
	SCOPED(close_pair) struct pair pr;

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
}

/* Nothing may follow it, and then there is no edge. */
TEST(end_behind_data_is_not_forgotten)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL_AD_CLOSE_NOTIFY};
	unsigned char end[2 + RECORD_OVERHEAD];
	char got[64];
	struct pair pr;
	size_t n;

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
TEST(what_comes_behind_a_rest_is_looked_for)
{
	char got[2];
	SCOPED(close_pair) struct pair pr;

	open_pair(&pr, TLS1_3_VERSION);
	give_text(&pr, "abc");
	assert_int_equal(tls_recv(pr.pr_tls, got, 1), 1);
	give_text(&pr, "d");
	assert_int_equal(tls_recv(pr.pr_tls, got, 2), 2);
	assert_false(tls_is_drained(pr.pr_tls));
	expect(&pr, "d", 64);
	expect_nothing(&pr);
}

TEST(largest_record_is_taken)
{
	char *data = calloc(1, RECORD_PLAIN), *got = malloc(RECORD_PLAIN);
	struct pair pr;

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

TEST(close_notify_is_the_end)
{
	static const unsigned char close_notify[] = {
	    SSL3_AL_WARNING, SSL3_AD_CLOSE_NOTIFY};
	struct pair pr;
	char byte;

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

TEST(end_without_a_word_is_an_error)
{
	SCOPED(close_pair) struct pair pr;
	char byte;

	open_pair(&pr, TLS1_3_VERSION);
	shutdown(pr.pr_fds[1], SHUT_WR);
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), -ECONNRESET);
	assert_int_equal(tls_recv(pr.pr_tls, &byte, 1), -EPROTO);
}

TEST(alerts_of_the_client)
{
	static const unsigned char fatal[] = {2, SSL_AD_INTERNAL_ERROR},
				   warning[] = {1, SSL_AD_NO_RENEGOTIATION},
				   cancelled[] = {1, SSL_AD_USER_CANCELLED};
	struct pair pr;

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

TEST(other_types_are_refused)
{
	static const unsigned char types[] = {
	    SSL3_RT_CHANGE_CIPHER_SPEC, 24, 1, 255};

	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof(types); k++)
			children_refused(versions[i], types[k], "\1", 1,
			    SSL_AD_UNEXPECTED_MESSAGE);
}

TEST(type_that_is_not_encrypted_is_refused)
{
	static const unsigned char spec[] = {20, 3, 3, 0, 1, 1},
				   alert[] = {21, 3, 3, 0, 2, 2, 40};
	struct pair pr;

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

TEST(damage_is_refused)
{
	unsigned char mem[64];
	struct pair pr;
	size_t n;

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

/* The version of TLS 1.2 stands in records of both, and OpenSSL sends these alerts. */
TEST(other_version_in_a_record_is_refused)
{
	static const int alerts[] = {
	    SSL_AD_DECODE_ERROR, SSL_AD_PROTOCOL_VERSION};
	unsigned char mem[64];
	struct pair pr;
	size_t n;

	for (int i = 0; i < 2; i++) {
		for (int at = 1; at < 3; at++) {
			open_pair(&pr, versions[i]);
			n = make(&pr, SSL3_RT_APPLICATION_DATA, "text", 4, mem);
			mem[at] ^= 0x80;
			put(&pr, mem, n);
			expect_refusal(&pr, alerts[i]);
			close_pair(&pr);
		}
	}
}

TEST(what_came_before_damage_is_taken)
{
	SCOPED(close_pair) struct pair pr;

	open_pair(&pr, TLS1_3_VERSION);
	give_text(&pr, "whole");
	put(&pr, "\x17\3\3\0\x11 no record at all", 5 + 17);
	expect(&pr, "whole", 64);
	expect_refusal(&pr, SSL_AD_BAD_RECORD_MAC);
}

/* As soon as its length has come. */
TEST(record_that_is_too_long_is_refused)
{
	struct pair pr;

	for (int i = 0; i < 2; i++) {
		open_pair(&pr, versions[i]);
		put(&pr, "\x17\3\3\xff\xff", 5);
		expect_refusal(&pr, SSL_AD_RECORD_OVERFLOW);
		close_pair(&pr);
	}
}

TEST(records_without_data_are_bounded)
{
	struct pair pr;

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
