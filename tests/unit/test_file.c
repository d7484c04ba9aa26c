/*
 * Opening files (lib/file/file.h): what is noticed and when, what is never opened,
 * what leaves the root.
 */
#include "lib_fixture.h"
#include "lib/file/negative_cache.h"
#include "lib/util/clock.h"

#ifdef __linux__
#include <sys/inotify.h>
#endif
#include <sys/un.h>

#define SECOND UINT64_C(1000000)
#define SIZE   5000

TEST(a_file_has_what_stat_says)
{
	struct pw_file *file = new_file("f", SIZE);
	char data[SIZE + 1], expected[SIZE];
	struct stat st;

	assert_int_equal(stat(path_in("f"), &st), 0);
	assert_int_equal(file->fil_type, PW_FILE_REGULAR);
	assert_int_equal(file->fil_size, SIZE);
	assert_int_equal(file->fil_mtime.tv_sec, st.st_mtim.tv_sec);
	assert_int_equal(file->fil_mtime.tv_nsec, st.st_mtim.tv_nsec);
	assert_int_equal(file->fil_ino, st.st_ino);
	assert_int_equal(file->fil_dev, st.st_dev);
	assert_null(file->fil_user);
	fill(expected, 0, SIZE);
	assert_int_equal(pread(file->fil_fd, data, sizeof(data), 0), SIZE);
	assert_memory_equal(data, expected, SIZE);
	pw_file_unref(&file);
	assert_null(file);
}

TEST(within_a_second_nothing_is_looked_up)
{
	uint64_t now = clock_now();
	const struct pw_file *file;

	char dir[sizeof(fx->fx_dir) + 300];

	snprintf(dir, sizeof(dir), "%s", path_in("d"));
	assert_int_equal(mkdir(dir, 0755), 0);
	make_file("d/f", SIZE);
	file = peek("d/f", now);
	assert_int_equal(rename(dir, path_in("e")), 0);
	assert_ptr_equal(peek("d/f", now + SECOND / 2), file);
	assert_int_equal(open_error("d/f", now + 5 * SECOND), -ENOENT);
}

/* The descriptor tells, in the first iteration after it. */
TEST(a_change_in_place_is_noticed_at_once)
{
	uint64_t now = clock_now();
	const struct pw_file *file;

	make_file("f", SIZE);
	for (int i = 0; i < 2; i++) {
		pw_loop_rest(fx->fx_loop, now);
		file = peek("f", now);
		pw_loop_rest(fx->fx_loop, now);
		assert_ptr_equal(peek("f", now), file);
		make_file("f", i == 0 ? SIZE - 1 : 0);
		assert_ptr_equal(peek("f", now), file);
		pw_loop_rest(fx->fx_loop, now);
		assert_int_equal(
		    peek("f", now)->fil_size, i == 0 ? SIZE - 1 : 0);
	}
	assert_int_equal(unlink(path_in("f")), 0);
	pw_loop_rest(fx->fx_loop, now);
	assert_int_equal(open_error("f", now), -ENOENT);
}

TEST(an_unchanged_file_stays_the_same_one)
{
	uint64_t now = clock_now();
	const struct pw_file *file;

	make_file("f", SIZE);
	file = peek("f", now);
	for (int i = 2; i < 30; i += 2)
		assert_ptr_equal(peek("f", now + i * SECOND), file);
}

/* By the pool it is the clock's time when the lookup began. */
TEST(a_file_has_the_time_of_its_last_lookup)
{
	uint64_t now = clock_now();
	const struct pw_file *file;

	make_file("f", SIZE);
	file = peek("f", now);
	if (fx->fx_root->rt_cached)
		assert_int_equal(file->fil_checked, now);
	now = file->fil_checked;
	peek("f", now + SECOND / 2);
	assert_int_equal(file->fil_checked, now);
	if (fx->fx_root->rt_cached) {
		peek("f", now + SECOND);
		assert_int_equal(file->fil_checked, now + SECOND);
	}
	fx->fx_root->rt_cached = false;
	now = clock_now();
	peek("f", now + 5 * SECOND);
	assert_in_range(file->fil_checked, now, clock_now());
}

TEST(each_difference_of_stat_is_a_change)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct stat st, t[7];

	assert_int_equal(stat(path_in("f"), &st), 0);
	assert_true(file_unchanged(file, &st));
	for (size_t i = 0; i < COUNT(t); i++)
		t[i] = st;
	t[0].st_ino++;
	t[1].st_dev++;
	t[2].st_size++;
	t[3].st_mtim.tv_sec++;
	t[4].st_mtim.tv_nsec ^= 1;
	t[5].st_ctim.tv_sec++;
	t[6].st_ctim.tv_nsec ^= 1;
	for (size_t i = 0; i < COUNT(t); i++)
		assert_false(file_unchanged(file, &t[i]));
	/* Being read is no change. */
	st.st_atim.tv_sec++;
	st.st_nlink++;
	assert_true(file_unchanged(file, &st));
}

static void
keep_mtime(const char *path, const struct stat *st)
{
	const struct timespec times[] = {st->st_atim, st->st_mtim};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void
change_size(const struct stat *st)
{
	assert_int_equal(truncate(path_in("f"), SIZE - 1), 0);
	keep_mtime(path_in("f"), st);
}

static void
change_mtime(const struct stat *st)
{
	struct stat older = *st;

	older.st_mtim.tv_sec -= 3600;
	keep_mtime(path_in("f"), &older);
}

/* The new one has the size and the time of the old one. */
static void
replace(const struct stat *st)
{
	char from[300];

	make_file("new", SIZE);
	strcpy(from, path_in("new"));
	keep_mtime(from, st);
	assert_int_equal(rename(from, path_in("f")), 0);
}

static void
become_directory(const struct stat *st)
{
	(void)st;
	assert_int_equal(unlink(path_in("f")), 0);
	assert_int_equal(mkdir(path_in("f"), 0700), 0);
}

static void
check_noticed(void (*change)(const struct stat *))
{
	uint64_t now = clock_now();
	SCOPED_FILE *old, *file;
	struct stat st;

	make_file("f", SIZE);
	assert_int_equal(stat(path_in("f"), &st), 0);
	assert_int_equal(open_at("f", now, &old), 0);
	change(&st);
	assert_int_equal(open_at("f", clock_now() + SECOND + 1, &file), 0);
	assert_ptr_not_equal(file, old);
	assert_int_equal(stat(path_in("f"), &st), 0);
	assert_int_equal(file->fil_ino, st.st_ino);
	if (S_ISREG(st.st_mode))
		assert_int_equal(file->fil_size, st.st_size);
	/* Whoever had the old one still has it. */
	assert_int_equal(file_priv(old)->fp_refs, 1);
	assert_true(is_open(old->fil_fd));
}

TEST(a_changed_size_is_noticed_after_a_second)
{
	check_noticed(change_size);
}

TEST(a_changed_time_is_noticed_after_a_second)
{
	check_noticed(change_mtime);
}

TEST(a_replacement_is_noticed_after_a_second)
{
	check_noticed(replace);
}

TEST(a_directory_in_its_place_is_noticed_after_a_second)
{
	check_noticed(become_directory);
}

/* Where disk threads make each lookup, as on FreeBSD, it is remembered for a second. */
TEST(an_absent_file_is_not_remembered)
{
	uint64_t now = clock_now();

	assert_int_equal(open_error("f", now), -ENOENT);
	make_file("f", SIZE);
	if (!fx->fx_root->rt_cached) {
		assert_int_equal(open_error("f", now), -ENOENT);
		now = clock_now() + NEGATIVE_FRESH_US;
	}
	assert_int_equal(open_error("f", now), 0);
}

TEST(errors_are_those_of_openat2)
{
	uint64_t now = clock_now();
	char name[300];

	make_file("f", SIZE);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(open_error("", now), -ENOENT);
	assert_int_equal(open_error("f/", now), -ENOTDIR);
	assert_int_equal(open_error("f/g", now), -ENOTDIR);
	assert_int_equal(open_error(name, now), -ENAMETOOLONG);
}

/* Nobody opened anything in the directory that watch looks at. */
#ifdef __linux__
static int
watch_opens(const char *path)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(inotify_add_watch(fd, path, IN_OPEN) >= 0);
	return fd;
}

static void
assert_never_opened(int watch)
{
	char events[4096];

	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(errno, EAGAIN);
}
#else
/* Before FreeBSD 15 there is no inotify: fil_fd alone tells. */
static int
watch_opens(const char *path)
{
	return open(path, O_PATH | O_CLOEXEC);
}

static void
assert_never_opened(int watch)
{
	assert_true(watch >= 0);
}
#endif

static void
check_type(const char *path, enum pw_file_type type)
{
	SCOPED_FILE *file = open_file(path);

	assert_int_equal(file->fil_type, type);
	assert_int_equal(file->fil_fd, -1);
}

TEST(a_fifo_is_never_opened)
{
	int watch;

	assert_int_equal(mkfifo(path_in("fifo"), 0600), 0);
	watch = watch_opens(path_in("fifo"));
	check_type("fifo", PW_FILE_OTHER);
	fx->fx_root->rt_cached = false;
	pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
	check_type("fifo", PW_FILE_OTHER);
	assert_never_opened(watch);
	close(watch);
	assert_int_equal(open(path_in("fifo"), O_WRONLY | O_NONBLOCK), -1);
	assert_int_equal(errno, ENXIO);
}

TEST(a_directory_is_never_opened)
{
	SCOPED(close_at) int watch;

	assert_int_equal(mkdir(path_in("dir"), 0700), 0);
	watch = watch_opens(path_in("dir"));
	check_type("dir", PW_FILE_DIRECTORY);
	check_type("dir/", PW_FILE_DIRECTORY);
	check_type(".", PW_FILE_DIRECTORY);
	assert_never_opened(watch);
}

TEST(a_device_is_never_opened)
{
	pw_root_close(&fx->fx_root);
	assert_int_equal(pw_root_open("/dev", &fx->fx_root), 0);
	check_type("null", PW_FILE_OTHER);
}

TEST(a_socket_is_of_another_type)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	SCOPED(close_at) int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (strlen(path_in("s")) >= sizeof(sun.sun_path))
		skip();
	strcpy(sun.sun_path, path_in("s"));
	assert_int_equal(
	    bind(fd, (struct sockaddr *)(void *)&sun, sizeof(sun)), 0);
	check_type("s", PW_FILE_OTHER);
}

/* Asked by the loop first, then by the pool alone. */
static void
check_refused(const char *path, int error)
{
	assert_int_equal(open_error(path, clock_now()), error);
	fx->fx_root->rt_cached = !fx->fx_root->rt_cached;
	assert_int_equal(open_error(path, clock_now()), error);
	fx->fx_root->rt_cached = !fx->fx_root->rt_cached;
}

TEST(nothing_outside_the_root_is_opened)
{
	char absolute[300];

	make_file("f", SIZE);
	assert_int_equal(mkdir(path_in("sub"), 0700), 0);
	assert_non_null(realpath(path_in("f"), absolute));
	assert_int_equal(symlink("..", path_in("up")), 0);
	assert_int_equal(symlink("../../x", path_in("sub/up")), 0);
	assert_int_equal(symlink("/etc/passwd", path_in("passwd")), 0);
	assert_int_equal(symlink(absolute, path_in("absolute")), 0);
	check_refused("..", -EXDEV);
	check_refused("../x", -EXDEV);
	check_refused("sub/../../x", -EXDEV);
	check_refused("/etc/passwd", -EXDEV);
	check_refused(absolute, -EXDEV);
	check_refused("up", -EXDEV);
	check_refused("up/x", -EXDEV);
	check_refused("sub/up", -EXDEV);
	check_refused("passwd", -EXDEV);
	check_refused("absolute", -EXDEV);
}

TEST(a_loop_of_links_is_refused)
{
	assert_int_equal(symlink("b", path_in("a")), 0);
	assert_int_equal(symlink("a", path_in("b")), 0);
	assert_int_equal(symlink("self", path_in("self")), 0);
	check_refused("a", -ELOOP);
	check_refused("self/x", -ELOOP);
}

TEST(a_magic_link_is_refused)
{
#ifndef __linux__
	skip(); /* there are none */
#endif
	pw_root_close(&fx->fx_root);
	assert_int_equal(pw_root_open("/proc/self", &fx->fx_root), 0);
	assert_int_equal(open_error("exe", clock_now()), -ELOOP);
	assert_int_equal(open_error("cwd/x", clock_now()), -ELOOP);
	assert_int_equal(open_error("fd/0", clock_now()), -ELOOP);
}

TEST(a_link_inside_the_root_works)
{
	SCOPED_FILE *file;

	make_file("f", SIZE);
	assert_int_equal(mkdir(path_in("sub"), 0700), 0);
	assert_int_equal(symlink("../f", path_in("sub/link")), 0);
	file = open_file("sub/link");
	assert_int_equal(file->fil_size, SIZE);
}

TEST(a_root_is_a_directory)
{
	struct pw_root *rt = NULL;

	make_file("f", SIZE);
	assert_int_equal(pw_root_open(path_in("f"), &rt), -ENOTDIR);
	assert_int_equal(pw_root_open(path_in("none"), &rt), -ENOENT);
	assert_null(rt);
	pw_root_close(&rt);
}

/* Both came before a loop logged one of them. */
TEST(each_of_a_devices_news_is_announced_once)
{
	struct pw_device *dv =
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_FILES);
	char text[256];

	assert_false(device_has_news(dv));
	device_ask(dv, fx->fx_root->rt_fd);
	device_refuses(dv, -EINVAL);
	assert_true(device_has_news(dv));
	assert_true(device_announce(dv, text, sizeof(text)));
	assert_non_null(strstr(text, "): residency: "));
	assert_true(device_has_news(dv));
	assert_true(device_announce(dv, text, sizeof(text)));
	assert_non_null(strstr(text, ") does not support sendfile ("));
	assert_false(device_has_news(dv));
	assert_false(device_announce(dv, text, sizeof(text)));
}
