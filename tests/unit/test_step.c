/*
 * Tests of server/tls/session.h: which first steps of a handshake the loop runs itself, and which
 * ones it leaves to a thread before they take long.
 */
#define OWN_CONTEXTS
#include "receive_fixture.h"
#include "server/tls/ticket_keys.h"

static struct tls_context *fast, *slow; /* P-256 and RSA, both with tickets */

/* The state after the first step on the loop. */
static enum tls_state
first_step(struct pair *pr)
{
	SSL_do_handshake(pr->pr_client);
	tls_step_here(pr->pr_tls);
	return pr->pr_tls->tl_state;
}

/* The server has sent nothing, and a thread ends the handshake. */
static void
go_on_in_a_thread(struct pair *pr)
{
	char byte;

	assert_int_equal(tls_awaits(pr->pr_tls), 0);
	assert_false(tls_step_is_short(pr->pr_tls));
	assert_int_equal(recv(pr->pr_fds[1], &byte, 1, MSG_PEEK), -1);
	for (int i = 0; i < 10 && pr->pr_tls->tl_state < TLS_OPEN; i++) {
		tls_step(pr->pr_tls);
		SSL_do_handshake(pr->pr_client);
	}
	assert_int_equal(pr->pr_tls->tl_state, TLS_OPEN);
}

static void
go_on_on_the_loop(struct pair *pr)
{
	assert_int_equal(SSL_do_handshake(pr->pr_client), 1);
	assert_true(tls_step_is_short(pr->pr_tls));
	tls_step_here(pr->pr_tls);
	assert_int_equal(pr->pr_tls->tl_state, TLS_OPEN);
}

/* A pair that would resume a session which the context gave before. */
static void
begin_again(struct pair *pr, struct tls_context *tx, int version)
{
	SSL_SESSION *session;
	char byte;

	context = tx;
	begin_pair(pr, version);
	for (int i = 0; i < 10 && pr->pr_tls->tl_state < TLS_OPEN; i++) {
		SSL_do_handshake(pr->pr_client);
		tls_step(pr->pr_tls);
	}
	assert_int_equal(SSL_do_handshake(pr->pr_client), 1);
	assert_int_equal(SSL_read(pr->pr_client, &byte, 1), -1);
	session = SSL_get1_session(pr->pr_client);
	/* OpenSSL forgets the session of a client that sends no close_notify. */
	SSL_set_shutdown(pr->pr_client, SSL_SENT_SHUTDOWN);
	close_pair(pr);
	assert_true(SSL_SESSION_is_resumable(session));
	begin_pair(pr, version);
	SSL_set_session(pr->pr_client, session);
	SSL_SESSION_free(session);
}

TEST(the_loop_signs_with_p256)
{
	SCOPED(close_pair) struct pair pr;

	context = fast;
	begin_pair(&pr, TLS1_3_VERSION);
	assert_int_equal(first_step(&pr), TLS_WANT_READ);
	go_on_on_the_loop(&pr);
	assert_false(tls_is_resumed(pr.pr_tls));
}

TEST(a_thread_signs_with_rsa)
{
	SCOPED(close_pair) struct pair pr;

	context = slow;
	begin_pair(&pr, TLS1_3_VERSION);
	assert_int_equal(first_step(&pr), TLS_LONG);
	go_on_in_a_thread(&pr);
}

/* There the client may choose P-384. */
TEST(a_thread_runs_full_handshakes_of_tls12)
{
	SCOPED(close_pair) struct pair pr;

	context = fast;
	begin_pair(&pr, TLS1_2_VERSION);
	assert_int_equal(first_step(&pr), TLS_LONG);
	go_on_in_a_thread(&pr);
}

TEST(the_loop_resumes_whatever_the_certificate)
{
	struct pair pr;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		begin_again(&pr, slow, versions[i]);
		assert_int_equal(first_step(&pr), TLS_WANT_READ);
		go_on_on_the_loop(&pr);
		assert_true(tls_is_resumed(pr.pr_tls));
		close_pair(&pr);
	}
}

/* Its ticket is of other keys, so there is a signature after all. */
TEST(a_ticket_of_others_is_no_reason_to_sign_on_the_loop)
{
	struct ticket_keys *keys = ticket_keys_create();
	struct ticket_key_list list = {0};
	struct tls_context *others;
	SCOPED(close_pair) struct pair pr;

	assert_int_equal(ticket_key_list_renew(&list), 0);
	ticket_keys_add(keys, &list.tl_keys[0]);
	others = new_context(EVP_EC_gen("P-256"), keys);
	begin_again(&pr, others, TLS1_3_VERSION);
	tls_destroy(&pr.pr_tls);
	pr.pr_tls = tls_create(slow, pr.pr_fds[0]);
	assert_int_equal(first_step(&pr), TLS_LONG);
	go_on_in_a_thread(&pr);
	assert_false(tls_is_resumed(pr.pr_tls));
	tls_context_destroy(&others);
	ticket_keys_destroy(&keys);
}

TEST(a_thread_computes_shares_of_p384)
{
	struct pair pr;

	context = fast;
	begin_pair(&pr, TLS1_3_VERSION);
	assert_int_equal(SSL_set1_groups_list(pr.pr_client, "P-384:X25519"), 1);
	assert_int_equal(first_step(&pr), TLS_LONG);
	go_on_in_a_thread(&pr);
	close_pair(&pr);
	begin_again(&pr, slow, TLS1_3_VERSION);
	assert_int_equal(SSL_set1_groups_list(pr.pr_client, "P-384"), 1);
	assert_int_equal(first_step(&pr), TLS_LONG);
	go_on_in_a_thread(&pr);
	assert_true(tls_is_resumed(pr.pr_tls));
	close_pair(&pr);
}

TEST(a_thread_reads_long_hellos)
{
	static const unsigned char http[] = "\x08http/1.1";
	unsigned char protocols[17 * 256 + sizeof(http) - 1];
	SCOPED(close_pair) struct pair pr;
	size_t n;

	for (n = 0; n < 17 * 256; n += 256)
		memset(protocols + n, 255, 256);
	memcpy(protocols + n, http, sizeof(http) - 1);
	context = fast;
	begin_pair(&pr, TLS1_3_VERSION);
	assert_int_equal(SSL_set_alpn_protos(pr.pr_client, protocols,
			     (unsigned)sizeof(protocols)),
	    0);
	assert_int_equal(first_step(&pr), TLS_LONG);
	go_on_in_a_thread(&pr);
}

TEST(a_client_that_left_costs_nothing)
{
	SCOPED(close_pair) struct pair pr;

	context = fast;
	begin_pair(&pr, TLS1_3_VERSION);
	SSL_do_handshake(pr.pr_client);
	shutdown(pr.pr_fds[1], SHUT_WR);
	tls_step_here(pr.pr_tls);
	assert_int_equal(pr.pr_tls->tl_state, TLS_FAILED);
	assert_int_equal(pr.pr_tls->tl_failure, TLS_FAILURE_CLOSED);
}

static struct ticket_keys *tickets;

int
setup_all(void **state)
{
	struct ticket_key_list list = {0};

	(void)state;
	if (tls_prepare() != 0 || ticket_key_list_renew(&list) != 0)
		return -1;
	tickets = ticket_keys_create();
	ticket_keys_add(tickets, &list.tl_keys[0]);
	fast = new_context(EVP_EC_gen("P-256"), tickets);
	slow = new_context(EVP_RSA_gen(2048), tickets);
	return 0;
}

int
teardown_all(void **state)
{
	(void)state;
	tls_context_destroy(&fast);
	tls_context_destroy(&slow);
	ticket_keys_destroy(&tickets);
	return 0;
}
