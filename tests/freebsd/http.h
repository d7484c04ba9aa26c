/*
 * http: a client for one request at a time on a connection, which compares the body with the file.
 */
#ifndef TESTS_FREEBSD_HTTP_H
#define TESTS_FREEBSD_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_HASH UINT64_C(0xcbf29ce484222325) /* of no bytes: FNV-1a */

enum http_kind { HTTP_PLAIN, HTTP_TLS12, HTTP_TLS13, HTTP_H2 };

struct http {
	int ht_sock;		  /* non-blocking; -1 if closed */
	struct secure *ht_secure; /* NULL without TLS */
	enum http_kind ht_kind;
	int ht_status;
	off_t ht_length; /* Content-Length, or -1 if there was none */
	off_t ht_got;	 /* bytes of the body */
	uint64_t ht_hash;
	double ht_begun; /* when the request was sent, seconds */
	bool ht_done;
	bool
	    ht_failed; /* the connection ended too early, or had too many bytes */
	size_t ht_head_len;
	char ht_head[4096];
};

double http_now(void); /* seconds */

/* Chooses the protocol of the connections that http_open opens from now on. */
void http_use(enum http_kind);

/* Connects to the server, and tries again for `patience` seconds.  Returns false if that failed. */
bool http_open(struct http *, double patience);
void http_close(struct http *);

/* Sends a request; range may be NULL, else "0-99" and the like. */
void http_ask(struct http *, const char *path, const char *range);

/* Adds bytes of the body. */
void http_take_body(struct http *, const char *data, size_t len);

/* Reads the bytes that have arrived, and waits for none. */
void http_pull(struct http *);

/* Takes the response, for `patience` seconds at most.  Returns ht_done and not ht_failed. */
bool http_await(struct http *, double patience);

/* Returns true if the response was whole and has `len` bytes of the file, from `off` on. */
bool http_is_file(
    const struct http *, int status, const char *file, off_t off, off_t len);

/* Returns true if the connection ended too early, and the bytes before its end were the file's first ones. */
bool http_is_aborted(const struct http *, const char *file);

#endif
