/*
 * The configuration as a whole: defaults and who wins; each test has the name
 * of the rule that it pins. Runs in the top directory of the tree.
 */
#include <sched.h>

#include <limits.h>

#include "conf_fixture.h"
#include "server/worker/tcp_memory.h"

TEST(every_key_has_its_documented_default)
{
	struct conf *conf = must_load("--root /");
	struct settings *set = &conf->conf_sites[0].site_set;

	assert_int_equal(conf->conf_nlisten, 1);
	assert_string_equal(conf->conf_listen[0].la_text, "*:8080");
	assert_int_equal(conf->conf_threads, 16);
	assert_null(conf->conf_access_log);
	assert_int_equal(conf->conf_log_format, LOG_COMBINED);
	assert_int_equal(conf->conf_stall_log, 50);
	assert_int_equal(conf->conf_busy_poll, 0);
	assert_true(conf->conf_sandbox);
	assert_true(conf->conf_keep_fowner);
	assert_false(conf->conf_traceable);
	assert_null(conf->conf_chroot);
	assert_int_equal(conf->conf_nadmin, 0);
	assert_null(conf->conf_agent.la_text);
	assert_non_null(conf->conf_mime);
	assert_int_equal(conf->conf_head_timeout, 10);
	assert_int_equal(conf->conf_keepalive_timeout, 60);
	assert_int_equal(conf->conf_send_timeout, 60);
	assert_int_equal(conf->conf_shutdown_timeout, 30);
	assert_int_equal(conf->conf_max_head, 16384);
	assert_int_equal(conf->conf_max_target, 8192);
	assert_int_equal(conf->conf_max_fields, 100);
	assert_int_equal(conf->conf_max_ranges, 200);
	assert_int_equal(conf->conf_max_requests, 0);
	assert_int_equal(conf->conf_max_connections, 0);
	assert_int_equal(conf->conf_max_per_address, 0);
	assert_int_equal(conf->conf_min_send_rate, 240);
	assert_int_equal(conf->conf_tcp_memory, TCP_MEMORY_AUTO);
	assert_int_equal(conf->conf_open_files, 1024);
	assert_int_equal(conf->conf_hot_set, HOT_SET_AUTO);
	assert_ptr_equal(set->set_send_path, pw_send_default());
	assert_int_equal(set->set_readahead, PW_READAHEAD_AUTO);
	assert_int_equal(set->set_cache, PW_CACHE_KEEP);
	assert_false(set->set_autoindex);
	assert_false(set->set_dotfiles);
	assert_string_equal(set->set_index[0], "index.html");
	assert_null(set->set_index[1]);
}

TEST(workers_auto_is_the_cpus_that_may_be_used)
{
	struct conf *conf = must_load("--root / --workers auto");
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(conf->conf_workers, CPU_COUNT(&set));

	conf = must_load("--root /");
	assert_int_equal(conf->conf_workers, CPU_COUNT(&set));
}

/* Wherever one may stand. */
TEST(a_boolean_is_true_on_or_yes_false_off_or_no)
{
	static const struct {
		const char *word;
		bool value;
	} t[] = {{"true", true}, {"on", true}, {"yes", true}, {"false", false},
	    {"off", false}, {"no", false}};
	struct conf *conf;
	char text[200];

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		snprintf(text, sizeof(text),
		    "autoindex = %s\ndotfiles = %s\nsandbox = %s\n"
		    "site a { root = \".\" }\n",
		    t[i].word, t[i].word, t[i].word);
		conf = must_load_text(text, "");
		assert_int_equal(
		    conf->conf_sites[0].site_set.set_autoindex, t[i].value);
		assert_int_equal(
		    conf->conf_sites[0].site_set.set_dotfiles, t[i].value);
		assert_int_equal(conf->conf_sandbox, t[i].value);
	}
}

TEST(an_unset_value_inherits_and_a_set_one_does_not)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\"\n"
	    "  autoindex = false\n  readahead = 1M\n  index = {}\n"
	    "  location /x { autoindex = true index = {c} cache = keep }\n"
	    "  location /y { }\n"
	    "}\n"
	    "site b { root = \".\" readahead = auto }\n"
	    /* below the sites: the place in the file does not matter */
	    "autoindex = true\ndotfiles = true\ncache = drop\n"
	    "readahead = 2M\nsend_path = copy\nindex = {a, b}\n",
	    "");
	const struct site *a = &conf->conf_sites[0], *b = &conf->conf_sites[1];
	const struct settings *x = conf_settings(a, "/x", 2);
	const struct settings *y = conf_settings(a, "/y", 2);

	assert_false(a->site_set.set_autoindex);
	assert_true(a->site_set.set_dotfiles);
	assert_int_equal(a->site_set.set_readahead, 1 << 20);
	assert_int_equal(a->site_set.set_cache, PW_CACHE_DROP);
	assert_ptr_equal(a->site_set.set_send_path, pw_send_path("copy"));
	assert_null(a->site_set.set_index);

	assert_true(x->set_autoindex);
	assert_int_equal(x->set_cache, PW_CACHE_KEEP);
	assert_int_equal(x->set_readahead, 1 << 20);
	assert_string_equal(x->set_index[0], "c");
	assert_null(x->set_index[1]);

	assert_false(y->set_autoindex);
	assert_int_equal(y->set_cache, PW_CACHE_DROP);
	assert_null(y->set_index);

	assert_true(b->site_set.set_autoindex);
	assert_int_equal(b->site_set.set_readahead, PW_READAHEAD_AUTO);
	assert_string_equal(b->site_set.set_index[1], "b");
}

TEST(the_command_line_wins_over_the_top_level_only)
{
	struct conf *conf = must_load_text(
	    "workers = 7\nlisten = {\":81\", \":82\"}\ncache = drop\n"
	    "site a { root = \".\" }\n"
	    "site b { root = \".\" cache = drop }\n",
	    "--workers 2 --listen :83 --cache keep");

	assert_int_equal(conf->conf_workers, 2);
	assert_int_equal(conf->conf_nlisten, 1);
	assert_string_equal(conf->conf_listen[0].la_text, ":83");
	assert_int_equal(conf->conf_sites[0].site_set.set_cache, PW_CACHE_KEEP);
	assert_int_equal(conf->conf_sites[1].site_set.set_cache, PW_CACHE_DROP);
}

TEST(root_replaces_the_sites_of_the_file)
{
	struct conf *conf = must_load_text(
	    "cache = drop\n" SITE "site b { root = \"/none\" }\n", "--root /");

	assert_int_equal(conf->conf_nsites, 1);
	assert_string_equal(conf->conf_sites[0].site_name, "default");
	assert_string_equal(conf->conf_sites[0].site_root, "/");
	assert_int_equal(conf->conf_sites[0].site_set.set_cache, PW_CACHE_DROP);
}

TEST(test_option_checks_and_says_so)
{
	struct conf *conf;
	char expected[256];

	assert_int_equal(load_text(SITE, "-t", &conf), CONF_EXIT_OK);
	snprintf(expected, sizeof(expected),
	    "configuration ok: %s\n"
	    "listens on *:8080, or on the sockets of a service manager\n"
	    "site \"a\": (every other name)\n    / -> %s/./\n",
	    file_path, dir);
	assert_string_equal(out_text, expected);
	assert_string_equal(err_text, "");
	assert_null(conf);
	assert_int_equal(load_text("bad = 1\n", "-t", &conf), CONF_EXIT_ERROR);
	assert_string_equal(out_text, "");
}

TEST(the_sample_has_every_key_and_only_defaults)
{
	static const char *const keys[] = {"listen", "workers", "threads",
	    "admin", "access_log", "log_format", "stall_log", "busy_poll",
	    "user", "group", "chroot", "sandbox", "keep_fowner", "traceable",
	    "mime_types", "head_timeout", "keepalive_timeout", "send_timeout",
	    "shutdown_timeout", "max_head_size", "max_target_size",
	    "max_fields", "max_ranges", "max_requests", "max_connections",
	    "max_connections_per_address", "tcp_memory", "min_send_rate",
	    "open_files", "hot_set", "send_path", "readahead", "cache",
	    "autoindex", "dotfiles", "index", "names", "root"};
	struct conf *sample, *plain;
	static char text[65536];
	FILE *fp = fopen("conf/pagewise.conf", "r");

	assert_non_null(fp);
	text[fread(text, 1, sizeof(text) - 1, fp)] = '\0';
	fclose(fp);
	for (size_t i = 0; i < COUNT(keys); i++) {
		char assignment[32];

		snprintf(assignment, sizeof(assignment), "%s = ", keys[i]);
		if (strstr(text, assignment) == NULL)
			fail_msg("no %s", assignment);
	}

	sample = must_load("-c conf/pagewise.conf");
	plain = must_load("--root /");
	/* Scalars lie between the first and the last of them. */
	assert_int_equal(sample->conf_workers, plain->conf_workers);
	assert_int_equal(sample->conf_threads, plain->conf_threads);
	assert_null(sample->conf_access_log);
	assert_int_equal(sample->conf_log_format, plain->conf_log_format);
	assert_int_equal(sample->conf_stall_log, plain->conf_stall_log);
	assert_int_equal(sample->conf_busy_poll, plain->conf_busy_poll);
	assert_int_equal(sample->conf_sandbox, plain->conf_sandbox);
	assert_int_equal(sample->conf_keep_fowner, plain->conf_keep_fowner);
	assert_int_equal(sample->conf_traceable, plain->conf_traceable);
	assert_false(sample->conf_user_chosen);
	assert_null(sample->conf_chroot);
	assert_int_equal(sample->conf_nadmin, 0);
	assert_memory_equal(&sample->conf_head_timeout,
	    &plain->conf_head_timeout,
	    offsetof(struct conf, conf_no_site) -
		offsetof(struct conf, conf_head_timeout));
	assert_memory_equal(&sample->conf_sites[0].site_set,
	    &plain->conf_sites[0].site_set,
	    offsetof(struct settings, set_index));
	assert_string_equal(
	    sample->conf_sites[0].site_set.set_index[0], "index.html");
	assert_null(sample->conf_sites[0].site_set.set_index[1]);
	assert_int_equal(sample->conf_nlisten, 1);
	assert_string_equal(sample->conf_listen[0].la_text, "*:8080");
}

/* Others would be written to the wrong place: there is no other check of this. */
TEST(the_rows_of_the_table_of_keys_hold_together)
{
	static const unsigned places[] = {KEY_TOP, KEY_INHERITED, KEY_SITE,
	    KEY_TOP | KEY_SITE, KEY_LOCATION, KEY_SITE | KEY_LOCATION};

	for (const struct key *k = conf_keys; k->key_name != NULL; k++) {
		unsigned where = k->key_where & KEY_ANYWHERE;
		size_t i;

		for (i = 0; i < COUNT(places) && places[i] != where; i++)
			;
		assert_in_range(i, 0, COUNT(places) - 1);
		assert_true((where & KEY_TOP) != 0 || k->key_default[0] == '(');
		assert_true(
		    (where & KEY_TOP) != 0 || (k->key_where & KEY_OPTION) == 0);
		if (k->key_set == conf_set_bool)
			assert_int_equal(k->key_width, sizeof(bool));
		if (k->key_set == conf_set_number && k->key_width != 8)
			assert_true(
			    k->key_width == 4 && k->key_max <= UINT_MAX);
		if (k->key_width > 0)
			assert_int_equal(k->key_in_settings, where != KEY_TOP);
		assert_true(k->key_set != NULL && k->key_help[0] != '\0');
	}
}
