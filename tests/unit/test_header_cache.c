/*
 * The rules of server/content/header_cache.h: which blocks of header fields are remembered, and
 * that only the very same bytes are taken for one.
 */

#include "test.h"

#include "server/content/header_cache.h"

#define LINE  "GET / HTTP/1.1\r\n"
#define HOST  "Host: h.example\r\n"
#define PLAIN HOST "User-Agent: a b\r\nReferer:  http://r/ \r\nX: 1\r\n\r\n"

/* Only its address matters. */
static const char place;
static const struct site *const site =
    (const struct site *)(const void *)&place;

/* Parses the line and the block, without its NUL, and remembers. */
static const struct cached_header *
remember(struct header_cache *table, const char *line, const char *block)
{
	size_t first = strlen(line), len = first + strlen(block);
	SCOPED(free_at) char *head = malloc(len);
	SCOPED(buf_list_destroy) struct buf_list bufs = {0};
	struct request rq;
	const union sockaddr_any client = {.sa = {.sa_family = AF_UNIX}};
	const struct cached_header *fl;

	assert_non_null(head);
	memcpy(head, line, first);
	memcpy(head + first, block, len - first);
	assert_int_equal(
	    request_parse(&rq, (struct str){head, len}, 1000, &bufs), 0);
	fl = header_cache_remember(
	    table, &rq, (struct str){head + first, len - first}, site, &client);
	buf_release(&rq.rq_joined, &bufs);
	return fl;
}

int
setup(void **state)
{
	return (*state = header_cache_create()) == NULL ? -1 : 0;
}

int
teardown(void **state)
{
	free(*state);
	return 0;
}

static bool
matches(const struct cached_header *fl, const char *text)
{
	size_t len = strlen(text);
	SCOPED(free_at) char *copy = malloc(len);
	bool yes;

	/* Without its NUL: what is behind its end is not looked at. */
	assert_non_null(copy);
	memcpy(copy, text, len);
	yes = header_cache_matches(fl, copy, len);
	return yes;
}

TEST(an_empty_cache_matches_no_block)
{
	struct header_cache *table = *state;

	for (size_t i = 0; i < HEADER_CACHE_SLOTS; i++) {
		assert_false(matches(&table->ft_slots[i], ""));
		assert_false(matches(&table->ft_slots[i], PLAIN));
	}
}

TEST(the_same_block_matches_whatever_follows)
{
	const struct cached_header *fl = remember(*state, LINE, PLAIN);

	assert_non_null(fl);
	assert_ptr_equal(fl->fl_site, site);
	assert_true(matches(fl, PLAIN));
	assert_true(matches(fl, PLAIN "GET / HTTP/1.1\r\n"));
	assert_ptr_equal(remember(*state, LINE, PLAIN), fl);
	assert_ptr_equal(
	    remember(*state, "GET /other?q HTTP/1.1\r\n", PLAIN), fl);
}

TEST(one_different_byte_is_noticed)
{
	const struct cached_header *fl = remember(*state, LINE, PLAIN);
	char text[] = PLAIN;
	size_t i, bit;

	for (i = 0; i < sizeof(text) - 1; i++)
		for (bit = 0; bit < 8; bit++) {
			text[i] = (char)(text[i] ^ 1 << bit);
			assert_false(
			    header_cache_matches(fl, text, sizeof(text) - 1));
			text[i] = (char)(text[i] ^ 1 << bit);
		}
	for (i = 0; i < sizeof(text) - 1; i++) {
		char *cut = malloc(i);

		assert_non_null(cut);
		memcpy(cut, text, i);
		assert_false(header_cache_matches(fl, cut, i));
		free(cut);
	}
	assert_false(matches(fl, "X" PLAIN));
	assert_true(header_cache_matches(fl, text, sizeof(text) - 1));
}

TEST(fields_that_change_the_response_are_not_remembered)
{
	static const char *const blocks[] = {
	    HOST "Range: bytes=0-1\r\n\r\n",
	    HOST "range: nonsense\r\n\r\n",
	    HOST "Range: bytes=0-1\r\nRange: bytes=0-1\r\n\r\n",
	    HOST "Range:\r\n\r\n",
	    HOST "If-Range: \"x\"\r\n\r\n",
	    HOST "If-Match: *\r\n\r\n",
	    HOST "If-None-Match: \"x\"\r\n\r\n",
	    HOST "If-None-Match: \"x\"\r\nIf-None-Match: \"y\"\r\n\r\n",
	    HOST "If-Modified-Since: x\r\n\r\n",
	    HOST "If-Unmodified-Since: x\r\n\r\n",
	    HOST "IF-NONE-MATCH: *\r\n\r\n",
	    HOST "Expect: 100-continue\r\n\r\n",
	    HOST "Pagewise-Trace: 1\r\n\r\n",
	    HOST "Connection: close\r\n\r\n",
	    HOST "Connection: keep-alive, close\r\n\r\n",
	    HOST "Content-Length: 1\r\n\r\n",
	};

	for (size_t i = 0; i < COUNT(blocks); i++)
		if (remember(*state, LINE, blocks[i]) != NULL)
			fail_msg("remembered: %s", blocks[i]);
}

TEST(only_gets_of_http_1_1_are_remembered)
{
	assert_null(remember(*state, "HEAD / HTTP/1.1\r\n", PLAIN));
	assert_null(remember(*state, "OPTIONS / HTTP/1.1\r\n", PLAIN));
	assert_null(remember(*state, "POST / HTTP/1.1\r\n", PLAIN));
	assert_null(remember(*state, "GET / HTTP/1.0\r\n", PLAIN));
	assert_null(remember(*state, "GET / HTTP/1.0\r\n",
	    HOST "Connection: keep-alive\r\n\r\n"));
	assert_non_null(remember(*state, LINE, PLAIN));
}

TEST(other_fields_are_remembered)
{
	assert_non_null(remember(*state, LINE, "Host: a\r\n\r\n"));
	assert_non_null(
	    remember(*state, LINE, HOST "Connection: keep-alive\r\n\r\n"));
	assert_non_null(
	    remember(*state, LINE, HOST "Content-Length: 0\r\n\r\n"));
	assert_non_null(
	    remember(*state, LINE, HOST "Cookie: Range: bytes=0-1\r\n\r\n"));
}

/* SNI names the site then. */
TEST(an_empty_host_is_not_remembered)
{
	assert_null(remember(*state, LINE, "Host:\r\n\r\n"));
}

/* Its value is not in the block: it would be logged wrongly. */
TEST(a_field_that_came_twice_is_not_remembered)
{
	assert_null(
	    remember(*state, LINE, HOST "Referer: a\r\nReferer: a\r\n\r\n"));
	assert_null(remember(
	    *state, LINE, HOST "User-Agent: a\r\nUser-Agent: b\r\n\r\n"));
	assert_non_null(remember(*state, LINE, HOST "X: a\r\nX: b\r\n\r\n"));
}

#define FIRST "GET /another HTTP/1.1"

static void
assert_text(const struct cached_header *fl, size_t offset, const char *expected)
{
	static const char head[] = FIRST "\r\n" PLAIN;
	struct request_texts there =
	    header_cache_texts(fl, head, strlen(FIRST));
	const struct str *s = (const void *)((const char *)&there + offset);

	assert_int_equal(s->s_len, strlen(expected));
	assert_in_range((uintptr_t)s->s_ptr, (uintptr_t)head,
	    (uintptr_t)head + sizeof(head) - 1);
	assert_memory_equal(s->s_ptr, expected, s->s_len);
}

#define TEXT(member) offsetof(struct request_texts, member)

TEST(values_are_found_in_every_block_that_matches)
{
	const struct cached_header *fl = remember(*state, LINE, PLAIN);

	assert_text(fl, TEXT(qt_line), FIRST);
	assert_text(fl, TEXT(qt_host), "h.example");
	assert_text(fl, TEXT(qt_agent), "a b");
	assert_text(fl, TEXT(qt_referer), "http://r/");
	fl = remember(*state, LINE, HOST "User-Agent:\r\n\r\n");
	assert_non_null(fl->fl_texts.qt_agent.s_ptr);
	assert_int_equal(fl->fl_texts.qt_agent.s_len, 0);
	assert_null(fl->fl_texts.qt_referer.s_ptr);
	assert_null(header_cache_texts(fl, "", 0).qt_referer.s_ptr);
}

static const char *
block_of(char *text, size_t len)
{
	size_t begin = strlen(HOST "X: ");

	memset(text, 'x', len);
	memcpy(text, HOST "X: ", begin);
	memcpy(text + len - 4, "\r\n\r\n", 5);
	return text;
}

TEST(a_block_has_a_largest_size)
{
	char text[HEADER_CACHE_MAX + 2];
	const struct cached_header *fl =
	    remember(*state, LINE, block_of(text, HEADER_CACHE_MAX));

	assert_non_null(fl);
	assert_true(matches(fl, text));
	assert_int_equal(fl->fl_len, HEADER_CACHE_MAX);
	assert_null(
	    remember(*state, LINE, block_of(text, HEADER_CACHE_MAX + 1)));
}

/* More blocks than slots: each is remembered, and who had one compares. */
TEST(a_block_evicts_another)
{
	const struct cached_header *first = remember(*state, LINE, PLAIN), *fl;
	struct header_cache *table = *state;
	char text[64];
	unsigned i, slots = 0, last = 0;
	bool used[HEADER_CACHE_SLOTS] = {false};

	for (i = 0; i < 100 * HEADER_CACHE_SLOTS; i++) {
		snprintf(text, sizeof(text), HOST "X: %u\r\n\r\n", i);
		fl = remember(*state, LINE, text);
		assert_non_null(fl);
		assert_true(matches(fl, text));
		last = (unsigned)(fl - table->ft_slots);
		assert_in_range(last, 0, HEADER_CACHE_SLOTS - 1);
		slots += !used[last];
		used[last] = true;
	}
	assert_false(matches(first, PLAIN));
	assert_int_equal(slots, HEADER_CACHE_SLOTS);
	assert_true(matches(remember(*state, LINE, PLAIN), PLAIN));
}

/* What its connection was allowed, this one may not be: the other host, over TLS. */
TEST(a_replaced_block_of_another_connection_is_unknown)
{
	const struct cached_header *first = remember(*state, LINE, PLAIN), *fl;
	struct known_header known = known_header(first);
	char text[64];
	unsigned i = 0;

	assert_true(known_header_matches(&known, PLAIN, strlen(PLAIN)));
	do {
		snprintf(
		    text, sizeof(text), "Host: other\r\nX: %u\r\n\r\n", i++);
		fl = remember(*state, LINE, text);
	} while (fl != first);
	assert_true(header_cache_matches(first, text, strlen(text)));
	assert_false(known_header_matches(&known, text, strlen(text)));
	/* Nor is its own any more: it was checked by somebody else. */
	assert_ptr_equal(remember(*state, LINE, PLAIN), first);
	assert_false(known_header_matches(&known, PLAIN, strlen(PLAIN)));
}

TEST(a_new_connection_knows_no_block)
{
	struct known_header known = {0};

	(void)remember(*state, LINE, PLAIN);
	assert_false(known_header_matches(&known, PLAIN, strlen(PLAIN)));
	assert_false(known_header_matches(&known, "", 0));
}
