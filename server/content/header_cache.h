/*
 * header_cache: caches the parsed form of a block of header fields.  A client usually sends the
 * same block with each request.  If each byte is the same, the server need not check and parse the
 * block again.  Belongs to a worker; used only on the worker's thread.
 *
 * Only plain blocks are cached.  A plain block has no field that changes the response to a GET, no
 * password, and no field that requests a trace.  If a worker has many more than HEADER_CACHE_SLOTS
 * clients at a time, with different blocks, a block is evicted before its client sends the next
 * request.
 */
#ifndef SERVER_CONTENT_HEADER_CACHE_H
#define SERVER_CONTENT_HEADER_CACHE_H

#include "lib/util/hash.h"

#include "server/http/request.h"
#include "server/util/sockaddr_text.h"
#include "server/util/str.h"

#define HEADER_CACHE_SLOTS 256
/* maximum bytes of a block, with its blank line */
#define HEADER_CACHE_MAX   1024

struct site;

/* Cached block.  The slices point into fl_text. */
struct cached_header {
	const struct site *fl_site;    /* site that Host names */
	struct request_texts fl_texts; /* texts without the request line */
	uint64_t fl_accept;	       /* coding_weights for the block */
	/* client that the block names, used only if a trusted proxy sent it; AF_UNSPEC if none */
	union sockaddr_any fl_client;
	uint64_t fl_number; /* unique number of the block */
	size_t fl_len;	    /* bytes of the block; 0 if the slot is empty */
	char fl_text[HEADER_CACHE_MAX];
};

/*
 * The block of an earlier request of a connection.  A block of another connection may replace it in
 * its slot; kh_number then differs from fl_number of the slot.  While the numbers are equal,
 * earlier checks of the host on this connection stay valid, for example the check of the
 * certificate.
 */
struct known_header {
	const struct cached_header *kh_fields; /* block's slot, or NULL */
	uint64_t kh_number;
};

/* The hash of a block determines its slot.  A block replaces an earlier block in the same slot. */
struct header_cache {
	struct seed ft_seed;
	uint64_t ft_count; /* blocks cached so far */
	struct cached_header ft_slots[HEADER_CACHE_SLOTS];
};

/* Creates a cache, which the caller must free with free(3).  Returns NULL if memory is short. */
struct header_cache *header_cache_create(void);

/*
 * Caches `block`, the head of a request without its first line, and `client`, the client that the
 * block names.  Returns NULL if the block is too long or not plain.  The returned pointer stays
 * valid, but another block may replace the content, so the caller must compare it before use.
 */
const struct cached_header *header_cache_remember(struct header_cache *,
    const struct request *, struct str block, const struct site *,
    const union sockaddr_any *client);

/* Returns true if the `len` bytes at `p` start with exactly this block. */
static inline bool
header_cache_matches(const struct cached_header *fl, const char *p, size_t len)
{
	return fl->fl_len > 0 && fl->fl_len <= len &&
	       memcmp(fl->fl_text, p, fl->fl_len) == 0;
}

static inline struct known_header
known_header(const struct cached_header *fl)
{
	return (struct known_header){fl, fl->fl_number};
}

/* Returns true if the `len` bytes at `p` start with the block that the connection sent before. */
static inline bool
known_header_matches(const struct known_header *kh, const char *p, size_t len)
{
	return kh->kh_fields != NULL &&
	       kh->kh_fields->fl_number == kh->kh_number &&
	       header_cache_matches(kh->kh_fields, p, len);
}

/*
 * Returns the texts of a block as slices of `head`, which contains the same block.  `line` is the
 * length of the first line of `head`, without CRLF.
 */
static inline struct request_texts
header_cache_texts(
    const struct cached_header *fl, const char *head, size_t line)
{
	struct request_texts texts = fl->fl_texts;
	struct str *s;

	for (size_t i = 0; i < REQUEST_TEXTS; i++) {
		s = request_text(&texts, i);
		if (s->s_ptr != NULL)
			s->s_ptr = head + line + 2 + (s->s_ptr - fl->fl_text);
	}
	texts.qt_line = (struct str){head, line};
	return texts;
}

#endif
