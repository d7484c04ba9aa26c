/*
 * context: see context.h.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/tls/context_priv.h"
#include "server/tls/key_schedule.h"
#include "server/tls/server_name.h"
#include "server/tls/session.h"
#include "server/tls/ticket_keys.h"

#define CIPHERS                          \
	"ECDHE-ECDSA-AES128-GCM-SHA256:" \
	"ECDHE-RSA-AES128-GCM-SHA256:"   \
	"ECDHE-ECDSA-AES256-GCM-SHA384:" \
	"ECDHE-RSA-AES256-GCM-SHA384:"   \
	"ECDHE-ECDSA-CHACHA20-POLY1305:" \
	"ECDHE-RSA-CHACHA20-POLY1305"

#define TLS_1_3                   \
	"TLS_AES_128_GCM_SHA256:" \
	"TLS_AES_256_GCM_SHA384:" \
	"TLS_CHACHA20_POLY1305_SHA256"

/*
 * Lists of groups by preference.  OpenSSL before 3.5 refuses the first list.  The texts are
 * not const, since OpenSSL's macro accepts no const text.
 */
static char hybrid_groups[] = "X25519MLKEM768:X25519:P-256:P-384",
	    plain_groups[] = "X25519:P-256:P-384";
static char *const groups[] = {hybrid_groups, plain_groups};

/*
 * Without SSL_OP_CIPHER_SERVER_PREFERENCE clients choose the cipher; clients without AES in
 * hardware choose ChaCha20.
 */
#define OPTIONS (SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION)
#define SNI_MAX 256 /* maximum bytes of an SNI name, with the NUL */

#define HELLO_MOST 4096 /* bytes of a ClientHello that the loop reads */
#define SHARE_HEADER \
	4	      /* bytes of a key share before the key: RFC 8446, 4.2.8 */
#define GROUP_P384 24 /* RFC 8446, 4.2.7 */

static int
tls_context_fail(char *why, size_t size, const char *what)
{
	char cause[128];

	snprintf(why, size, "%s: %s", what, tls_cause(cause, sizeof(cause)));
	return -EINVAL;
}

const char *
tls_library(void)
{
	return OpenSSL_version(OPENSSL_VERSION);
}

int
tls_prepare(void)
{
	if (OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS |
				 OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
		NULL) != 1 ||
	    tls_session_index() == -1)
		return -ENOMEM;
	return record_key_prepare();
}

/* --------------------------------------------------------------- the name */

/* Copies those settings of the context that SSL_set_SSL_CTX leaves unchanged. */
static void
tls_context_adopt(SSL *ssl, SSL_CTX *ctx)
{
	SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), NULL);
	SSL_clear_options(ssl, SSL_OP_NO_TICKET);
	SSL_set_options(ssl, SSL_CTX_get_options(ctx) & SSL_OP_NO_TICKET);
	SSL_set_num_tickets(ssl, SSL_CTX_get_num_tickets(ctx));
}

/*
 * Returns true if the client offers a share of P-384, with which OpenSSL computes for 2 ms; with
 * the other groups it takes a tenth of that.
 */
static bool
tls_context_has_slow_share(SSL *ssl)
{
	const unsigned char *ext;
	size_t len, at;

	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_key_share, &ext, &len) !=
	    1)
		return false;
	for (at = 2; at + SHARE_HEADER <= len;
	     at += SHARE_HEADER + ((size_t)ext[at + 2] << 8 | ext[at + 3]))
		if ((ext[at] << 8 | ext[at + 1]) == GROUP_P384)
			return true;
	return false;
}

/*
 * Returns true if the ClientHello requires long computations: for its keys, or for its lists, of
 * which a browser's 2000 bytes have few entries.
 */
static bool
tls_context_hello_is_long(const struct tls *tl, SSL *ssl)
{
	return tl->tl_message > HELLO_MOST || tls_context_has_slow_share(ssl);
}

/*
 * Chooses the site by SNI.  Runs before OpenSSL looks for a session, so that a session of a site
 * that requests no client certificate is never resumed at a site that requests one.
 */
static int
tls_context_on_hello(SSL *ssl, int *alert, void *arg)
{
	struct tls_context *tx = arg;
	struct tls *tl = SSL_get_ex_data(ssl, tls_session_index());
	char name[SNI_MAX];
	const unsigned char *ext;
	size_t len, at = 0;

	(void)alert;
	if (tl->tl_brief && tls_context_hello_is_long(tl, ssl))
		return SSL_CLIENT_HELLO_RETRY;
	if (SSL_client_hello_get0_ext(
		ssl, TLSEXT_TYPE_server_name, &ext, &len) == 1 &&
	    server_name_parse(ext, len, name, sizeof(name)))
		at = tx->tx_find(tx->tx_arg, name, strlen(name));
	tl->tl_site = tx->tx_sites[at].pl_site;
	tl->tl_place = at;
	SSL_set_SSL_CTX(ssl, tx->tx_sites[at].pl_context);
	tls_context_adopt(ssl, tx->tx_sites[at].pl_context);
	return SSL_CLIENT_HELLO_SUCCESS;
}

/*
 * Interrupts a step on the loop (tl_brief) before a long signature.  OpenSSL calls this if it will
 * sign, so never for a session that is resumed.  In TLS 1.2 the client's choice of P-384 is not
 * known before.
 */
static int
tls_context_on_certificate(SSL *ssl, void *arg)
{
	const struct tls_context *tx = arg;
	const struct tls *tl = SSL_get_ex_data(ssl, tls_session_index());

	return !tl->tl_brief || (SSL_version(ssl) == TLS1_3_VERSION &&
				    tx->tx_sites[tl->tl_place].pl_signs_fast)
		   ? 1
		   : -1;
}

/* Acknowledges the server name, as RFC 6066 permits; OpenSSL requires a callback for that. */
static int
tls_context_on_name(SSL *ssl, int *alert, void *arg)
{
	(void)alert, (void)arg;
	return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) != NULL
		   ? SSL_TLSEXT_ERR_OK
		   : SSL_TLSEXT_ERR_NOACK;
}

/*
 * Chooses the protocol (ALPN, RFC 7301).  Sends an alert if the client offers no protocol that the
 * server supports.  `arg` is NULL if HTTP/2 is off.
 */
static int
tls_context_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen,
    const unsigned char *in, unsigned inlen, void *arg)
{
	static const unsigned char all[] = "\x02h2\x08http/1.1\x08http/1.0";
	size_t from = arg != NULL ? 0 : sizeof("\x02h2") - 1;
	unsigned char *chosen;

	(void)ssl;
	if (SSL_select_next_proto(&chosen, outlen, all + from,
		(unsigned)(sizeof(all) - 1 - from), in,
		inlen) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* --------------------------------------------------------------- contexts */

static bool
tls_context_set_groups(SSL_CTX *ctx)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (SSL_CTX_set1_groups_list(ctx, groups[i]) == 1)
			return true;
	return false;
}

static bool
tls_context_set_versions(SSL_CTX *ctx, enum tls_profile profile)
{
	int least = profile == TLS_MODERN ? TLS1_3_VERSION : TLS1_2_VERSION;

	return SSL_CTX_set_min_proto_version(ctx, least) == 1 &&
	       SSL_CTX_set_ciphersuites(ctx, TLS_1_3) == 1 &&
	       SSL_CTX_set_cipher_list(ctx, CIPHERS) == 1 &&
	       tls_context_set_groups(ctx);
}

static int
tls_context_set_identities(
    SSL_CTX *ctx, const struct identity *id, char *why, size_t size)
{
	for (; id != NULL; id = id->id_next)
		if (SSL_CTX_use_cert_and_key(
			ctx, id->id_cert, id->id_key, id->id_chain, 0) != 1)
			return tls_context_fail(why, size, id->id_file);
	return 0;
}

static int
tls_context_set_verify(
    SSL_CTX *ctx, const struct tls_site *ts, char *why, size_t size)
{
	int mode = SSL_VERIFY_PEER;

	if (ts->ts_verify == TLS_VERIFY_OFF)
		return 0;
	if (ts->ts_verify == TLS_VERIFY_REQUIRE)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	if (SSL_CTX_load_verify_file(ctx, ts->ts_client_ca) != 1)
		return tls_context_fail(why, size, ts->ts_client_ca);
	SSL_CTX_set_client_CA_list(
	    ctx, SSL_load_client_CA_file(ts->ts_client_ca));
	SSL_CTX_set_verify(ctx, mode, NULL);
	return 0;
}

/*
 * Restricts resumption to the same site.  Sites are compared by name, since their indexes change
 * with a reload.  OpenSSL uses the ticket keys of the context with which a connection begins, so
 * each context has the keys, even if its site has no tickets.
 */
static bool
tls_context_set_sessions(
    SSL_CTX *ctx, const struct tls_site *ts, struct ticket_keys *tickets)
{
	unsigned char id[SSL_MAX_SID_CTX_LENGTH];
	const char *name = ts->ts_name != NULL ? ts->ts_name : "";

	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (tickets == NULL || ts->ts_verify != TLS_VERIFY_OFF) {
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
		if (SSL_CTX_set_num_tickets(ctx, 0) != 1)
			return false;
	}
	if (tickets == NULL)
		return true;
	SSL_CTX_set_timeout(ctx, TICKET_KEYS_SECONDS);
	/* Each connection sends its client one ticket for the next connection. */
	if (ts->ts_verify == TLS_VERIFY_OFF &&
	    SSL_CTX_set_num_tickets(ctx, 1) != 1)
		return false;
	return EVP_Digest(name, strlen(name), id, NULL, EVP_sha256(), NULL) ==
		   1 &&
	       SSL_CTX_set_session_id_context(ctx, id, sizeof(id)) == 1 &&
	       ticket_keys_use(tickets, ctx);
}

static SSL_CTX *
tls_context_new(
    struct tls_context *tx, const struct tls_settings *tc, size_t site)
{
	SSL_CTX *ctx =
	    SSL_CTX_new_ex(NULL, KEY_SCHEDULE_QUERY, TLS_server_method());

	if (ctx == NULL)
		return NULL;
	if (!tls_context_set_versions(ctx, tc->tc_profile) ||
	    !tls_context_set_sessions(
		ctx, tc->tc_sites[site], tc->tc_tickets)) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_options(ctx, OPTIONS);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_client_hello_cb(ctx, tls_context_on_hello, tx);
	SSL_CTX_set_cert_cb(ctx, tls_context_on_certificate, tx);
	SSL_CTX_set_tlsext_servername_callback(ctx, tls_context_on_name);
	SSL_CTX_set_alpn_select_cb(
	    ctx, tls_context_on_alpn, tc->tc_http2 ? tx : NULL);
	return ctx;
}

static int
tls_context_add_site(struct tls_context *tx, const struct tls_settings *tc,
    size_t i, char *why, size_t size)
{
	const struct tls_site *ts = tc->tc_sites[i];
	const struct identity *id = ts->ts_identities;
	SSL_CTX *ctx = tls_context_new(tx, tc, i);
	int error;

	if (ctx == NULL)
		return tls_context_fail(
		    why, size, "not enough memory for a TLS context");
	if (id == NULL)
		id = tc->tc_sites[0]->ts_identities;
	tx->tx_sites[i] =
	    (struct tls_place){ctx, ts, id, identity_signs_fast(id)};
	error = tls_context_set_identities(ctx, id, why, size);
	return error == 0 ? tls_context_set_verify(ctx, ts, why, size) : error;
}

int
tls_context_create(const struct tls_settings *tc, struct tls_context **out,
    char *why, size_t size)
{
	struct tls_context *tx = calloc(1, sizeof(*tx));
	int error = 0;

	if (tx == NULL)
		return tls_context_fail(
		    why, size, "not enough memory for a TLS context");
	tx->tx_method = tls_bio_method();
	tx->tx_sites = calloc(tc->tc_nsites, sizeof(*tx->tx_sites));
	tx->tx_nsites = tc->tc_nsites;
	tx->tx_find = tc->tc_find;
	tx->tx_arg = tc->tc_arg;
	tx->tx_ktls = tc->tc_ktls == TLS_KTLS_ON;
	if (tx->tx_sites == NULL || tx->tx_method == NULL)
		error = tls_context_fail(
		    why, size, "not enough memory for a TLS context");
	for (size_t i = 0; error == 0 && i < tc->tc_nsites; i++)
		error = tls_context_add_site(tx, tc, i, why, size);
	if (error != 0)
		tls_context_destroy(&tx);
	*out = tx;
	return error;
}

void
tls_context_destroy(struct tls_context **txp)
{
	struct tls_context *tx = *txp;

	if (tx == NULL)
		return;
	*txp = NULL;
	for (size_t i = 0; tx->tx_sites != NULL && i < tx->tx_nsites; i++)
		SSL_CTX_free(tx->tx_sites[i].pl_context);
	free(tx->tx_sites);
	BIO_meth_free(tx->tx_method);
	free(tx);
}
