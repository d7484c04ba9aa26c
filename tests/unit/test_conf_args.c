/*
 * The command line; each test has the name of the rule that it pins.
 * Runs in the top directory of the tree.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "conf_fixture.h"

TEST(every_option_of_the_command_line_is_understood)
{
	struct conf *conf = must_load(
	    "--root / --listen :81 --listen [::1]:82 --workers 2 --threads 3 "
	    "--send-path blocking --readahead=64K --cache drop");
	struct settings *set = &conf->conf_sites[0].site_set;

	assert_string_equal(conf->conf_sites[0].site_name, "default");
	assert_int_equal(conf->conf_nlisten, 2);
	assert_string_equal(conf->conf_listen[0].la_text, ":81");
	assert_string_equal(conf->conf_listen[1].la_text, "[::1]:82");
	assert_int_equal(conf->conf_workers, 2);
	assert_int_equal(conf->conf_threads, 3);
	assert_ptr_equal(set->set_send_path, pw_send_path("blocking"));
	assert_int_equal(set->set_readahead, 65536);
	assert_int_equal(set->set_cache, PW_CACHE_DROP);
	assert_false(set->set_autoindex);

	conf = must_load("--root / --autoindex --access-log -");
	assert_true(conf->conf_sites[0].site_set.set_autoindex);
	assert_string_equal(conf->conf_access_log, "-");

	conf = must_load("--root / --access-log a --access-log off");
	assert_null(conf->conf_access_log);
}

TEST(an_ambiguous_option_is_an_error)
{
	expect_usage_error("--root / --s 7 -t",
	    "--s: ambiguous option: several options begin like this; write "
	    "the whole name");
	expect_usage_error("--root / --l json",
	    "--l: ambiguous option: several options begin like this; write "
	    "the whole name");
}

TEST(an_address_is_numeric_and_all_addresses_are_ipv6_where_possible)
{
	static const struct {
		const char *text;
		const char *addr; /* NULL: all */
		uint16_t port;
	} table[] = {
	    {"127.0.0.1:8080", "127.0.0.1", 8080},
	    {"[::1]:8080", "::1", 8080},
	    {"[2001:db8::1]:65535", "2001:db8::1", 65535},
	    {"*:8080", NULL, 8080},
	    {":8080", NULL, 8080},
	    {"8080", NULL, 8080},
	    {"127.0.0.1:0", "127.0.0.1", 0},
	};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool ipv6 = fd >= 0;

	close(fd);
	for (size_t i = 0; i < COUNT(table); i++) {
		char words[64], addr[INET6_ADDRSTRLEN];
		const char *expected = table[i].addr;
		struct sockaddr_in6 sin6;
		struct sockaddr_in sin;
		struct conf *conf;
		struct listen_addr *la;

		snprintf(words, sizeof(words), "--root / --listen %s",
		    table[i].text);
		conf = must_load(words);
		la = &conf->conf_listen[0];
		if (expected == NULL)
			expected = ipv6 ? "::" : "0.0.0.0";
		memcpy(&sin, &la->la_addr, sizeof(sin));
		memcpy(&sin6, &la->la_addr, sizeof(sin6));
		if (strchr(expected, ':') != NULL) {
			assert_int_equal(la->la_addr.ss_family, AF_INET6);
			assert_int_equal(la->la_len, sizeof(sin6));
			inet_ntop(
			    AF_INET6, &sin6.sin6_addr, addr, sizeof(addr));
			assert_int_equal(ntohs(sin6.sin6_port), table[i].port);
		} else {
			assert_int_equal(la->la_addr.ss_family, AF_INET);
			assert_int_equal(la->la_len, sizeof(sin));
			inet_ntop(AF_INET, &sin.sin_addr, addr, sizeof(addr));
			assert_int_equal(ntohs(sin.sin_port), table[i].port);
		}
		assert_string_equal(addr, expected);
		assert_string_equal(la->la_text, table[i].text);
	}
}

TEST(an_invalid_address_is_refused_with_its_cause)
{
	expect_usage_error("--root / --listen localhost:80",
	    "--listen: localhost is not a numeric address "
	    "(127.0.0.1, [::1] or *)");
	expect_usage_error("--root / --listen ::1:80",
	    "--listen: an IPv6 address needs brackets: [::1]:8080");
	expect_usage_error("--root / --listen [::g]:80",
	    "--listen: [::g] is not an IPv6 address");
	expect_usage_error("--root / --listen 127.0.0.1",
	    "--listen: the port is missing: write ADDR:PORT, for example "
	    "127.0.0.1:8080");
	expect_usage_error("--root / --listen 192.0.2.7",
	    "--listen: the port is missing: write ADDR:PORT, for example "
	    "192.0.2.7:8080");
	expect_usage_error("--root / --listen [::1]",
	    "--listen: the port is missing: write "
	    "ADDR:PORT, for example [::1]:8080");
	expect_usage_error("--root / --listen *",
	    "--listen: the port is missing: write "
	    "ADDR:PORT, for example *:8080");
	expect_usage_error("--root / --listen localhost",
	    "--listen: the port is missing: write ADDR:PORT, for example "
	    "127.0.0.1:8080");
	expect_usage_error("--root / --listen ::1",
	    "--listen: an IPv6 address needs brackets: [::1]:8080");
	expect_usage_error("--root / --listen fe80::",
	    "--listen: an IPv6 address needs brackets: [::1]:8080");
	expect_usage_error("--root / --listen 127.0.0.1:",
	    "--listen: 127.0.0.1:: \"\" is not a port (0 to 65535)");
	expect_usage_error("--root / --listen=",
	    "--listen: the address is empty: write "
	    "ADDR:PORT, for example 127.0.0.1:8080");
	expect_usage_error("--root / --listen :65536",
	    "--listen: :65536: \"65536\" is not a port (0 to 65535)");
	expect_usage_error("--root / --listen 127.0.0.1:+1",
	    "--listen: 127.0.0.1:+1: \"+1\" is not a port (0 to 65535)");
	expect_usage_error("--root / --listen :81 --listen *:81",
	    "--listen: *:81 is listed twice");
}

TEST(port_zero_may_be_listed_twice)
{
	struct conf *conf =
	    must_load("--root / --listen [::1]:0 --listen [::1]:0");

	assert_int_equal(conf->conf_nlisten, 2);
}

TEST(without_file_and_root_one_message_names_both)
{
	static const char expected[] =
	    "nothing to serve: give a directory with --root DIR, or a "
	    "configuration file with -c FILE (see pagewise -h)";

	expect_usage_error("", expected);
	expect_usage_error("--workers 2 -t", expected);
}

TEST(errors_of_the_command_line_name_the_option)
{
	expect_usage_error(
	    "--workers 0", "--workers: 0 is out of range (1 to 1024, or auto)");
	expect_usage_error(
	    "--bogus", "--bogus: unknown option; see pagewise -h");
	expect_usage_error("--rooot=/tmp",
	    "--rooot=/tmp: unknown option; did you mean --root?");
	expect_usage_error("--acces-log -",
	    "--acces-log: unknown option; did you mean --access-log?");
	expect_usage_error("-x", "-x: unknown option; see pagewise -h");
	expect_usage_error(
	    "--autoindex -xt", "-x: unknown option; see pagewise -h");
	expect_usage_error("-c", "-c: the value is missing");
	expect_usage_error("--config=", "--config: the path is empty");
	expect_usage_error("--root=", "--root: the path is empty");
	expect_usage_error(
	    "--root / --workers", "--workers: the value is missing");
	expect_usage_error("--test=1", "--test=1: this option takes no value");
	expect_usage_error(
	    "--autoindex=x", "--autoindex=x: this option takes no value");
	expect_usage_error("--root / extra",
	    "extra: unexpected argument; write --root DIR to serve a "
	    "directory");
}

TEST(version_and_help_go_to_stdout)
{
	struct conf *conf;
	unsigned v[4];

	assert_int_equal(load("-V", &conf), CONF_EXIT_OK);
	assert_int_equal(sscanf(out_text,
			     "pagewise " PW_VERSION " (libevent %*[^,], "
			     "http-parser %u.%u.%u, nghttp2 %*[^,], "
			     "OpenSSL %u.",
			     &v[0], &v[1], &v[2], &v[3]),
	    4);
	assert_int_equal(v[0], 2);
	assert_string_equal(err_text, "");

	assert_int_equal(load("--help", &conf), CONF_EXIT_OK);
	assert_non_null(strstr(out_text, "usage: pagewise --root DIR"));
	assert_non_null(strstr(out_text, "\n    pagewise --root /"));
	assert_non_null(strstr(out_text, "\n    pagewise -c /"));
	assert_non_null(strstr(out_text, "--send-path"));
	assert_string_equal(err_text, "");
}

TEST(relative_paths_of_the_command_line_start_at_the_working_directory)
{
	struct conf *conf =
	    must_load_text(SITE, "--root tests --access-log log");

	assert_string_equal(conf->conf_sites[0].site_root, "tests");
	assert_string_equal(conf->conf_access_log, "log");
}
