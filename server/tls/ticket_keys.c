/*
 * ticket_keys: see ticket_keys.h.
 */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "lib/os/os.h"
#include "server/tls/ticket_keys.h"
#include "server/util/hex.h"

struct ticket_keys {
	pthread_mutex_t tk_lock;
	struct ticket_key_list tk_list; /* guarded by tk_lock */
};

static const struct ticket_key none;

/* ----------------------------------------------------------------- the master */

void
ticket_key_list_add(struct ticket_key_list *tl, const struct ticket_key *key)
{
	memmove(&tl->tl_keys[1], &tl->tl_keys[0],
	    (TICKET_KEYS - 1) * sizeof(tl->tl_keys[0]));
	tl->tl_keys[0] = *key;
}

int
ticket_key_list_renew(struct ticket_key_list *tl)
{
	struct ticket_key key;
	int error = os_random(&key, sizeof(key));

	if (error == 0)
		ticket_key_list_add(tl, &key);
	explicit_bzero(&key, sizeof(key));
	return error;
}

void
ticket_key_write(const struct ticket_key *key, char text[TICKET_KEY_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = (const unsigned char *)key;
	size_t i;

	for (i = 0; i < sizeof(*key); i++) {
		*text++ = digits[from[i] >> 4];
		*text++ = digits[from[i] & 15];
	}
	*text = '\0';
}

bool
ticket_key_read(const char *text, struct ticket_key *key)
{
	return hex_read(text, key, sizeof(*key)) == sizeof(*key) &&
	       text[2 * sizeof(*key)] == '\0';
}

/* --------------------------------------------------------- a server process */

struct ticket_keys *
ticket_keys_create(void)
{
	struct ticket_keys *tk = os_secret_create(sizeof(*tk));

	if (tk != NULL)
		pthread_mutex_init(&tk->tk_lock, NULL);
	return tk;
}

void
ticket_keys_add(struct ticket_keys *tk, const struct ticket_key *key)
{
	pthread_mutex_lock(&tk->tk_lock);
	ticket_key_list_add(&tk->tk_list, key);
	pthread_mutex_unlock(&tk->tk_lock);
}

void
ticket_keys_destroy(struct ticket_keys **tkp)
{
	struct ticket_keys *tk = *tkp;

	if (tk == NULL)
		return;
	*tkp = NULL;
	pthread_mutex_destroy(&tk->tk_lock);
	os_secret_destroy(tk, sizeof(*tk));
}

static bool
ticket_keys_is_none(const struct ticket_key *key)
{
	return memcmp(key, &none, sizeof(*key)) == 0;
}

/*
 * Copies the key with this name, or the newest key if `name` is NULL.  Returns its index, or -1 if
 * there is no such key.
 */
static int
ticket_keys_find(
    struct ticket_keys *tk, const unsigned char *name, struct ticket_key *key)
{
	int i, found = -1;

	pthread_mutex_lock(&tk->tk_lock);
	for (i = 0; i < TICKET_KEYS && found < 0; i++)
		if (!ticket_keys_is_none(&tk->tk_list.tl_keys[i]) &&
		    (name == NULL || memcmp(tk->tk_list.tl_keys[i].tk_name,
					 name, sizeof(key->tk_name)) == 0))
			found = i;
	if (found >= 0)
		*key = tk->tk_list.tl_keys[found];
	pthread_mutex_unlock(&tk->tk_lock);
	return found;
}

static bool
ticket_keys_set_mac(EVP_MAC_CTX *mac, struct ticket_key *key)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_octet_string(
		OSSL_MAC_PARAM_KEY, key->tk_mac, sizeof(key->tk_mac)),
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end()};

	return EVP_MAC_CTX_set_params(mac, params) == 1;
}

static struct ticket_keys *
ticket_keys_of(SSL_CTX *ctx, int *index)
{
	static int place = -1;

	/* The first call happens before threads start. */
	if (place == -1)
		place = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	if (index != NULL)
		*index = place;
	return place == -1 ? NULL : SSL_CTX_get_ex_data(ctx, place);
}

/*
 * Prepares to encrypt or decrypt a ticket.  Returns the value that
 * SSL_CTX_set_tlsext_ticket_key_evp_cb(3) requires.
 */
static int
ticket_keys_on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypts)
{
	struct ticket_keys *tk = ticket_keys_of(SSL_get_SSL_CTX(ssl), NULL);
	struct ticket_key key;
	int result, found = tk == NULL ? -1
				       : ticket_keys_find(
					     tk, encrypts ? NULL : name, &key);

	if (found < 0)
		return 0;
	if (encrypts) {
		memcpy(name, key.tk_name, sizeof(key.tk_name));
		result = RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1 &&
			 EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL,
			     key.tk_cipher, iv) == 1;
	} else
		result = EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL,
			     key.tk_cipher, iv) == 1;
	if (result == 1 && !ticket_keys_set_mac(mac, &key))
		result = 0;
	explicit_bzero(&key, sizeof(key));
	if (result == 0)
		return -1;
	/*
	 * The value 2 renews the ticket.  Clients use a ticket of TLS 1.3 only once (RFC 8446,
	 * C.4), so such a ticket is always renewed.
	 */
	return !encrypts && (found > 0 || SSL_version(ssl) == TLS1_3_VERSION)
		   ? 2
		   : 1;
}

bool
ticket_keys_use(struct ticket_keys *tk, SSL_CTX *ctx)
{
	int index;

	(void)ticket_keys_of(ctx, &index);
	return index != -1 && SSL_CTX_set_ex_data(ctx, index, tk) == 1 &&
	       SSL_CTX_set_tlsext_ticket_key_evp_cb(
		   ctx, ticket_keys_on_ticket) == 1;
}
