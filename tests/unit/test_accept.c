/*
 * Lists with weights (server/http/accept.h): which member speaks of a name, and what is no
 * weight.
 */
#include "test.h"

#include "server/http/accept.h"

struct weight_case {
	const char *wc_list, *wc_name;
	int wc_weight;
};

static void
check(const struct weight_case *wc, size_t count)
{
	size_t i, len;
	char *list;
	int weight;

	for (i = 0; i < count; i++) {
		/* Without its NUL: what is read behind the end is found out. */
		len = strlen(wc[i].wc_list);
		list = malloc(len > 0 ? len : 1);
		assert_non_null(list);
		memcpy(list, wc[i].wc_list, len);
		weight = accept_weight((struct str){list, len},
		    (struct str){wc[i].wc_name, strlen(wc[i].wc_name)});
		if (weight != wc[i].wc_weight)
			fail_msg("%s of \"%s\": %d", wc[i].wc_name,
			    wc[i].wc_list, weight);
		free(list);
	}
}

TEST(the_closest_member_decides)
{
	static const struct weight_case t[] = {
	    {"", "gzip", -1},
	    {" ,, ,", "gzip", -1},
	    {"gzip", "gzip", 1000},
	    {"GZip", "gzip", 1000},
	    {"br", "gzip", -1},
	    {"gzip2, xgzip", "gzip", -1},
	    {"x-gzip", "gzip", 1000},
	    {"X-Gzip;q=0.5", "gzip", 500},
	    {"*, x-gzip;q=0", "gzip", 0},
	    {"x-gzip;q=0.2, gzip;q=0.3", "gzip", 300},
	    {"x-gzip;q=0.2, gzip;q=0.1", "gzip", 200},
	    {"gzip", "x-gzip", -1},
	    {"x-br, x-zstd", "br", -1},
	    {"*", "gzip", 1000},
	    {"*;q=0, gzip;q=0.5", "gzip", 500},
	    {"gzip;q=0.5, *;q=0", "gzip", 500},
	    {"*;q=0", "identity", 0},
	    {"identity;q=0", "identity", 0},
	    {"br, gzip;q=0.8", "identity", -1},
	    {"text/html", "text/html", 1000},
	    {"text/*", "text/html", 1000},
	    {"TEXT/*;q=0.1", "text/html", 100},
	    {"*/*", "text/html", 1000},
	    {"*", "text/html", -1},
	    {"*/*", "gzip", -1},
	    {"*/html, text", "text/html", -1},
	    {"texts/*, tex/*", "text/html", -1},
	    {"*/*;q=0.9, text/*;q=0.5, text/html;q=0.1", "text/html", 100},
	    {"text/html;q=0.1, text/*;q=0.5, */*;q=0.9", "text/css", 500},
	    {"text/html;q=0.1, text/*;q=0.5, */*;q=0.9", "image/png", 900},
	    /* as a browser sends it */
	    {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"application/json", 800},
	    /* of several the highest, whatever their parameters */
	    {"gzip;q=0, gzip;q=0.3, gzip;q=0.2", "gzip", 300},
	    {"text/html;level=1;q=0.2, text/html;q=0.1", "text/html", 200},
	    {"application/json; charset=utf-8", "application/json", 1000},
	};

	check(t, COUNT(t));
	assert_int_equal(accept_weight((struct str){NULL, 0}, STR("gzip")), -1);
}

TEST(a_weight_has_three_digits_and_is_at_most_one)
{
	static const struct weight_case t[] = {
	    {"a;q=0", "a", 0},
	    {"a;q=0.", "a", 0},
	    {"a;q=0.000", "a", 0},
	    {"a;q=0.001", "a", 1},
	    {"a;q=0.05", "a", 50},
	    {"a;q=0.5", "a", 500},
	    {"a;q=0.123", "a", 123},
	    {"a;q=0.999", "a", 999},
	    {"a;q=1", "a", 1000},
	    {"a;q=1.", "a", 1000},
	    {"a;q=1.000", "a", 1000},
	    {"a;Q=0.5", "a", 500},
	    {"a ; q=0.5", "a", 500},
	    {"a\t;\tq=0.5\t", "a", 500},
	    {"a;;q=0.5;", "a", 500},
	    {"a;x=y;q=0.5;z=w", "a", 500},
	    {"a;x=\"y\";q=0.5", "a", 500},
	    {"a;q=0.5;q=0.7", "a", 700},
	};

	check(t, COUNT(t));
}

TEST(a_malformed_member_is_ignored)
{
	static const char *const bad[] = {"a;q=2", "a;q=1.001", "a;q=1.1",
	    "a;q=0.1234", "a;q=-1", "a;q=.5", "a;q=00", "a;q=5", "a;q=0.x",
	    "a;q=0..", "a;q=x", "a;q=", "a;q", "a;q =1", "a;q= 1", "a;q=\"1\"",
	    "a;q=1 x", "a;q=2;q=1", "a q=1", "a x", "a;=1", "a;x",
	    "a;x=", "a;x=\"y", "\"a\"", "a;x=\"y\\\"", "a;x=\"\"y", "a;\x01=1"};
	char text[64];
	struct weight_case wc = {text, "a", -1};

	for (size_t i = 0; i < COUNT(bad); i++) {
		snprintf(text, sizeof(text), "%s", bad[i]);
		wc.wc_weight = -1;
		check(&wc, 1);
		/* and the others are as they were */
		snprintf(text, sizeof(text), "a;q=0.3, %s", bad[i]);
		wc.wc_weight = 300;
		check(&wc, 1);
	}
}

TEST(a_comma_in_quotes_is_text)
{
	static const struct weight_case t[] = {
	    {"b;x=\", a, \", c", "a", -1},
	    {"b;x=\", \\\", a, \", c", "a", -1},
	    {"b;x=\", a, \", c", "c", 1000},
	    {"b;x=\", a", "a", -1},
	    {"\", a, \", a;q=0.5", "a", 500},
	    {"a;x=\",;q=0.1\";q=0.5", "a", 500},
	    {"a;x=\"\\\\\";q=0.5", "a", 500},
	    {"b;x=\"\\\\\", a;q=0.5", "a", 500},
	};

	check(t, COUNT(t));
}
