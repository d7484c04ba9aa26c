/*
 * header_cache: caches the parsed form of a block of header fields.  A client sends the
 * same block with each request; a block that was checked and parsed once is not parsed
 * again if every byte is the same.  Belongs to a worker; its thread only.
 *
 * Only plain ones are remembered: nothing in them changes what a GET is answered, and no password
 * is in them.  A worker
 * with many more clients at a time than HEADER_CACHE_SLOTS, whose fields all differ, forgets
 * them between two requests.
 */
#ifndef SERVER_CONTENT_HEADER_CACHE_H
#define SERVER_CONTENT_HEADER_CACHE_H

#include "lib/util/hash.h"

#include "server/http/request.h"
#include "server/util/sockaddr_text.h"
#include "server/util/str.h"

#define HEADER_CACHE_SLOTS 256
#define HEADER_CACHE_MAX   1024 /* bytes of a block, its blank line included */

struct site;

/* Slices point into fl_text. */
struct cached_header {
	const struct site *fl_site;    /* that Host names */
	struct request_texts fl_texts; /* but for the line */
	uint64_t fl_accept;	       /* coding_weights */
	/* Whom it names, if a trusted proxy sends it; AF_UNSPEC: nobody. */
	union sockaddr_any fl_client;
	uint64_t fl_number; /* of the block: no other one has it */
	size_t fl_len;	    /* 0: nothing yet */
	char fl_text[HEADER_CACHE_MAX];
};

/*
 * What a connection has sent, and was answered.  Another connection's block may take its place;
 * the number tells them apart.  So what was checked for this connection and this host, the
 * certificate for example, still holds.
 */
struct known_header {
	const struct cached_header *kh_fields; /* NULL: nothing */
	uint64_t kh_number;
};

/* Each block has one place, which another may take. */
struct header_cache {
	struct seed ft_seed;
	uint64_t ft_count; /* of the blocks so far */
	struct cached_header ft_slots[HEADER_CACHE_SLOTS];
};

/* free(3) is its end.  NULL: no memory. */
struct header_cache *header_cache_create(void);

/*
 * Remembers block, which is all of the request's head behind its first line, and whom it
 * names: see fl_client.
 * NULL: it is not a plain one, or too long.  The returned entry stays where it is, but
 * another block may replace it: so compare before it is believed.
 */
const struct cached_header *header_cache_remember(struct header_cache *,
    const struct request *, struct str block, const struct site *,
    const union sockaddr_any *client);

/* Whether these bytes begin with the very block. */
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

/* The same of a block that the connection has sent. */
static inline bool
known_header_matches(const struct known_header *kh, const char *p, size_t len)
{
	return kh->kh_fields != NULL &&
	       kh->kh_fields->fl_number == kh->kh_number &&
	       header_cache_matches(kh->kh_fields, p, len);
}

/* Returns the texts at their places in a head whose block matches; line: bytes of its first line. */
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
