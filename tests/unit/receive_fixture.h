/*
 * receive_fixture: sessions of server/tls/session.h for tests, each with a client whose records are
 * made by hand, with the keys of a handshake of OpenSSL's client.
 */
#ifndef TESTS_RECEIVE_FIXTURE_H
#define TESTS_RECEIVE_FIXTURE_H

#include "test.h"

#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "lib/util/clock.h"
#include "server/tls/key_schedule.h"
#include "server/tls/session.h"

#define CONTEXTS 3 /* at most, of a process */

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

static inline size_t
first_site(const void *arg, const char *name, size_t len)
{
	(void)arg, (void)name, (void)len;
	return 0;
}

/* The context of a site whose certificate has this key, which stays as long as the process. */
static inline struct tls_context *
new_context(EVP_PKEY *key, struct ticket_keys *tickets)
{
	static struct identity identities[CONTEXTS];
	static size_t n;
	struct identity *id = &identities[n++];
	struct tls_site site = {.ts_identities = id};
	const struct tls_site *const sites[] = {&site};
	struct tls_settings tc = {.tc_ktls = TLS_KTLS_OFF,
	    .tc_tickets = tickets,
	    .tc_sites = sites,
	    .tc_nsites = 1,
	    .tc_find = first_site};
	struct tls_context *tx;
	char why[256];

	id->id_file = (char *)(uintptr_t) "memory";
	id->id_key = key;
	id->id_cert = X509_new();
	X509_gmtime_adj(X509_getm_notBefore(id->id_cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(id->id_cert), 3600);
	X509_set_pubkey(id->id_cert, id->id_key);
	X509_sign(id->id_cert, id->id_key, EVP_sha256());
	assert_int_equal(tls_context_create(&tc, &tx, why, sizeof(why)), 0);
	return tx;
}

#ifndef OWN_CONTEXTS
int
setup_all(void **state)
{
	(void)state;
	if (tls_prepare() != 0)
		return -1;
	context = new_context(EVP_EC_gen("P-256"), NULL);
	return 0;
}

int
teardown_all(void **state)
{
	(void)state;
	tls_context_destroy(&context);
	return 0;
}
#endif

/* A step of the client's handshake, which stores the secret of the client's records. */
static inline int
shake(struct pair *pr)
{
	int result;

	key_schedule_store(NULL, &pr->pr_key);
	result = SSL_do_handshake(pr->pr_client);
	key_schedule_store(NULL, NULL);
	return result;
}

static inline void
take_client_key(struct pair *pr)
{
	struct record_material rm;

	assert_true(record_key_derive(&pr->pr_key, pr->pr_client, 0, &rm));
	pr->pr_key.rk_reads = false;
	assert_true(record_key_begin(&pr->pr_key, &rm));
}

/* Room for three of the largest records: before 15, FreeBSD has 8 KiB. */
static inline void
widen(int sock)
{
	static const int size = 8 * RECORD_PLAIN;

	assert_int_equal(
	    setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	assert_int_equal(
	    setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static inline void
begin_pair(struct pair *pr, int version)
{
	memset(pr, 0, sizeof(*pr));
	pr->pr_key.rk_reads = true;
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pr->pr_fds), 0);
	widen(pr->pr_fds[0]);
	widen(pr->pr_fds[1]);
	pr->pr_tls = tls_create(context, pr->pr_fds[0]);
	pr->pr_context =
	    SSL_CTX_new_ex(NULL, KEY_SCHEDULE_QUERY, TLS_client_method());
	SSL_CTX_set_min_proto_version(pr->pr_context, version);
	SSL_CTX_set_max_proto_version(pr->pr_context, version);
	pr->pr_client = SSL_new(pr->pr_context);
	SSL_set_fd(pr->pr_client, pr->pr_fds[1]);
	SSL_set_connect_state(pr->pr_client);
}

static inline void
open_pair(struct pair *pr, int version)
{
	int i;

	begin_pair(pr, version);
	for (i = 0; i < 10 && pr->pr_tls->tl_state < TLS_OPEN; i++) {
		shake(pr);
		tls_step(pr->pr_tls);
	}
	assert_int_equal(shake(pr), 1);
	assert_int_equal(pr->pr_tls->tl_state, TLS_OPEN);
	assert_null(pr->pr_tls->tl_ssl);
	take_client_key(pr);
}

static inline void
close_pair(struct pair *pr)
{
	tls_destroy(&pr->pr_tls);
	record_key_end(&pr->pr_key);
	SSL_free(pr->pr_client);
	SSL_CTX_free(pr->pr_context);
	close(pr->pr_fds[0]);
	close(pr->pr_fds[1]);
}

static inline void
put(struct pair *pr, const void *data, size_t len)
{
	assert_int_equal(write(pr->pr_fds[1], data, len), (ssize_t)len);
}

static inline size_t
make(struct pair *pr, unsigned char type, const void *data, size_t len,
    unsigned char *to)
{
	size_t n = record_write(&pr->pr_key, type, data, len, to);

	assert_true(n > len);
	return n;
}

static inline void
give(struct pair *pr, unsigned char type, const void *data, size_t len)
{
	SCOPED(free_at) unsigned char *mem = malloc(len + RECORD_OVERHEAD);

	put(pr, mem, make(pr, type, data, len, mem));
}

static inline void
give_text(struct pair *pr, const char *text)
{
	give(pr, SSL3_RT_APPLICATION_DATA, text, strlen(text));
}

static inline void
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

static inline void
expect_nothing(struct pair *pr)
{
	char byte;

	assert_int_equal(tls_recv(pr->pr_tls, &byte, 1), -EAGAIN);
	assert_true(tls_is_drained(pr->pr_tls));
}

/* Checks that the session has failed, and that the client got this alert, or none if alert is 0. */
static inline void
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

/* Checks that one record makes the session fail with this alert. */
static inline void
children_refused(
    int version, unsigned char type, const void *data, size_t len, int alert)
{
	SCOPED(close_pair) struct pair pr;

	open_pair(&pr, version);
	give(&pr, type, data, len);
	expect_refusal(&pr, alert);
}

#endif
