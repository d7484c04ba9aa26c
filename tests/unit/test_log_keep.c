/*
 * The rules of server/log/keep.h: what the log needs of a head survives it, and has a bound.
 */

#include "test.h"

#include "server/log/format.h"
#include "server/log/keep.h"

#define LINE "GET /a HTTP/1.1"

static char head[4 * FORMAT_FIELD];
static struct request_texts texts;

static void
set(struct str *s, size_t *at, const char *text, size_t pad)
{
	s->s_ptr = head + *at;
	s->s_len = strlen(text) + pad;
	memcpy(head + *at, text, strlen(text));
	memset(head + *at + strlen(text), 'x', pad);
	*at += s->s_len;
}

/* A head with an agent of so many bytes, and without a Referer. */
static void
set_all(size_t pad)
{
	size_t at = 0;

	set(&texts.qt_line, &at, LINE, 0);
	set(&texts.qt_host, &at, "a.example", 0);
	set(&texts.qt_agent, &at, "", pad);
	texts.qt_referer = (struct str){0};
}

TEST(kept_texts_survive_the_freed_head)
{
	struct buf kept = {0};

	set_all(10);
	assert_int_equal(log_keep_size(texts), strlen(LINE) + 9 + 10);
	assert_true(log_keep(&texts, SIZE_MAX, &kept));
	memset(head, 0, sizeof(head));
	assert_true(str_eq(texts.qt_line, STR(LINE)));
	assert_true(str_eq(texts.qt_host, STR("a.example")));
	assert_true(str_eq(texts.qt_agent, STR("xxxxxxxxxx")));
	assert_null(texts.qt_referer.s_ptr);
	assert_int_equal(kept.b_cap, strlen(LINE) + 9 + 10);
	free(kept.b_data);
}

TEST(a_text_is_cut_as_the_log_cuts_it)
{
	struct buf kept = {0};

	set_all(FORMAT_FIELD + 1);
	assert_true(log_keep(&texts, SIZE_MAX, &kept));
	assert_int_equal(texts.qt_agent.s_len, FORMAT_FIELD);
	free(kept.b_data);
}

/* The line first, then the host. */
TEST(kept_texts_are_bounded_in_total)
{
	struct buf kept = {0};

	set_all(100);
	assert_true(log_keep(&texts, strlen(LINE) + 4, &kept));
	assert_int_equal(kept.b_cap, strlen(LINE) + 4);
	assert_true(str_eq(texts.qt_line, STR(LINE)));
	assert_true(str_eq(texts.qt_host, STR("a.ex")));
	assert_int_equal(texts.qt_agent.s_len, 0);
	assert_non_null(texts.qt_agent.s_ptr);
	free(kept.b_data);
}

TEST(a_line_that_is_cut_keeps_its_protocol)
{
	static const char end[] = " HTTP/2.0";
	size_t at = 0, len = sizeof(end) - 1;
	struct buf kept = {0};

	set_all(0);
	set(&texts.qt_line, &at, "GET /", 3000);
	memcpy(head + at, end, len);
	texts.qt_line.s_len += len;
	assert_true(log_keep(&texts, 100, &kept));
	assert_int_equal(texts.qt_line.s_len, 100);
	assert_memory_equal(texts.qt_line.s_ptr, "GET /xxx", 8);
	assert_memory_equal(texts.qt_line.s_ptr + 100 - len, end, len);
	free(kept.b_data);
}

TEST(an_empty_text_keeps_no_memory)
{
	struct buf kept = {0};

	texts = (struct request_texts){0};
	assert_true(log_keep(&texts, SIZE_MAX, &kept));
	assert_null(texts.qt_line.s_ptr);
	free(kept.b_data);
}
