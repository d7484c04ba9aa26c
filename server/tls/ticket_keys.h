/*
 * ticket_keys: the keys of session tickets (RFC 5077, RFC 8446 4.6.1), with which a client
 * resumes a session at any worker, after a reload and after an upgrade.  The master makes
 * them, keeps them in memory only, and hands them to each server process; a new one takes
 * over every TICKET_KEYS_SECONDS.  Tickets of the newest key and of the one before it are
 * accepted; those of the latter are renewed.
 *
 * A key's bytes never lie in a file, nor in a core.  ticket_keys_add may be called while others
 * use them: a lock is held for a copy of 80 bytes.
 */
#ifndef SERVER_TLS_TICKET_KEYS_H
#define SERVER_TLS_TICKET_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define TICKET_KEYS	    2	  /* the newest one first */
#define TICKET_KEYS_SECONDS 43200 /* between two new ones */

struct ticket_key {
	unsigned char tk_name[16];
	unsigned char tk_cipher[32]; /* AES-256-CBC */
	unsigned char tk_mac[32];    /* HMAC-SHA256 */
};

/* A zeroed key is none. */
struct ticket_key_list {
	struct ticket_key tl_keys[TICKET_KEYS];
};

/* This one becomes the newest; the last one goes. */
void ticket_key_list_add(struct ticket_key_list *, const struct ticket_key *);

/* The same with a new one.  0 or -errno. */
int ticket_key_list_renew(struct ticket_key_list *);

#define TICKET_KEY_TEXT (2 * sizeof(struct ticket_key) + 1)

/* One as text, in hexadecimal digits, and back: false: it is none. */
void ticket_key_write(const struct ticket_key *, char text[TICKET_KEY_TEXT]);
bool ticket_key_read(const char *text, struct ticket_key *);

/* What a server process uses. */
struct ticket_keys;

/* Without a key: nothing is resumed until one is added.  NULL: no memory. */
struct ticket_keys *ticket_keys_create(void);

/* This one is the newest from now on.  Any thread. */
void ticket_keys_add(struct ticket_keys *, const struct ticket_key *);
void ticket_keys_destroy(struct ticket_keys **);

struct ssl_ctx_st; /* OpenSSL's */

/* Sessions of this context are resumed by them; they stay as long as it does. */
bool ticket_keys_use(struct ticket_keys *, struct ssl_ctx_st *);

#endif
