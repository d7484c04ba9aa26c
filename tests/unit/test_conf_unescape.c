/*
 * The text of words and strings of a configuration file; each test has the name of the rule that it
 * pins.
 */
#include "conf_fixture.h"

#define DIGITS	  ": write up to three digits from 0 to 7"
#define TOO_LARGE " is too large: at most '\\377'"

static struct conf_block *memory;

static char *
unescape(const char *token, int *line, struct conf_why *why)
{
	*line = 7;
	return conf_unescape(
	    &memory, (struct str){token, strlen(token)}, line, why);
}

static void
expect_text(const char *token, const char *expected)
{
	struct conf_why why;
	int line;
	const char *text = unescape(token, &line, &why);

	if (text == NULL)
		fail_msg("%s: %s", token, why.why_text);
	assert_string_equal(text, expected);
	conf_keep_free(&memory);
}

static void
expect_fault(const char *token, const char *expected, int expected_line)
{
	struct conf_why why;
	int line;

	assert_null(unescape(token, &line, &why));
	assert_string_equal(why.why_text, expected);
	assert_int_equal(line, expected_line);
	conf_keep_free(&memory);
}

TEST(double_quotes_have_the_escape_sequences_of_c)
{
	expect_text("\"\"", "");
	expect_text("\"a b\tc\"", "a b\tc");
	expect_text("\"\\n\\r\\b\\f\\a\\e\\t\\v\"", "\n\r\b\f\a\033\t\v");
	expect_text("\"\\\"\\\\\\'\\$\\{\\q\\ \\\r\"", "\"\\'${q \r");
	expect_text("\"\\1\\12\\101\\377\"", "\1\12A\377");
	expect_text("\"\\1a\\12a\\101a\"", "\1a\12aAa");
	expect_text("\"\\x4\\x41\\x414\\xfF\\x4g\"", "\4AA4\377\4g");
	expect_text("\"\\x\\xg\\X41\"", "xxgX41");
}

TEST(a_backslash_at_the_end_of_a_line_joins_it_with_the_next)
{
	expect_text("\"a\\\nb\nc\"", "ab\nc");
	expect_text("'a\\\nb\nc'", "ab\nc");
}

TEST(an_escaped_nul_ends_the_text)
{
	expect_text("\"ab\\0c\"", "ab");
	expect_text("\"ab\\000c\"", "ab");
	expect_text("\"ab\\x0g\"", "ab");
}

TEST(single_quotes_escape_themselves_and_the_backslash_alone)
{
	expect_text("'a\\'b\\\\c'", "a'b\\c");
	expect_text("'\\n\\x41\\101\\999\\\"'", "\\n\\x41\\101\\999\\\"");
	expect_text("'${UNSET} ${HOME}'", "${UNSET} ${HOME}");
	expect_text("'\\\\\n'", "\\\n");
}

TEST(a_word_has_no_escape_sequences)
{
	expect_text("a\\n\\x41\\", "a\\n\\x41\\");
	expect_text("a$b;c", "a$b;c");
	expect_text("$", "$");
}

TEST(variables_are_replaced_in_words_and_in_double_quotes)
{
	setenv("SET", "a\"b\\n${UNSET}", 1);
	setenv("EMPTY", "", 1);
	unsetenv("UNSET");
	expect_text("${SET}", "a\"b\\n${UNSET}");
	expect_text("\"<${SET}|${SET}>\"", "<a\"b\\n${UNSET}|a\"b\\n${UNSET}>");
	expect_text("\"${EMPTY}\"", "");
	expect_text("\"${EMPTY:-x}\"", "x");
	expect_text("\"${SET:-x}\"", "a\"b\\n${UNSET}");
	expect_text("${UNSET:-a b\"}", "a b\"");
	expect_text("\"${UNSET:-}\"", "");
	expect_text("\"${UNSET:-a\\nb:-c}\\n\"", "a\\nb:-c\n");
	/* These are no variables. */
	expect_text("\"\\${UNSET}\"", "${UNSET}");
	expect_text("\"$UNSET ${\"", "$UNSET ${");
	/* A default is not expanded. */
	expect_text("\"${UNSET:-${SET}}\"", "${SET}");
}

TEST(a_long_value_has_room)
{
	char value[5000], token[] = "\"${LONG}\\n${LONG:-${LONG}}.\"";
	char expected[2 * sizeof(value) + 8];

	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	setenv("LONG", value, 1);
	snprintf(expected, sizeof(expected), "%s\n%s}.", value, value);
	expect_text(token, expected);
	unsetenv("LONG");
}

TEST(a_fault_has_the_line_where_it_is)
{
	unsetenv("UNSET");
	expect_fault("\"\\8\"", "bad octal escape '\\8'" DIGITS, 7);
	expect_fault("\"\n\\18\"", "bad octal escape '\\18'" DIGITS, 8);
	expect_fault(
	    "\"\\\n\n\\0101x\"", "bad octal escape '\\0101'" DIGITS, 9);
	expect_fault("\"\\400\"", "octal escape '\\400'" TOO_LARGE, 7);
	expect_fault("\"a\n\n\\777\n\"", "octal escape '\\777'" TOO_LARGE, 9);
	expect_fault("\"\n${UNSET}\"",
	    "${UNSET}: the environment variable UNSET is not set: set it, "
	    "or write ${UNSET:-default}",
	    7);
	expect_fault("\"${SET:x}\"",
	    "${SET:x}: write ${NAME} or ${NAME:-default}, or '$' in single "
	    "quotes",
	    7);
	expect_fault("\"\n${SET:}\"",
	    "${SET:}: write ${NAME} or ${NAME:-default}, or '$' in single "
	    "quotes",
	    7);
	expect_fault("\"${X:-${UNSET}}\"",
	    "${UNSET}: the environment variable UNSET is not set: set it, "
	    "or write ${UNSET:-default}",
	    7);
}

TEST(a_bad_escape_sequence_hides_no_other_fault)
{
	struct conf *conf;

	expect_file_error("\naccess_log = \"a\n\\9\"\n" SITE,
	    ":3: bad octal escape '\\9'" DIGITS);
	expect_file_errors("site a {\nroot = \"/\"\nlocation / {\n"
			   "header = {\"X: 1\", \"X: \\999\"}\n}\n}\n"
			   "threads = 0\n",
	    ":4: bad octal escape '\\999'" DIGITS,
	    ":7: threads: 0 is out of range (1 to 256)");
	expect_file_error("site \"a\\400\" {\nroot = none\n}\n",
	    ":1: octal escape '\\400'" TOO_LARGE);
	/* Nothing of it is left for the next file. */
	conf = must_load_text("site \"\\x61\" { root = \"\\056\" }\n", "");
	assert_string_equal(conf->conf_sites[0].site_name, "a");
}
