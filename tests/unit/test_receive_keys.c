/*
 * Tests of server/tls/receive.c: KeyUpdate (RFC 8446, 4.6.3), and other messages of a handshake
 * that follow it.
 */
#include "receive_fixture.h"

static void
give_update(struct pair *pr, unsigned char asks)
{
	unsigned char update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, asks};

	give(pr, SSL3_RT_HANDSHAKE, update, sizeof(update));
	assert_true(record_key_update(&pr->pr_key));
}

TEST(key_of_the_client_is_followed)
{
	SCOPED(close_pair) struct pair pr;

	open_pair(&pr, TLS1_3_VERSION);
	for (int i = 0; i < 32; i++) {
		give_update(&pr, 0);
		give_text(&pr, "next");
		expect(&pr, "next", 64);
	}
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
TEST(updates_with_data_between_them_are_bounded)
{
	struct pair pr;
	uint64_t begin;
	unsigned n;

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
TEST(one_call_follows_few_keys)
{
	SCOPED(close_pair) struct pair pr;
	char got[64];

	open_pair(&pr, TLS1_3_VERSION);
	for (int i = 0; i < 20; i++) {
		give_text(&pr, "x");
		give_update(&pr, 0);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(tls_recv(pr.pr_tls, got, sizeof(got)), 1);
	expect_nothing(&pr);
}

TEST(own_key_is_replaced_on_request)
{
	SCOPED(close_pair) struct pair pr;
	size_t taken;
	char got[8];

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
}

TEST(update_may_come_in_pieces)
{
	static const char update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, 0};
	SCOPED(close_pair) struct pair pr;

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
}

TEST(other_messages_are_refused)
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

	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
		children_refused(TLS1_3_VERSION, SSL3_RT_HANDSHAKE,
		    messages[i].mg_data, messages[i].mg_len,
		    messages[i].mg_alert);
}

TEST(second_handshake_is_not_made)
{
	SCOPED(close_pair) struct pair pr;
	char got[64];

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
}
