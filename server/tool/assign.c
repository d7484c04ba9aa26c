/*
 * assign: see assign.h.  The key of a file is the part of its path that HAProxy hashes.  The walk
 * is depth-first, so files with the same key follow each other, and only the sums of one key are
 * stored.
 */
#include "server/tool/assign.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/http/target.h"
#include "server/tool/size_text.h"
#include "server/tool/walk.h"

#define USAGE	  2
#define MAX_NODES 1024
#define PATH_SIZE (8 << 10) /* maximum bytes of an encoded path */

struct sum {
	uint64_t sum_paths;
	uint64_t sum_files;
	uint64_t sum_bytes;
};

struct run {
	const struct assign *ru_as;
	size_t ru_n; /* number of nodes */
	struct chash_node ru_nodes[MAX_NODES + 1];
	struct sum ru_sums[MAX_NODES + 1]; /* sums of each node */
	struct sum ru_moved;		   /* sums of the paths that move */
	struct chash *ru_chash;
	struct chash *ru_larger; /* ring with the added node, or NULL */
	char ru_key[PATH_SIZE];	 /* key of the current files */
	size_t ru_len;		 /* length of ru_key; 0 if there is none */
	struct sum ru_sum;	 /* sums of ru_key */
	int ru_status;
};

static int assign_fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/* Prints a message.  Returns the exit status for a wrong command line. */
static int
assign_fail(const char *fmt, ...)
{
	va_list ap;

	fputs("pagewise assign: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return USAGE;
}

/* ------------------------------------------------------------------------ nodes */

static bool
assign_number(const char *text, unsigned long max, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || n < 1 || n > max)
		return false;
	*out = (uint32_t)n;
	return true;
}

static int
assign_add_node(struct run *ru, char *text)
{
	char *weight = strchr(text, ':'), *id;
	struct chash_node cn = {
	    .cn_name = text, .cn_id = (uint32_t)ru->ru_n + 1, .cn_weight = 1};

	if (weight != NULL)
		*weight++ = '\0';
	id = strchr(text, '=');
	if (id != NULL)
		*id++ = '\0';
	if (text[0] == '\0')
		return assign_fail(
		    "a node has no name: write NAME[=ID][:WEIGHT],...");
	if (weight != NULL &&
	    !assign_number(weight, CHASH_WEIGHT, &cn.cn_weight))
		return assign_fail(
		    "%s: the weight \"%s\" is not a number from 1 to %d", text,
		    weight, CHASH_WEIGHT);
	if (id != NULL && !assign_number(id, CHASH_ID, &cn.cn_id))
		return assign_fail(
		    "%s: the id \"%s\" is not a number from 1 to %d", text, id,
		    CHASH_ID);
	for (size_t i = 0; i < ru->ru_n; i++) {
		const struct chash_node *other = &ru->ru_nodes[i];

		if (strcmp(other->cn_name, text) == 0)
			return assign_fail("%s is listed twice", text);
		if (other->cn_id == cn.cn_id)
			return assign_fail(
			    "%s and %s both have the id %u: write each "
			    "node as NAME=ID, with the id of its HAProxy "
			    "server",
			    other->cn_name, text, cn.cn_id);
	}
	ru->ru_nodes[ru->ru_n++] = cn;
	return 0;
}

/* Parses the nodes and creates the rings.  Returns 0, or the exit status. */
static int
assign_set_nodes(struct run *ru)
{
	char *list = ru->ru_as->as_nodes, *text;
	int status = 0;

	while (status == 0 && (text = strsep(&list, ",")) != NULL) {
		if (ru->ru_n == MAX_NODES)
			return assign_fail(
			    "more than %d nodes are listed: remove some",
			    MAX_NODES);
		status = assign_add_node(ru, text);
	}
	if (status != 0)
		return status;
	ru->ru_chash = chash_create(ru->ru_as->as_ring, ru->ru_nodes, ru->ru_n);
	if (ru->ru_as->as_add != NULL) {
		status = assign_add_node(ru, ru->ru_as->as_add);
		if (status != 0)
			return status;
		ru->ru_larger =
		    chash_create(ru->ru_as->as_ring, ru->ru_nodes, ru->ru_n);
	}
	if (ru->ru_chash == NULL ||
	    (ru->ru_as->as_add != NULL && ru->ru_larger == NULL)) {
		assign_fail("%s", strerror(ENOMEM));
		return 1;
	}
	return 0;
}

/* ------------------------------------------------------------------------ paths */

static void
assign_add(struct sum *to, const struct sum *sum)
{
	to->sum_paths += sum->sum_paths;
	to->sum_files += sum->sum_files;
	to->sum_bytes += sum->sum_bytes;
}

/*
 * Adds the sums of the current key to the totals.  Prints the key, but with an added node only if
 * the key moves.  Call after the last file of the key.
 */
static void
assign_tell(struct run *ru)
{
	size_t node, after;

	if (ru->ru_len == 0)
		return;
	node = after = chash_find(ru->ru_chash, ru->ru_key, ru->ru_len);
	if (ru->ru_larger != NULL)
		after = chash_find(ru->ru_larger, ru->ru_key, ru->ru_len);
	if (ru->ru_larger == NULL)
		printf("%s\t%s\n", ru->ru_nodes[node].cn_name, ru->ru_key);
	else if (after != node) {
		printf("%s\t%s\t%s\n", ru->ru_nodes[node].cn_name,
		    ru->ru_nodes[after].cn_name, ru->ru_key);
		assign_add(&ru->ru_moved, &ru->ru_sum);
	}
	assign_add(&ru->ru_sums[after], &ru->ru_sum);
	ru->ru_len = 0;
}

static void
assign_on_failed(
    void *arg, const struct walk_dir *dir, const char *name, int error)
{
	struct run *ru = arg;

	ru->ru_status = 1;
	fputs("pagewise assign: ", stderr);
	walk_print(stderr, dir, name);
	fprintf(stderr, ": %s\n", walk_error(error));
}

static void
assign_on_file(void *arg, const struct walk_file *wf)
{
	struct run *ru = arg;
	char path[PATH_SIZE / 3], key[PATH_SIZE];
	struct stat st;
	size_t len;
	long n;

	if (wf->wf_name[0] == '.' && !ru->ru_as->as_dotfiles)
		return;
	if (fstatat(wf->wf_dir->wd_fd, wf->wf_name, &st, AT_SYMLINK_NOFOLLOW) ==
	    -1)
		return;
	n = walk_path(wf, path, sizeof(path));
	if (n < 0) {
		fputs("pagewise assign: ", stderr);
		walk_print(stderr, wf->wf_dir, wf->wf_name);
		fputs(": the path is too long for a request\n", stderr);
		ru->ru_status = 1;
		return;
	}
	(void)target_encode((struct str){path, (size_t)n}, key, sizeof(key));
	len = chash_depth(key, strlen(key), ru->ru_as->as_depth);
	if (len != ru->ru_len || memcmp(key, ru->ru_key, len) != 0) {
		assign_tell(ru);
		memcpy(ru->ru_key, key, len);
		ru->ru_key[len] = '\0';
		ru->ru_len = len;
		ru->ru_sum = (struct sum){.sum_paths = 1};
	}
	ru->ru_sum.sum_files++;
	ru->ru_sum.sum_bytes += (uint64_t)st.st_size;
}

static bool
assign_on_enter(void *arg, const char *name)
{
	const struct run *ru = arg;

	return name[0] != '.' || ru->ru_as->as_dotfiles;
}

static bool
assign_no_more(void)
{
	return false;
}

/* ------------------------------------------------------------------------ sums */

static void
assign_print_sum(const char *name, const struct sum *sum, const struct sum *all)
{
	char bytes[32];

	size_text(sum->sum_bytes, bytes, sizeof(bytes));
	fprintf(stderr,
	    "%s: %" PRIu64 " paths, %" PRIu64 " files, %s (%.1f %%)\n", name,
	    sum->sum_paths, sum->sum_files, bytes,
	    all->sum_bytes > 0
		? 100 * (double)sum->sum_bytes / (double)all->sum_bytes
		: 0.0);
}

static void
assign_print_sums(const struct run *ru)
{
	struct sum all = {0};

	for (size_t i = 0; i < ru->ru_n; i++)
		assign_add(&all, &ru->ru_sums[i]);
	for (size_t i = 0; i < ru->ru_n; i++)
		assign_print_sum(
		    ru->ru_nodes[i].cn_name, &ru->ru_sums[i], &all);
	if (ru->ru_larger != NULL)
		assign_print_sum("moves", &ru->ru_moved, &all);
}

int
assign_run(const struct assign *as, const char *dir)
{
	struct run *ru = calloc(1, sizeof(*ru));
	const struct walk wk = {
	    .wk_arg = ru,
	    .wk_file = assign_on_file,
	    .wk_enter = assign_on_enter,
	    .wk_stopped = assign_no_more,
	    .wk_failed = assign_on_failed,
	};
	int status;

	if (ru == NULL) {
		assign_fail("%s", strerror(ENOMEM));
		return 1;
	}
	ru->ru_as = as;
	status = assign_set_nodes(ru);
	if (status == 0) {
		walk_tree(&wk, dir);
		assign_tell(ru);
		if (!as->as_quiet)
			assign_print_sums(ru);
		status = ru->ru_status;
	}
	chash_destroy(&ru->ru_chash);
	chash_destroy(&ru->ru_larger);
	free(ru);
	return status;
}
