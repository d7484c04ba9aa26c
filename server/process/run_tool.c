/*
 * run_tool: see run_tool.h.
 */
#include "server/process/run_tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/os.h"

#include "server/conf/similar.h"
#include "server/log/log.h"

#define TOOL "pagewise-tool"

/* Commands that run_tool knows: those of pagewise-tool, and "sign", which main itself runs. */
static const char *const words[] = {
    "precompress", "digest", "drain", "undrain", "assign", "sign"};
#define WORDS (sizeof(words) / sizeof(words[0]))

static bool
run_tool_is_word(const char *text)
{
	for (size_t i = 0; i < WORDS; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

static int
run_tool_not_a_word(const char *text)
{
	struct similar sim = {0};

	for (size_t i = 0; i < WORDS; i++)
		similar_offer(&sim, text, words[i]);
	if (sim.sim_name == NULL)
		return -1;
	fprintf(stderr, "%spagewise: %s: unknown command; did you mean %s?\n",
	    log_error_prefix(), text, sim.sim_name);
	return 2;
}

int
run_tool(int argc, char **argv)
{
	static const char *const places[] = {"/", "/../libexec/"};
	char program[PATH_MAX], path[PATH_MAX + 64];
	char *slash;
	int error;

	if (argc < 2)
		return -1;
	if (!run_tool_is_word(argv[1]))
		return run_tool_not_a_word(argv[1]);
	error = os_program(program, sizeof(program));
	slash = error == 0 ? strrchr(program, '/') : NULL;
	if (slash == NULL)
		snprintf(program, sizeof(program), "/usr/local/sbin");
	else
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s" TOOL, program, places[i]);
		execv(path, argv);
		if (errno != ENOENT)
			break;
	}
	fprintf(stderr,
	    "%spagewise: %s: cannot run %s: %s; pagewise looks for "
	    "pagewise-tool in %s and in ../libexec relative to that directory: "
	    "run make install\n",
	    log_error_prefix(), argv[1], path, strerror(errno), program);
	return 1;
}
