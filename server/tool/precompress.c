/*
 * precompress: see precompress.h.
 */
#include "server/tool/precompress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/util/timespec.h"
#include "server/tool/compress.h"
#include "server/tool/size_text.h"
#include "server/tool/temporary.h"

/* A file and one of its siblings. */
struct sibling {
	struct tool *sb_tool;
	const struct walk_file *sb_file;
	int sb_fd; /* descriptor of the file */
	const struct stat *sb_stat;
	enum coding sb_coding;
	char sb_name[NAME_MAX + 1];
};

static struct precompress *
tool_precompress_own(const struct tool *to)
{
	return to->to_own;
}

/* ------------------------------------------------------------------ which files */

static const char *
tool_precompress_suffix(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot == NULL || dot == name ? "" : dot + 1;
}

static bool
tool_precompress_ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

/*
 * Returns true if the media type compresses well.  Other types are compressed already, or no
 * browser loads them.
 */
static bool
tool_precompress_is_compressible(const char *type)
{
	static const char *const types[] = {"application/json",
	    "application/xml", "application/wasm", "application/x-ndjson",
	    "application/yaml", "application/toml", "application/x-subrip",
	    "application/vnd.apple.mpegurl", "application/rtf",
	    "application/postscript", "font/ttf", "font/otf", "font/collection",
	    "application/vnd.ms-fontobject", "image/bmp",
	    "image/vnd.microsoft.icon"};

	if (strncmp(type, "text/", 5) == 0 ||
	    tool_precompress_ends_in(type, "+json") ||
	    tool_precompress_ends_in(type, "+xml"))
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

static bool
tool_precompress_wants(const struct tool *to, const char *name)
{
	const struct precompress *pre = tool_precompress_own(to);
	const char *type;

	if (temporary_is(name))
		return false;
	if (pre->pre_suffixes[0] == NULL) {
		type = mime_type(pre->pre_mime, name, "");
		return tool_precompress_is_compressible(type) &&
		       coding_of_format(name, type) == CODING_NONE;
	}
	for (const char *const *s = pre->pre_suffixes; *s != NULL; s++)
		if (strcasecmp(*s, tool_precompress_suffix(name)) == 0)
			return coding_of_name(name) == CODING_NONE;
	return false;
}

static void
tool_precompress_dotfile(struct tool *to, const struct walk_file *wf)
{
	(void)to;
	if (temporary_is(wf->wf_name))
		temporary_clean(wf->wf_dir->wd_fd, wf->wf_name);
}

/* ------------------------------------------------------------------- a sibling */

static void
tool_precompress_say(const struct sibling *sb, int error)
{
	static const char more[] = "; the remaining files are skipped";
	bool all = error == -ENOSPC || error == -EROFS || error == -EDQUOT;

	if (tool_stopped())
		return;
	if (all)
		tool_give_up();
	tool_fail(sb->sb_tool, sb->sb_file->wf_dir, sb->sb_name,
	    "cannot write this sibling: %s%s", strerror(-error),
	    all ? more : "");
}

enum state { STATE_NONE, STATE_OUTDATED, STATE_CURRENT, STATE_OTHER };

/*
 * Returns true if the sibling has the time of its file, as each sibling that the command or gzip(1) made.
 * Fractions of a second may be lost in a copy, so a later one is no difference.  A newer sibling may be of a
 * version that was taken back.
 */
static bool
tool_precompress_is_current(
    const struct timespec *sibling, const struct timespec *file)
{
	return sibling->tv_sec == file->tv_sec &&
	       !timespec_is_before(sibling, file);
}

static enum state
tool_precompress_state_of(const struct sibling *sb)
{
	struct stat st;

	if (fstatat(sb->sb_file->wf_dir->wd_fd, sb->sb_name, &st,
		AT_SYMLINK_NOFOLLOW) == -1)
		return STATE_NONE;
	if (!S_ISREG(st.st_mode))
		return STATE_OTHER;
	return tool_precompress_is_current(&st.st_mtim, &sb->sb_stat->st_mtim)
		   ? STATE_CURRENT
		   : STATE_OUTDATED;
}

static void
tool_precompress_not_smaller(const struct sibling *sb, enum state state)
{
	struct precompress *pre = tool_precompress_own(sb->sb_tool);

	pre->pre_larger++;
	if (state != STATE_OUTDATED)
		return;
	if (unlinkat(sb->sb_file->wf_dir->wd_fd, sb->sb_name, 0) == 0)
		pre->pre_removed++;
	else if (errno != ENOENT)
		tool_fail(sb->sb_tool, sb->sb_file->wf_dir, sb->sb_name,
		    "cannot remove this outdated sibling: %s; remove it "
		    "yourself",
		    strerror(errno));
}

static void
tool_precompress_made(const struct sibling *sb, uint64_t bytes)
{
	struct precompress_count *pc =
	    &tool_precompress_own(sb->sb_tool)->pre_counts[sb->sb_coding];

	pc->pc_made++;
	pc->pc_before += (uint64_t)sb->sb_stat->st_size;
	pc->pc_after += bytes;
}

/*
 * Makes the sibling, and stores its size in *bytes.  Returns 0, -E2BIG if the sibling would not be
 * smaller than the file, -ESTALE if the file changed, or another -errno.
 */
static int
tool_precompress_make(const struct sibling *sb, uint64_t *bytes)
{
	int level =
		tool_precompress_own(sb->sb_tool)->pre_levels[sb->sb_coding],
	    error;
	struct temporary tmp;

	error = temporary_create(&tmp, sb->sb_file->wf_dir->wd_fd);
	if (error != 0)
		return error;
	error = compress_file(sb->sb_coding, level, sb->sb_fd,
	    (uint64_t)sb->sb_stat->st_size, tmp.tmp_fd, bytes, tool_stopped);
	if ((error == 0 || error == -E2BIG) &&
	    !tool_unchanged(sb->sb_fd, sb->sb_stat))
		error = -ESTALE;
	if (error == 0)
		return temporary_commit(&tmp, sb->sb_name, sb->sb_stat);
	temporary_remove(&tmp);
	return error;
}

static void
tool_precompress_make_if_needed(const struct sibling *sb)
{
	struct tool *to = sb->sb_tool;
	enum state state = tool_precompress_state_of(sb);
	uint64_t bytes;
	int error;

	if (state == STATE_OTHER) {
		tool_fail(to, sb->sb_file->wf_dir, sb->sb_name,
		    "this sibling is not a regular file: move it away");
		return;
	}
	if (state == STATE_CURRENT && !to->to_force) {
		tool_precompress_own(to)->pre_current++;
		return;
	}
	if ((uint64_t)sb->sb_stat->st_size <
	    tool_precompress_own(to)->pre_min_size)
		error = -E2BIG;
	else
		error = tool_settle(sb->sb_stat)
			    ? tool_precompress_make(sb, &bytes)
			    : -ECANCELED;
	if (error == 0)
		tool_precompress_made(sb, bytes);
	else if (error == -E2BIG)
		tool_precompress_not_smaller(sb, state);
	else if (error == -ESTALE)
		tool_fail(to, sb->sb_file->wf_dir, sb->sb_file->wf_name,
		    "the file changed while it was read; run the command "
		    "again");
	else
		tool_precompress_say(sb, error);
}

static void
tool_precompress_file(
    struct tool *to, const struct walk_file *wf, int fd, const struct stat *st)
{
	const struct precompress *pre = tool_precompress_own(to);
	struct sibling sb = {
	    .sb_tool = to, .sb_file = wf, .sb_fd = fd, .sb_stat = st};
	size_t len;

	for (unsigned i = 0; i < pre->pre_ncodings && !tool_stopped(); i++) {
		sb.sb_coding = pre->pre_codings[i];
		len = (size_t)snprintf(sb.sb_name, sizeof(sb.sb_name), "%s%s",
		    wf->wf_name, coding_suffix(sb.sb_coding));
		if (len < sizeof(sb.sb_name))
			tool_precompress_make_if_needed(&sb);
		else
			tool_fail(to, wf->wf_dir, wf->wf_name,
			    "the name is too long to append %s",
			    coding_suffix(sb.sb_coding));
	}
}

/* ----------------------------------------------------------------- what was done */

static void
tool_precompress_print_count(
    enum coding coding, const struct precompress_count *pc)
{
	char before[16], after[16];
	double left = pc->pc_before == 0
			  ? 1
			  : (double)pc->pc_after / (double)pc->pc_before;

	size_text(pc->pc_before, before, sizeof(before));
	size_text(pc->pc_after, after, sizeof(after));
	printf("%-4s %llu made, %s to %s (%.1f %% less)\n",
	    coding_suffix(coding) + 1, (unsigned long long)pc->pc_made, before,
	    after, 100 * (1 - left));
}

static void
tool_precompress_end(const struct tool *to)
{
	const struct precompress *pre = tool_precompress_own(to);

	for (unsigned i = 0; i < pre->pre_ncodings; i++)
		tool_precompress_print_count(
		    pre->pre_codings[i], &pre->pre_counts[pre->pre_codings[i]]);
	printf("%llu files; siblings: %llu current, %llu not smaller, "
	       "%llu removed; %llu errors\n",
	    (unsigned long long)to->to_files,
	    (unsigned long long)pre->pre_current,
	    (unsigned long long)pre->pre_larger,
	    (unsigned long long)pre->pre_removed,
	    (unsigned long long)to->to_failed);
}

const struct tool_command precompress_command = {
    .tc_name = "precompress",
    .tc_wants = tool_precompress_wants,
    .tc_file = tool_precompress_file,
    .tc_dotfile = tool_precompress_dotfile,
    .tc_end = tool_precompress_end,
};
