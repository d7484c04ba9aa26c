/*
 * args: the command line.  An option that sets a key has the key's name,
 * with '-' for '_'.
 */
#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <http_parser.h>
#include <limits.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/similar.h"

struct conf_arg {
	const char *arg_option; /* name without the dashes */
	const char *arg_text;
};

enum { OPT_ROOT = 256, OPT_KEYS, OPT_KEY };

#define MAX_NAME 32

static const char short_options[] = ":c:tTVh";

static const struct option own_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"dump", no_argument, NULL, 'T'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {"keys", no_argument, NULL, OPT_KEYS},
    {"root", required_argument, NULL, OPT_ROOT},
};

#define NOWN (sizeof(own_options) / sizeof(*own_options))

/* own_options, then the options of keys; the last entry is all zeros. */
static struct option options[NOWN + KEY_MAX + 1];

static void
conf_args_exchange(char *s, char from, char to)
{
	for (; *s != '\0'; s++)
		if (*s == from)
			*s = to;
}

static void
conf_args_find_options(void)
{
	static char names[NOWN + KEY_MAX][MAX_NAME];
	size_t n = NOWN;

	memcpy(options, own_options, sizeof(own_options));
	for (const struct key *key = conf_keys; key->key_name != NULL; key++) {
		if ((key->key_where & (KEY_OPTION | KEY_SWITCH)) == 0)
			continue;
		snprintf(names[n], MAX_NAME, "%s", key->key_name);
		conf_args_exchange(names[n], '_', '-');
		options[n].name = names[n];
		options[n].has_arg = (key->key_where & KEY_OPTION) != 0
					 ? required_argument
					 : no_argument;
		/*
		 * getopt_long reports an ambiguous abbreviation only if the options have different
		 * values.
		 */
		options[n].val = OPT_KEY + (int)n;
		n++;
	}
}

/* Prints the send paths that this system supports, the default first. */
static void
conf_args_print_paths(void)
{
	const struct pw_send_path *path, *first = pw_send_default();
	const char *const *name, *why;

	for (name = pw_send_path_names(); *name != NULL; name++)
		if (pw_send_path(*name) == first)
			printf(" %s", *name);
	for (name = pw_send_path_names(); *name != NULL; name++) {
		path = pw_send_path(*name);
		if (path != first && pw_send_probe(path, &why) != -ENOSYS)
			printf(" %s", *name);
	}
}

static void
conf_args_print_option(const struct key *key)
{
	char name[MAX_NAME], left[80], range[64];

	snprintf(name, sizeof(name), "%s", key->key_name);
	conf_args_exchange(name, '_', '-');
	snprintf(left, sizeof(left), "--%s%s%s", name,
	    (key->key_where & KEY_OPTION) != 0 ? " " : "",
	    (key->key_where & KEY_OPTION) != 0 ? key->key_values : "");
	conf_range_text(key, range, sizeof(range));
	printf("    %-26s%s %s%s%s\n", left,
	    strlen(left) > 26 ? "\n                              " : "",
	    key->key_help, range[0] != '\0' ? "; " : "", range);
}

static void
conf_args_print_help(void)
{
	fputs(
	    "usage: pagewise --root DIR [option ...]\n"
	    "       pagewise -c FILE [-t | -T] [option ...]\n"
	    "       pagewise sign --key FILE URL ...\n"
	    "       pagewise precompress|digest DIR ... "
	    "(see pagewise-tool(8))\n"
	    "       pagewise drain|undrain [SOCKET] (see pagewise-tool(8))\n"
	    "       pagewise assign NODES DIR (see pagewise-tool(8))\n"
	    "examples:\n"
	    "    pagewise --root /srv/www --listen 127.0.0.1:8080\n"
	    "    pagewise -c /etc/pagewise/pagewise.conf\n"
	    "options:\n"
	    "    -c, --config FILE          read the configuration from FILE; "
	    "see pagewise.conf(5)\n"
	    "    -t, --test                 check the configuration, print "
	    "what it serves, then exit\n"
	    "    -T, --dump                 check the configuration, print "
	    "all of it, then exit\n"
	    "    -V, --version              print versions, then exit\n"
	    "    -h, --help [KEY]           print this help, or that of a "
	    "key, then exit\n"
	    "    --keys                     print all configuration keys, "
	    "then exit\n"
	    "    --root DIR                 serve DIR instead of the sites of "
	    "FILE\n",
	    stdout);
	for (const struct key *key = conf_keys; key->key_name != NULL; key++)
		if ((key->key_where & (KEY_OPTION | KEY_SWITCH)) != 0)
			conf_args_print_option(key);
	fputs("send paths of this system:", stdout);
	conf_args_print_paths();
	putchar('\n');
}

static void
conf_args_print_version(void)
{
	unsigned long v = http_parser_version();

	printf("pagewise %s (libevent %s, http-parser %lu.%lu.%lu, nghttp2 %s, "
	       "%s)\n",
	    PW_VERSION, event_get_version(), v >> 16 & 0xff, v >> 8 & 0xff,
	    v & 0xff, nghttp2_version(0)->version_str, tls_library());
}

#define UNKNOWN "unknown option; see pagewise -h"

static enum conf_action
conf_args_complain(const char *option, const char *cause)
{
	fprintf(
	    stderr, "%spagewise: %s: %s\n", log_error_prefix(), option, cause);
	return CONF_EXIT_USAGE;
}

/*
 * Reports an unknown option, with a similar option if there is one.  Ignores VALUE of
 * "--NAME=VALUE".
 */
static enum conf_action
conf_args_unknown(const char *written)
{
	struct similar sim = {0};
	char name[64], cause[128];
	const struct option *opt;
	int matches = 0;

	if (strncmp(written, "--", 2) != 0)
		return conf_args_complain(written, UNKNOWN);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(written + 2, "="),
	    written + 2);
	for (opt = options; opt->name != NULL; opt++) {
		matches += strncmp(opt->name, name, strlen(name)) == 0;
		similar_offer(&sim, name, opt->name);
	}
	if (matches > 1)
		return conf_args_complain(written,
		    "ambiguous option: several options begin like this; "
		    "write the whole name");
	if (sim.sim_name == NULL)
		return conf_args_complain(written, UNKNOWN);
	snprintf(cause, sizeof(cause), "unknown option; did you mean --%s?",
	    sim.sim_name);
	return conf_args_complain(written, cause);
}

/*
 * Reports a fault that getopt_long found.  `c` is its return value: ':' if a value is missing, else
 * '?'.
 */
static enum conf_action
conf_args_bad_option(int c, char **argv)
{
	const char *written = argv[optind - 1];
	char letter[3] = {'-', (char)optopt, '\0'};

	if (c == ':')
		return conf_args_complain(
		    strncmp(written, "--", 2) == 0 ? written : letter,
		    "the value is missing");
	/*
	 * In the middle of a group such as "-xt", optind has not advanced; optopt is the bad
	 * letter.
	 */
	if (optopt <= UCHAR_MAX && isprint(optopt) &&
	    strchr(short_options, optopt) == NULL)
		return conf_args_complain(letter, UNKNOWN);
	/* For a long option, optopt is not 0 if the option is known. */
	return optopt != 0
		   ? conf_args_complain(written, "this option takes no value")
		   : conf_args_unknown(written);
}

/* Prints the help of a key, or of all options if `word` is NULL or an option. */
static enum conf_action
conf_args_help(const char *word)
{
	char key[MAX_NAME], cause[64] = "unknown key; see pagewise --keys";
	const char *like;

	if (word == NULL || word[0] == '-') {
		conf_args_print_help();
		return CONF_EXIT_OK;
	}
	snprintf(key, sizeof(key), "%s", word);
	conf_args_exchange(key, '-', '_');
	if (conf_key_help(key))
		return CONF_EXIT_OK;
	like = conf_key_like(key);
	if (like != NULL)
		snprintf(cause, sizeof(cause), "unknown key; did you mean %s?",
		    like);
	return conf_args_complain(word, cause);
}

static enum conf_action
conf_args_take_option(int c, int index, char **argv, struct conf_args *args)
{
	switch (c) {
	case 'c':
		args->arg_config = optarg;
		break;
	case 't':
		args->arg_test = true;
		break;
	case 'T':
		args->arg_test = args->arg_dump = true;
		break;
	case 'V':
		conf_args_print_version();
		return CONF_EXIT_OK;
	case 'h':
		return conf_args_help(argv[optind]);
	case OPT_KEYS:
		conf_key_print();
		return CONF_EXIT_OK;
	case OPT_ROOT:
		args->arg_root = optarg;
		break;
	default:
		args->arg_sets[args->arg_nsets].arg_option =
		    options[index].name;
		args->arg_sets[args->arg_nsets++].arg_text =
		    optarg != NULL ? optarg : "true";
	}
	return CONF_RUN;
}

enum conf_action
conf_args_parse(int argc, char **argv, struct conf_args *args)
{
	enum conf_action action = CONF_RUN;
	int c, index = 0;

	memset(args, 0, sizeof(*args));
	args->arg_sets = calloc((size_t)argc + 1, sizeof(*args->arg_sets));
	if (args->arg_sets == NULL) {
		fprintf(stderr, "%spagewise: %s\n", log_error_prefix(),
		    strerror(ENOMEM));
		return CONF_EXIT_ERROR;
	}
	conf_args_find_options();
	opterr = 0;
	optind = 0; /* restarts getopt, even in the middle of "-tx" */
	while (action == CONF_RUN && (c = getopt_long(argc, argv, short_options,
					  options, &index)) != -1) {
		if (c == '?' || c == ':')
			action = conf_args_bad_option(c, argv);
		else
			action = conf_args_take_option(c, index, argv, args);
	}
	if (action != CONF_RUN)
		return action;
	if (optind < argc)
		return conf_args_complain(argv[optind],
		    "unexpected argument; write --root DIR to serve a "
		    "directory");
	if (args->arg_config != NULL && args->arg_config[0] == '\0')
		return conf_args_complain("--config", "the path is empty");
	return CONF_RUN;
}

bool
conf_args_serve(const struct conf_args *args)
{
	if (args->arg_config != NULL || args->arg_root != NULL)
		return true;
	fprintf(stderr,
	    "%spagewise: nothing to serve: give a directory with --root DIR, "
	    "or a configuration file with -c FILE (see pagewise -h)\n",
	    log_error_prefix());
	return false;
}

/*
 * Applies one option.  `first` is true for the first value of an option: that value replaces a list
 * from the file, and later values are added.
 */
static int
conf_args_apply_one(
    const struct conf_arg *arg, bool first, struct conf_scope *top)
{
	char key[MAX_NAME], option[MAX_NAME + 2];
	struct conf_why why;
	int error;

	snprintf(key, sizeof(key), "%s", arg->arg_option);
	conf_args_exchange(key, '-', '_');
	if (first) {
		conf_key_clear(top, key);
		conf_dump_value(top, key, NULL);
	}
	error = conf_key_set(top, key, arg->arg_text, &why);
	if (error == 0)
		conf_dump_value(top, key, arg->arg_text);
	if (error != 0) {
		snprintf(option, sizeof(option), "--%s", arg->arg_option);
		conf_args_complain(option, why.why_text);
	}
	return error;
}

int
conf_args_apply(const struct conf_args *args, struct conf_scope *top)
{
	const struct conf_arg *sets = args->arg_sets;
	size_t i, j;
	int error = 0;

	for (i = 0; error == 0 && i < args->arg_nsets; i++) {
		for (j = 0; j < i; j++)
			if (sets[j].arg_option == sets[i].arg_option)
				break;
		error = conf_args_apply_one(&sets[i], j == i, top);
	}
	return error;
}

int
conf_args_site(const struct conf_args *args, const struct conf_scope *top)
{
	struct conf_scope scope = *top;
	struct conf_why why;
	int error;

	scope.cs_where = KEY_SITE;
	error = conf_site_add(top, "default", &scope.cs_site, &why);
	if (error == 0)
		error = conf_key_set(&scope, "root", args->arg_root, &why);
	if (error != 0) {
		conf_args_complain("--root", why.why_text);
		return error;
	}
	conf_dump_section(top->cs_conf, KEY_SITE, "default");
	conf_dump_value(&scope, "root", args->arg_root);
	return 0;
}

void
conf_args_free(struct conf_args *args)
{
	free(args->arg_sets);
	args->arg_sets = NULL;
}
