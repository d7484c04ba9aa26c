/*
 * fuzz_main: runs a harness over inputs that are there, without a fuzzer, and says
 * in the Test Anything Protocol how that went; an input that ends the process leaves
 * the plan unfulfilled.
 *
 *	fuzz_NAME [FILE or DIRECTORY ...]
 *
 * Without arguments: tests/fuzz/corpus/NAME and, if it is there, tests/fuzz/cases/NAME.
 */
#include <dirent.h>
#include <errno.h>

#include "fuzz.h"

struct inputs {
	char **in_paths;
	size_t in_count;
};

static int
visible(const struct dirent *de)
{
	return de->d_name[0] != '.';
}

static char *
joined(const char *dir, const char *name)
{
	char *path;

	CHECK(asprintf(&path, "%s/%s", dir, name) != -1);
	return path;
}

/* Takes over path. */
static void
add_path(struct inputs *in, char *path)
{
	in->in_paths =
	    realloc(in->in_paths, (in->in_count + 1) * sizeof(*in->in_paths));
	CHECK(in->in_paths != NULL);
	in->in_paths[in->in_count++] = path;
}

static bool
add(struct inputs *in, const char *path)
{
	struct dirent **names;
	int i, n = scandir(path, &names, visible, alphasort);

	if (n == -1 && errno != ENOTDIR)
		return false;
	if (n == -1)
		add_path(in, strdup(path));
	for (i = 0; i < n; i++) {
		add_path(in, joined(path, names[i]->d_name));
		free(names[i]);
	}
	if (n != -1)
		free(names);
	return true;
}

static bool
add_defaults(struct inputs *in, const char *program)
{
	const char *name = strstr(program, "fuzz_");
	char *corpus, *cases;
	bool found;

	name = name == NULL ? "" : name + strlen("fuzz_");
	corpus = joined("tests/fuzz/corpus", name);
	cases = joined("tests/fuzz/cases", name);
	found = add(in, corpus);
	add(in, cases);
	free(corpus);
	free(cases);
	return found;
}

static bool
run(const char *path)
{
	FILE *fp = fopen(path, "re");
	char *data = NULL;
	size_t size = 0;
	ssize_t n;

	if (fp == NULL)
		return false;
	/* No byte is -2: so this is all of the file. */
	n = getdelim(&data, &size, -2, fp);
	fclose(fp);
	if (n < 0)
		n = 0;
	data = realloc(data, n > 0 ? (size_t)n : 1);
	CHECK(data != NULL);
	LLVMFuzzerTestOneInput((const uint8_t *)data, (size_t)n);
	free(data);
	return true;
}

int
main(int argc, char **argv)
{
	struct inputs in = {0};
	bool ok = true, found = argc > 1 || add_defaults(&in, argv[0]);

	for (size_t i = 1; i < (size_t)argc; i++)
		found &= add(&in, argv[i]);
	printf("1..%zu\n", in.in_count);
	for (size_t i = 0; i < in.in_count; i++) {
		/* What it is, in case that nothing comes after it. */
		printf("# %s\n", in.in_paths[i]);
		fflush(stdout);
		ok = run(in.in_paths[i]);
		printf("%s %zu\n", ok ? "ok" : "not ok", i + 1);
		found &= ok;
		free(in.in_paths[i]);
	}
	free(in.in_paths);
	if (in.in_count == 0 || !found)
		fprintf(stderr, "%s: inputs are missing\n", argv[0]);
	return in.in_count > 0 && found ? 0 : 1;
}
