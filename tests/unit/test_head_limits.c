/*
 * How long a head may be (server/http/head.h), and what is forgotten with it; each test has the name
 * of the rule that it pins.
 */
#include "head_fixture.h"

/* With a limit of one less than needed, and of just enough. */
static void
expect_limit(struct str s, struct head_limits enough, struct head_limits less,
    int status)
{
	struct head hd = {0};

	assert_int_equal(check(s.s_ptr, s.s_len, &enough, &hd), 0);
	hd = (struct head){0};
	assert_int_equal(check(s.s_ptr, s.s_len, &less, &hd), status);
	hd = (struct head){0};
	for (size_t n = 0; n <= s.s_len; n++) {
		int verdict = check(s.s_ptr, n, &less, &hd);

		if (verdict == HEAD_MORE)
			continue;
		assert_int_equal(verdict, status);
		return;
	}
	fail();
}

TEST(size_counts_every_byte_of_the_head)
{
	struct str s = STR("\r\n" BASE "X: a\r\n\r\n");
	size_t n = s.s_len;

	expect_limit(s, (struct head_limits){n, 64, 8},
	    (struct head_limits){n - 1, 64, 8}, 431);
}

TEST(size_does_not_count_what_follows_the_head)
{
	struct str s = STR(BASE "\r\n" BASE "\r\n");
	struct head_limits limits = {s.s_len / 2, 64, 8};
	struct head hd = {0};

	assert_int_equal(check(s.s_ptr, s.s_len, &limits, &hd), 0);
	assert_int_equal(hd.hd_len, s.s_len / 2);
}

TEST(full_buffer_without_an_end_is_refused)
{
	struct str s = STR(BASE "X: a");
	struct head_limits limits = {s.s_len, 64, 8};
	struct head hd = {0};

	assert_int_equal(check(s.s_ptr, s.s_len - 1, &limits, &hd), HEAD_MORE);
	assert_int_equal(check(s.s_ptr, s.s_len, &limits, &hd), 431);
}

TEST(error_within_the_size_wins_over_the_size)
{
	struct str s = STR(BASE "X : aaaaaaaaaaaaaaaaaaaaaaa");
	struct head_limits limits = {s.s_len - 5, 64, 8};
	struct head hd = {0};

	assert_int_equal(check(s.s_ptr, s.s_len, &limits, &hd), 400);
}

TEST(target_longer_than_its_limit_is_414)
{
	struct str s = STR("GET /" TEN " HTTP/1.0\r\n\r\n");
	struct head hd = {0};
	struct head_limits ten = {4096, 10, 8};

	expect_limit(s, (struct head_limits){4096, 11, 8}, ten, 414);
	/* with its first byte too many */
	assert_int_equal(check("GET /abcdefghi", 14, &ten, &hd), HEAD_MORE);
	assert_int_equal(check("GET /abcdefghij", 15, &ten, &hd), 414);
}

TEST(more_fields_than_their_limit_are_431)
{
	struct str s = STR(BASE "A: a\r\nB: b\r\n\r\n");

	expect_limit(s, (struct head_limits){4096, 64, 3},
	    (struct head_limits){4096, 64, 2}, 431);
}

TEST(new_head_forgets_the_old_one)
{
	struct str s = STR(BASE "Content-Length: 0\r\n\r\n");
	struct str none = STR(LINE "\r\n");
	struct head hd;

	memset(&hd, 0x5a, sizeof(hd));
	hd.hd_scanned = hd.hd_before = 0;
	assert_int_equal(check(s.s_ptr, s.s_len, &roomy, &hd), 0);
	hd.hd_scanned = 0;
	assert_int_equal(check(s.s_ptr, s.s_len, &roomy, &hd), 0);
	assert_int_equal(hd.hd_len, s.s_len);
	hd.hd_scanned = 0;
	assert_int_equal(check(none.s_ptr, none.s_len, &roomy, &hd), 400);
}

TEST(removed_blank_lines_count)
{
	static const char lines[] = "\r\n\r\n\r\n" BASE "\r\n";
	const size_t len = sizeof(lines) - 1;
	struct head_limits exact = {0, 1024, 32};
	size_t blank, before, from;
	int whole;

	for (blank = 0; blank <= 6; blank += 2)
		for (before = 0; before <= blank && before <= HEAD_BLANK;
		     before += 2)
			for (int spare = 0; spare <= 1; spare++) {
				struct head one = {0},
					    hd = {.hd_before = before};

				from = 6 - blank;
				exact.hl_size = len - from - 1 + (size_t)spare;
				whole = check(
				    lines + from, len - from, &exact, &one);
				assert_int_equal(whole, blank > HEAD_BLANK ? 400
							: spare == 0	   ? 431
									   : 0);
				from += before;
				assert_int_equal(check(lines + from, len - from,
						     &exact, &hd),
				    whole);
				if (whole == 0)
					assert_int_equal(
					    hd.hd_len + before, one.hd_len);
			}
}
