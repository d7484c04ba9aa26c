/*
 * ticket_keys: the keys of session tickets (RFC 5077, RFC 8446 4.6.1), with which a client resumes
 * a session at any worker, after a reload and after an upgrade.  The master makes the keys, keeps
 * them in memory only, and sends them to each server process.  The master makes a new key every
 * TICKET_KEYS_SECONDS.  The server accepts tickets of the newest key and of the key before it, and
 * renews tickets of the older key.
 *
 * A key's bytes are never written to a disk or a core.  ticket_keys_add may be called while other
 * threads use the keys: a thread holds the lock only to copy 80 bytes.
 */
#ifndef SERVER_TLS_TICKET_KEYS_H
#define SERVER_TLS_TICKET_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define TICKET_KEYS	    2	  /* number of keys, the newest one first */
#define TICKET_KEYS_SECONDS 43200 /* seconds between two new keys */

struct ticket_key {
	unsigned char tk_name[16];
	unsigned char tk_cipher[32]; /* AES-256-CBC */
	unsigned char tk_mac[32];    /* HMAC-SHA256 */
};

/* A list of keys; a zeroed key means none. */
struct ticket_key_list {
	struct ticket_key tl_keys[TICKET_KEYS];
};

/* Adds a key as the newest, and drops the oldest. */
void ticket_key_list_add(struct ticket_key_list *, const struct ticket_key *);

/* Adds a new random key as the newest.  Returns 0 or -errno. */
int ticket_key_list_renew(struct ticket_key_list *);

#define TICKET_KEY_TEXT (2 * sizeof(struct ticket_key) + 1)

/*
 * ticket_key_write converts a key to hexadecimal digits; ticket_key_read converts it back.
 * ticket_key_read returns false if the text is no key.
 */
void ticket_key_write(const struct ticket_key *, char text[TICKET_KEY_TEXT]);
bool ticket_key_read(const char *text, struct ticket_key *);

/* The keys of a server process. */
struct ticket_keys;

/*
 * Creates the keys of a server process.  No session is resumed until a key is added.  Returns NULL
 * if memory is short.
 */
struct ticket_keys *ticket_keys_create(void);

/* Adds a key as the newest.  Any thread may call it. */
void ticket_keys_add(struct ticket_keys *, const struct ticket_key *);
void ticket_keys_destroy(struct ticket_keys **);

struct ssl_ctx_st; /* OpenSSL's type */

/*
 * Makes an OpenSSL context use these keys for session tickets.  The keys must stay as long as the
 * context.  Returns false on failure.
 */
bool ticket_keys_use(struct ticket_keys *, struct ssl_ctx_st *);

#endif
