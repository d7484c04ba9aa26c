/*
 * main of pagewise-tool: its command line.  Messages use the server's program name, as
 * "pagewise precompress DIR" runs pagewise-tool.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/tool/assign.h"
#include "server/tool/compress.h"
#include "server/tool/digest.h"
#include "server/tool/order.h"
#include "server/tool/precompress.h"

#define USAGE	  2 /* exit status */
#define MAX_JOBS  1024
#define MAX_DEPTH 100
#define MIN_SIZE  256 /* default of --min-size; smaller files fit one packet */

enum { OPT_DOTFILES = 256, OPT_ADD, OPT_RING };

static const char precompress_help[] =
    "usage: pagewise precompress [option ...] DIR ...\n"
    "Compresses text and other compressible files into the siblings FILE.zst, "
    "FILE.br\n"
    "and FILE.gz; see precompressed in pagewise.conf(5).\n"
    "    -c, --codings zst,br,gz    content codings to write (all)\n"
    "    -l, --level CODING=N,...   zst=1 to 22 (19), br=0 to 11 (11), gz=1 to "
    "9 (9)\n"
    "    -m, --min-size BYTES       skip smaller files (256)\n"
    "    -s, --suffixes LIST        select files by suffix (html,js), not "
    "by media type\n"
    "    -j, --jobs N               process N files in parallel (number of "
    "processors)\n"
    "    -f, --force                replace siblings even if they are "
    "current\n"
    "        --dotfiles             include names that begin with a dot\n"
    "    -q, --quiet                print errors only\n"
    "    -h, --help                 print this, then exit\n";

static const struct option precompress_options[] = {
    {"codings", required_argument, NULL, 'c'},
    {"level", required_argument, NULL, 'l'},
    {"min-size", required_argument, NULL, 'm'},
    {"suffixes", required_argument, NULL, 's'},
    {"jobs", required_argument, NULL, 'j'},
    {"force", no_argument, NULL, 'f'},
    {"dotfiles", no_argument, NULL, OPT_DOTFILES},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const char digest_help[] =
    "usage: pagewise digest [option ...] DIR ...\n"
    "Writes the SHA-256 of each file into the attribute user.pagewise.sha256, "
    "which the\n"
    "server sends as Repr-Digest; see digest in pagewise.conf(5).\n"
    "    -c, --check                compare the files with their digests, "
    "write nothing\n"
    "    -j, --jobs N               process N files in parallel (number of "
    "processors)\n"
    "    -f, --force                replace digests even if they are current\n"
    "        --dotfiles             include names that begin with a dot\n"
    "    -q, --quiet                print errors only\n"
    "    -h, --help                 print this, then exit\n";

static const struct option digest_options[] = {
    {"check", no_argument, NULL, 'c'},
    {"jobs", required_argument, NULL, 'j'},
    {"force", no_argument, NULL, 'f'},
    {"dotfiles", no_argument, NULL, OPT_DOTFILES},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const char drain_help[] =
    "usage: pagewise drain [SOCKET]\n"
    "       pagewise undrain [SOCKET]\n"
    "drain makes load balancers send no new clients to the running server: "
    "agent reports\n"
    "\"drain\", and the path ready returns 503.  undrain reverses this.  The "
    "server still\n"
    "serves all requests.  SOCKET is the value of admin in pagewise.conf(5); "
    "the default\n"
    "is %s.\n"
    "    -h, --help                 print this, then exit\n";

static const struct option drain_options[] = {
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const char assign_help[] =
    "usage: pagewise assign [option ...] NAME[=ID][:WEIGHT],... DIR\n"
    "Prints which node serves which path below DIR, behind HAProxy with "
    "\"balance uri\n"
    "path-only\" and \"hash-type consistent sdbm avalanche\"; sums go to "
    "standard error.\n"
    "    -d, --depth N              keep directories of N levels together, as "
    "depth of balance;\n"
    "                               0: assign each file separately (1)\n"
    "        --add NODE             print what moves if this node is added: "
    "from, to, path\n"
    "        --ring 2.6|3.0         hash ring of your HAProxy version; see "
    "pagewise-tool(8) (2.6)\n"
    "        --dotfiles             include names that begin with a dot\n"
    "    -q, --quiet                do not print the sums\n"
    "    -h, --help                 print this, then exit\n";

static const struct option assign_options[] = {
    {"depth", required_argument, NULL, 'd'},
    {"add", required_argument, NULL, OPT_ADD},
    {"ring", required_argument, NULL, OPT_RING},
    {"dotfiles", no_argument, NULL, OPT_DOTFILES},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* ------------------------------------------------------------------------ values */

static _Noreturn void tool_main_fail(const struct tool *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void
tool_main_fail(const struct tool *to, const char *fmt, ...)
{
	const char *name = to->to_command->tc_name;
	va_list ap;

	fprintf(stderr, "pagewise %s: ", name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; pagewise %s -h prints the options\n", name);
	exit(USAGE);
}

static unsigned long
tool_main_number(const struct tool *to, const char *option, const char *text,
    unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 ||
	    n < min || n > max)
		tool_main_fail(to, "%s: \"%s\" is not a number from %lu to %lu",
		    option, text, min, max);
	return n;
}

static enum coding
tool_main_coding(const struct tool *to, const char *option, const char *text)
{
	enum coding c = coding_of_suffix(text);

	if (c == CODING_NONE)
		tool_main_fail(
		    to, "%s: \"%s\" is not zst, br or gz", option, text);
	if (compress_levels(c) == NULL)
		tool_main_fail(
		    to, "%s: this build leaves %s out", option, text);
	return c;
}

static void
tool_main_set_codings(
    const struct tool *to, struct precompress *pre, char *list)
{
	enum coding c;

	pre->pre_ncodings = 0;
	for (char *s; (s = strsep(&list, ",")) != NULL;) {
		c = tool_main_coding(to, "--codings", s);
		for (unsigned i = 0; i < pre->pre_ncodings; i++)
			if (pre->pre_codings[i] == c)
				tool_main_fail(
				    to, "--codings: %s is listed twice", s);
		pre->pre_codings[pre->pre_ncodings++] = c;
	}
}

static void
tool_main_set_levels(const struct tool *to, struct precompress *pre, char *list)
{
	const struct compress_levels *cl;
	enum coding c;
	char *equals;

	for (char *s; (s = strsep(&list, ",")) != NULL;) {
		equals = strchr(s, '=');
		if (equals == NULL)
			tool_main_fail(
			    to, "--level: \"%s\" is not CODING=N", s);
		*equals = '\0';
		c = tool_main_coding(to, "--level", s);
		cl = compress_levels(c);
		pre->pre_levels[c] =
		    (int)tool_main_number(to, "--level", equals + 1,
			(unsigned long)cl->cl_min, (unsigned long)cl->cl_max);
	}
}

static void
tool_main_set_suffixes(
    const struct tool *to, struct precompress *pre, char *list)
{
	size_t n = 0;

	for (char *s; (s = strsep(&list, ",")) != NULL;) {
		if (n == PRECOMPRESS_SUFFIXES)
			tool_main_fail(to,
			    "--suffixes: more than %d suffixes are listed",
			    PRECOMPRESS_SUFFIXES);
		s += *s == '.';
		if (*s == '\0')
			tool_main_fail(to, "--suffixes: one suffix is empty");
		pre->pre_suffixes[n++] = s;
	}
}

static enum chash_ring
tool_main_ring(const struct tool *to, const char *text)
{
	if (strcmp(text, "3.0") == 0)
		return CHASH_3_0;
	if (strcmp(text, "2.6") != 0)
		tool_main_fail(to, "--ring: \"%s\" is not 2.6 or 3.0", text);
	return CHASH_2_6;
}

static unsigned
tool_main_processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : (unsigned)n;
}

static _Noreturn void
tool_main_fail_option(const struct tool *to, int option, const char *given)
{
	if (option == ':')
		tool_main_fail(to, "%s needs a value", given);
	tool_main_fail(to, "unknown option %s", given);
}

/* Handles an option that commands share.  Returns false for any other option. */
static bool
tool_main_common_option(struct tool *to, int option, const char *help)
{
	switch (option) {
	case 'j':
		to->to_jobs = (unsigned)tool_main_number(
		    to, "--jobs", optarg, 1, MAX_JOBS);
		return true;
	case 'f':
		to->to_force = true;
		return true;
	case 'q':
		to->to_quiet = true;
		return true;
	case OPT_DOTFILES:
		to->to_dotfiles = true;
		return true;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return false;
	}
}

/* ---------------------------------------------------------------------- commands */

static int
tool_main_precompress(struct tool *to, int argc, char **argv)
{
	static struct precompress pre = {.pre_min_size = MIN_SIZE};
	const struct compress_levels *cl;
	int option, status;

	for (enum coding c = CODING_ZSTD; c <= CODINGS; c++) {
		cl = compress_levels(c);
		if (cl == NULL)
			continue;
		pre.pre_levels[c] = cl->cl_default;
		pre.pre_codings[pre.pre_ncodings++] = c;
	}
	pre.pre_mime = mime_builtin();
	if (pre.pre_mime == NULL)
		return 1;
	to->to_own = &pre;
	while ((option = getopt_long(argc, argv, ":c:l:m:s:j:fqh",
		    precompress_options, NULL)) != -1) {
		if (option == 'c')
			tool_main_set_codings(to, &pre, optarg);
		else if (option == 'l')
			tool_main_set_levels(to, &pre, optarg);
		else if (option == 'm')
			pre.pre_min_size = tool_main_number(
			    to, "--min-size", optarg, 0, (unsigned long)-1);
		else if (option == 's')
			tool_main_set_suffixes(to, &pre, optarg);
		else if (!tool_main_common_option(to, option, precompress_help))
			tool_main_fail_option(to, option, argv[optind - 1]);
	}
	if (argv[optind] == NULL)
		tool_main_fail(to, "no directory is given");
	status = tool_run(to, argv + optind);
	mime_destroy(&pre.pre_mime);
	return status;
}

static int
tool_main_digest(struct tool *to, int argc, char **argv)
{
	static struct digest_work dw;
	int option;

	to->to_own = &dw;
	while ((option = getopt_long(
		    argc, argv, ":cj:fqh", digest_options, NULL)) != -1) {
		if (option == 'c')
			dw.dw_check = true;
		else if (!tool_main_common_option(to, option, digest_help))
			tool_main_fail_option(to, option, argv[optind - 1]);
	}
	if (argv[optind] == NULL)
		tool_main_fail(to, "no directory is given");
	return tool_run(to, argv + optind);
}

static int
tool_main_order(struct tool *to, int argc, char **argv)
{
	const char *name = to->to_command->tc_name;
	int option = getopt_long(argc, argv, ":h", drain_options, NULL);
	char path[64];

	order_socket(path, sizeof(path));
	if (option == 'h') {
		printf(drain_help, path);
		return 0;
	}
	if (option != -1)
		tool_main_fail_option(to, option, argv[optind - 1]);
	if (argc > optind + 1)
		tool_main_fail(to, "more than one socket is given");
	return order_send(name, argc > optind ? argv[optind] : path);
}

static int
tool_main_assign(struct tool *to, int argc, char **argv)
{
	struct assign as = {.as_depth = 1};
	int option;

	while ((option = getopt_long(
		    argc, argv, ":d:qh", assign_options, NULL)) != -1) {
		if (option == 'd')
			as.as_depth = (unsigned)tool_main_number(
			    to, "--depth", optarg, 0, MAX_DEPTH);
		else if (option == OPT_ADD)
			as.as_add = optarg;
		else if (option == OPT_RING)
			as.as_ring = tool_main_ring(to, optarg);
		else if (!tool_main_common_option(to, option, assign_help))
			tool_main_fail_option(to, option, argv[optind - 1]);
	}
	if (argc - optind != 2)
		tool_main_fail(
		    to, "a list of nodes and one directory are needed");
	as.as_nodes = argv[optind];
	as.as_dotfiles = to->to_dotfiles;
	as.as_quiet = to->to_quiet;
	return assign_run(&as, argv[optind + 1]);
}

static const struct tool_command drain_command = {.tc_name = "drain"},
				 undrain_command = {.tc_name = "undrain"},
				 assign_command = {.tc_name = "assign"};

static const struct {
	const struct tool_command *command;
	int (*run)(struct tool *, int argc, char **argv);
} commands[] = {{&precompress_command, tool_main_precompress},
    {&digest_command, tool_main_digest}, {&drain_command, tool_main_order},
    {&undrain_command, tool_main_order}, {&assign_command, tool_main_assign}};

int
main(int argc, char **argv)
{
	struct tool to = {.to_jobs = tool_main_processors()};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		to.to_command = commands[i].command;
		if (argc > 1 && strcmp(argv[1], to.to_command->tc_name) == 0)
			return commands[i].run(&to, argc - 1, argv + 1);
	}
	fputs("usage: pagewise precompress -h, pagewise digest -h, pagewise "
	      "assign -h, pagewise drain -h\n",
	    stderr);
	return USAGE;
}
