/*
 * Opening files (lib/file.h): what is noticed and when, what is never opened,
 * what leaves the root, and whose descriptors the cache keeps.
 */
#include "lib_fixture.h"

#include <sys/inotify.h>
#include <sys/un.h>

#define SECOND UINT64_C(1000000)
#define SIZE   5000
#define CACHE  4

static int
setup_small_cache(void **state)
{
	return setup_with(state, 0, 0, CACHE);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

/* Descriptors of removed files are closed by the pool. */
static void
await_closed(int fd)
{
	int ms;

	for (ms = 0; is_open(fd) && ms < PATIENCE; ms++)
		usleep(1000);
	assert_false(is_open(fd));
}

/* Opens and gives back at once: the pointer says which file it was. */
static const struct pw_file *
peek(struct fixture *fx, const char *path, uint64_t now_us)
{
	struct pw_file *file;
	const struct pw_file *was;

	assert_int_equal(open_at(fx, path, now_us, &file), 0);
	was = file;
	pw_file_unref(&file);
	return was;
}

static int
open_error(struct fixture *fx, const char *path, uint64_t now_us)
{
	struct pw_file *file;
	int error = open_at(fx, path, now_us, &file);

	pw_file_unref(&file);
	return error;
}

static void
a_file_has_what_stat_says(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	char data[SIZE + 1], expected[SIZE];
	struct stat st;

	assert_int_equal(stat(path_in(fx, "f"), &st), 0);
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

static void
within_a_second_nothing_is_looked_up(void **state)
{
	struct fixture *fx = *state;
	uint64_t now = loop_now();
	const struct pw_file *file;

	make_file(fx, "f", SIZE);
	file = peek(fx, "f", now);
	assert_int_equal(unlink(path_in(fx, "f")), 0);
	assert_ptr_equal(peek(fx, "f", now + SECOND / 2), file);
	assert_int_equal(open_error(fx, "f", now + 5 * SECOND), -ENOENT);
}

static void
an_unchanged_file_stays_the_same_one(void **state)
{
	struct fixture *fx = *state;
	uint64_t now = loop_now();
	const struct pw_file *file;
	int i;

	make_file(fx, "f", SIZE);
	file = peek(fx, "f", now);
	for (i = 2; i < 30; i += 2)
		assert_ptr_equal(peek(fx, "f", now + i * SECOND), file);
}

static void
whatever_stat_tells_apart_is_changed(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct stat st, t[7];
	size_t i;

	assert_int_equal(stat(path_in(fx, "f"), &st), 0);
	assert_true(file_unchanged(file, &st));
	for (i = 0; i < COUNT(t); i++)
		t[i] = st;
	t[0].st_ino++;
	t[1].st_dev++;
	t[2].st_size++;
	t[3].st_mtim.tv_sec++;
	t[4].st_mtim.tv_nsec ^= 1;
	t[5].st_ctim.tv_sec++;
	t[6].st_ctim.tv_nsec ^= 1;
	for (i = 0; i < COUNT(t); i++)
		assert_false(file_unchanged(file, &t[i]));
	/* Being read is no change. */
	st.st_atim.tv_sec++;
	st.st_nlink++;
	assert_true(file_unchanged(file, &st));
	pw_file_unref(&file);
}

static void
keep_mtime(const char *path, const struct stat *st)
{
	const struct timespec times[] = {st->st_atim, st->st_mtim};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void
change_size(struct fixture *fx, const struct stat *st)
{
	assert_int_equal(truncate(path_in(fx, "f"), SIZE - 1), 0);
	keep_mtime(path_in(fx, "f"), st);
}

static void
change_mtime(struct fixture *fx, const struct stat *st)
{
	struct stat older = *st;

	older.st_mtim.tv_sec -= 3600;
	keep_mtime(path_in(fx, "f"), &older);
}

/* The new one has the size and the time of the old one. */
static void
replace(struct fixture *fx, const struct stat *st)
{
	char from[300];

	make_file(fx, "new", SIZE);
	strcpy(from, path_in(fx, "new"));
	keep_mtime(from, st);
	assert_int_equal(rename(from, path_in(fx, "f")), 0);
}

static void
become_directory(struct fixture *fx, const struct stat *st)
{
	(void)st;
	assert_int_equal(unlink(path_in(fx, "f")), 0);
	assert_int_equal(mkdir(path_in(fx, "f"), 0700), 0);
}

static void
check_noticed(
    struct fixture *fx, void (*change)(struct fixture *, const struct stat *))
{
	uint64_t now = loop_now();
	struct pw_file *old, *file;
	struct stat st;

	make_file(fx, "f", SIZE);
	assert_int_equal(stat(path_in(fx, "f"), &st), 0);
	assert_int_equal(open_at(fx, "f", now, &old), 0);
	change(fx, &st);
	assert_int_equal(open_at(fx, "f", loop_now() + SECOND + 1, &file), 0);
	assert_ptr_not_equal(file, old);
	assert_int_equal(stat(path_in(fx, "f"), &st), 0);
	assert_int_equal(file->fil_ino, st.st_ino);
	if (S_ISREG(st.st_mode))
		assert_int_equal(file->fil_size, st.st_size);
	/* Whoever had the old one still has it. */
	assert_int_equal(old->fil_refs, 1);
	assert_true(is_open(old->fil_fd));
	pw_file_unref(&old);
	pw_file_unref(&file);
}

static void
a_changed_size_is_noticed_after_a_second(void **state)
{
	check_noticed(*state, change_size);
}

static void
a_changed_time_is_noticed_after_a_second(void **state)
{
	check_noticed(*state, change_mtime);
}

static void
a_replacement_is_noticed_after_a_second(void **state)
{
	check_noticed(*state, replace);
}

static void
a_directory_in_its_place_is_noticed_after_a_second(void **state)
{
	check_noticed(*state, become_directory);
}

static void
an_absent_file_is_not_remembered(void **state)
{
	struct fixture *fx = *state;
	uint64_t now = loop_now();

	assert_int_equal(open_error(fx, "f", now), -ENOENT);
	make_file(fx, "f", SIZE);
	assert_int_equal(open_error(fx, "f", now), 0);
}

static void
errors_are_those_of_openat2(void **state)
{
	struct fixture *fx = *state;
	uint64_t now = loop_now();
	char name[300];

	make_file(fx, "f", SIZE);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(open_error(fx, "", now), -ENOENT);
	assert_int_equal(open_error(fx, "f/", now), -ENOTDIR);
	assert_int_equal(open_error(fx, "f/g", now), -ENOTDIR);
	assert_int_equal(open_error(fx, name, now), -ENAMETOOLONG);
}

/* Nobody opened anything in the directory that watch looks at. */
static void
assert_never_opened(int watch)
{
	char events[4096];

	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(errno, EAGAIN);
}

static void
check_type(struct fixture *fx, const char *path, enum pw_file_type type)
{
	struct pw_file *file = open_file(fx, path);

	assert_int_equal(file->fil_type, type);
	assert_int_equal(file->fil_fd, -1);
	pw_file_unref(&file);
}

static int
watch_opens(const char *path)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(inotify_add_watch(fd, path, IN_OPEN) >= 0);
	return fd;
}

static void
a_fifo_is_never_opened(void **state)
{
	struct fixture *fx = *state;
	int watch;

	assert_int_equal(mkfifo(path_in(fx, "fifo"), 0600), 0);
	watch = watch_opens(path_in(fx, "fifo"));
	check_type(fx, "fifo", PW_FILE_OTHER);
	fx->fx_root->rt_cached = false;
	pw_loop_tick(fx->fx_loop, loop_now() + 60 * SECOND);
	check_type(fx, "fifo", PW_FILE_OTHER);
	assert_never_opened(watch);
	close(watch);
	assert_int_equal(open(path_in(fx, "fifo"), O_WRONLY | O_NONBLOCK), -1);
	assert_int_equal(errno, ENXIO);
}

static void
a_directory_is_never_opened(void **state)
{
	struct fixture *fx = *state;
	int watch;

	assert_int_equal(mkdir(path_in(fx, "dir"), 0700), 0);
	watch = watch_opens(path_in(fx, "dir"));
	check_type(fx, "dir", PW_FILE_DIRECTORY);
	check_type(fx, "dir/", PW_FILE_DIRECTORY);
	check_type(fx, ".", PW_FILE_DIRECTORY);
	assert_never_opened(watch);
	close(watch);
}

static void
a_device_is_never_opened(void **state)
{
	struct fixture *fx = *state;

	pw_root_close(&fx->fx_root);
	assert_int_equal(pw_root_open("/dev", &fx->fx_root), 0);
	check_type(fx, "null", PW_FILE_OTHER);
}

static void
a_socket_is_of_another_type(void **state)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct fixture *fx = *state;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (strlen(path_in(fx, "s")) >= sizeof(sun.sun_path))
		skip();
	strcpy(sun.sun_path, path_in(fx, "s"));
	assert_int_equal(
	    bind(fd, (struct sockaddr *)(void *)&sun, sizeof(sun)), 0);
	check_type(fx, "s", PW_FILE_OTHER);
	close(fd);
}

/* Asked by the loop first, then by the pool alone. */
static void
check_refused(struct fixture *fx, const char *path, int error)
{
	assert_int_equal(open_error(fx, path, loop_now()), error);
	fx->fx_root->rt_cached = !fx->fx_root->rt_cached;
	assert_int_equal(open_error(fx, path, loop_now()), error);
	fx->fx_root->rt_cached = !fx->fx_root->rt_cached;
}

static void
nothing_outside_the_root_is_opened(void **state)
{
	struct fixture *fx = *state;
	char absolute[300];

	make_file(fx, "f", SIZE);
	assert_int_equal(mkdir(path_in(fx, "sub"), 0700), 0);
	assert_non_null(realpath(path_in(fx, "f"), absolute));
	assert_int_equal(symlink("..", path_in(fx, "up")), 0);
	assert_int_equal(symlink("../../x", path_in(fx, "sub/up")), 0);
	assert_int_equal(symlink("/etc/passwd", path_in(fx, "passwd")), 0);
	assert_int_equal(symlink(absolute, path_in(fx, "absolute")), 0);
	check_refused(fx, "..", -EXDEV);
	check_refused(fx, "../x", -EXDEV);
	check_refused(fx, "sub/../../x", -EXDEV);
	check_refused(fx, "/etc/passwd", -EXDEV);
	check_refused(fx, absolute, -EXDEV);
	check_refused(fx, "up", -EXDEV);
	check_refused(fx, "up/x", -EXDEV);
	check_refused(fx, "sub/up", -EXDEV);
	check_refused(fx, "passwd", -EXDEV);
	check_refused(fx, "absolute", -EXDEV);
}

static void
a_circle_of_links_is_refused(void **state)
{
	struct fixture *fx = *state;

	assert_int_equal(symlink("b", path_in(fx, "a")), 0);
	assert_int_equal(symlink("a", path_in(fx, "b")), 0);
	assert_int_equal(symlink("self", path_in(fx, "self")), 0);
	check_refused(fx, "a", -ELOOP);
	check_refused(fx, "self/x", -ELOOP);
}

static void
a_magic_link_is_refused(void **state)
{
	struct fixture *fx = *state;

	pw_root_close(&fx->fx_root);
	assert_int_equal(pw_root_open("/proc/self", &fx->fx_root), 0);
	assert_int_equal(open_error(fx, "exe", loop_now()), -ELOOP);
	assert_int_equal(open_error(fx, "cwd/x", loop_now()), -ELOOP);
	assert_int_equal(open_error(fx, "fd/0", loop_now()), -ELOOP);
}

static void
a_link_inside_the_root_works(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;

	make_file(fx, "f", SIZE);
	assert_int_equal(mkdir(path_in(fx, "sub"), 0700), 0);
	assert_int_equal(symlink("../f", path_in(fx, "sub/link")), 0);
	file = open_file(fx, "sub/link");
	assert_int_equal(file->fil_size, SIZE);
	pw_file_unref(&file);
}

static void
a_root_is_a_directory(void **state)
{
	struct fixture *fx = *state;
	struct pw_root *rt = NULL;

	make_file(fx, "f", SIZE);
	assert_int_equal(pw_root_open(path_in(fx, "f"), &rt), -ENOTDIR);
	assert_int_equal(pw_root_open(path_in(fx, "none"), &rt), -ENOENT);
	assert_null(rt);
	pw_root_close(&rt);
}

/* ---------------------------------------------------------------- the cache */

/* Opens a file named by one letter; the descriptor that the cache keeps. */
static int
cached_fd(struct fixture *fx, char letter)
{
	const char name[] = {letter, '\0'};

	if (access(path_in(fx, name), F_OK) != 0)
		make_file(fx, name, 10);
	return peek(fx, name, loop_now())->fil_fd;
}

/* Not another that has been given the number since. */
static bool
is_open_as(struct fixture *fx, int fd, const char *name)
{
	struct stat one, two;

	assert_int_equal(stat(path_in(fx, name), &two), 0);
	return fstat(fd, &one) == 0 && one.st_ino == two.st_ino;
}

static void
the_least_recently_used_file_goes_first(void **state)
{
	struct fixture *fx = *state;
	int a = cached_fd(fx, 'a'), b = cached_fd(fx, 'b');
	int c = cached_fd(fx, 'c'), d = cached_fd(fx, 'd');

	assert_true(is_open_as(fx, a, "a") && is_open_as(fx, b, "b"));
	assert_true(is_open_as(fx, c, "c") && is_open_as(fx, d, "d"));
	assert_int_equal(cached_fd(fx, 'b'), b);
	assert_int_equal(cached_fd(fx, 'a'), a);
	cached_fd(fx, 'e');
	assert_false(is_open_as(fx, c, "c"));
	assert_true(is_open_as(fx, a, "a") && is_open_as(fx, b, "b"));
	assert_true(is_open_as(fx, d, "d"));
}

static int
count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += is_open(fd);
	return n;
}

static void
the_cache_keeps_at_most_its_size(void **state)
{
	struct fixture *fx = *state;
	int before = count_fds();
	char letter;

	for (letter = 'a'; letter <= 'z'; letter++) {
		cached_fd(fx, letter);
		assert_in_range(count_fds(), before, before + CACHE);
	}
	assert_int_equal(count_fds(), before + CACHE);
}

static void
a_file_in_use_survives_its_eviction(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	int fd = file->fil_fd;
	char letter, data[10], expected[10];

	assert_int_equal(file->fil_refs, 2);
	for (letter = 'a'; letter < 'a' + CACHE; letter++)
		cached_fd(fx, letter);
	assert_int_equal(file->fil_refs, 1);
	assert_int_equal(unlink(path_in(fx, "f")), 0);
	assert_int_equal(pread(fd, data, 10, 100), 10);
	fill(expected, 100, 10);
	assert_memory_equal(data, expected, 10);
	pw_file_unref(&file);
	assert_null(file);
	await_closed(fd);
}

static void
what_nobody_asks_for_is_closed(void **state)
{
	struct fixture *fx = *state;
	uint64_t now = loop_now();
	int used, idle;

	make_file(fx, "idle", SIZE);
	make_file(fx, "used", SIZE);
	idle = peek(fx, "idle", now)->fil_fd;
	used = peek(fx, "used", now)->fil_fd;
	assert_int_equal(peek(fx, "used", now + 9 * SECOND)->fil_fd, used);
	pw_loop_tick(fx->fx_loop, now + 9 * SECOND);
	assert_true(is_open(idle) && is_open(used));
	pw_loop_tick(fx->fx_loop, now + 11 * SECOND);
	assert_false(is_open(idle));
	assert_true(is_open(used));
	pw_loop_tick(fx->fx_loop, now + 20 * SECOND);
	assert_false(is_open(used));
}

/* The only thread of the pool is held: whoever closes, it is not that one. */
static void
only_a_removed_file_is_left_to_the_pool_to_close(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *kept = new_file(fx, "kept", SIZE);
	struct pw_file *removed = new_file(fx, "removed", SIZE);
	int kept_fd = kept->fil_fd, removed_fd = removed->fil_fd;
	struct gate gt;

	gate_shut(&gt, removed->fil_device, fx->fx_loop);
	assert_int_equal(unlink(path_in(fx, "removed")), 0);
	pw_loop_tick(fx->fx_loop, loop_now() + 60 * SECOND);
	pw_file_unref(&kept);
	pw_file_unref(&removed);
	assert_false(is_open(kept_fd));
	assert_true(is_open(removed_fd));
	gate_open(&gt);
	settle(fx->fx_loop);
	await_closed(removed_fd);
}

static unsigned freed;

static void
count_freed(void *user)
{
	freed += user == &freed;
}

static void
what_the_caller_put_there_is_freed_with_the_last_reference(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE), *again = file;

	file->fil_user = &freed;
	file->fil_user_free = count_freed;
	pw_file_ref(file);
	pw_loop_tick(fx->fx_loop, loop_now() + 60 * SECOND);
	assert_int_equal(file->fil_refs, 2);
	pw_file_unref(&again);
	assert_int_equal(freed, 0);
	pw_file_unref(&file);
	assert_int_equal(freed, 1);
}

/* So many that some share a bucket of the cache. */
static void
roots_do_not_mix(void **state)
{
	struct fixture *fx = *state;
	struct pw_root *own = fx->fx_root, *roots[40];
	char name[16];
	size_t i;

	for (i = 0; i < COUNT(roots); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		assert_int_equal(mkdir(path_in(fx, name), 0700), 0);
		assert_int_equal(pw_root_open(path_in(fx, name), &roots[i]), 0);
		snprintf(name, sizeof(name), "%zu/f", i);
		make_file(fx, name, i);
		fx->fx_root = roots[i];
		assert_int_equal(peek(fx, "f", loop_now())->fil_size, i);
	}
	fx->fx_root = own;
	for (i = 0; i < COUNT(roots); i++)
		pw_root_close(&roots[i]);
}

/* ----------------------------------------------------------------- the pool */

struct asked {
	struct pw_open as_open;
	unsigned as_times;
};

static void
asked_done(struct pw_waiter *w)
{
	((struct asked *)w)->as_times++;
}

static int
ask(struct fixture *fx, const char *path, struct asked *as)
{
	*as = (struct asked){.as_open.op_waiter.wt_done = asked_done};
	return pw_file_open(
	    fx->fx_loop, fx->fx_root, path, loop_now(), &as->as_open);
}

/* All lookups go to the pool, whose only thread is held. */
static void
shut(struct fixture *fx, struct gate *gt)
{
	fx->fx_root->rt_cached = false;
	gate_shut(
	    gt, pool_device(fx->fx_pool, fx->fx_root->rt_dev), fx->fx_loop);
}

/* The queue takes one job: the others, had they their own, would be refused. */
static void
those_who_open_the_same_path_share_one_job(void **state)
{
	struct fixture *fx = *state;
	struct asked as[8], other;
	struct gate gt;
	size_t i;

	make_file(fx, "f", SIZE);
	shut(fx, &gt);
	for (i = 0; i < COUNT(as); i++)
		assert_int_equal(ask(fx, "f", &as[i]), -EINPROGRESS);
	assert_int_equal(ask(fx, "g", &other), -EAGAIN);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 1);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 2);
	gate_open(&gt);
	settle(fx->fx_loop);
	assert_int_equal(as[0].as_open.op_file->fil_refs, 1 + COUNT(as));
	for (i = 0; i < COUNT(as); i++) {
		assert_int_equal(as[i].as_times, 1);
		assert_int_equal(as[i].as_open.op_waiter.wt_error, 0);
		assert_ptr_equal(as[i].as_open.op_file, as[0].as_open.op_file);
	}
	assert_int_equal(other.as_times, 0);
	for (i = 1; i < COUNT(as); i++)
		pw_file_unref(&as[i].as_open.op_file);
	pw_file_unref(&as[0].as_open.op_file);
}

static void
an_error_is_told_to_all_who_wait(void **state)
{
	struct fixture *fx = *state;
	struct asked as[3];
	struct gate gt;
	size_t i;

	shut(fx, &gt);
	for (i = 0; i < COUNT(as); i++)
		assert_int_equal(ask(fx, "none", &as[i]), -EINPROGRESS);
	gate_open(&gt);
	settle(fx->fx_loop);
	for (i = 0; i < COUNT(as); i++) {
		assert_int_equal(as[i].as_times, 1);
		assert_int_equal(as[i].as_open.op_waiter.wt_error, -ENOENT);
		assert_null(as[i].as_open.op_file);
	}
}

static void
an_open_completes_from_drain_alone(void **state)
{
	struct fixture *fx = *state;
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct asked as;

	make_file(fx, "f", SIZE);
	fx->fx_root->rt_cached = false;
	assert_int_equal(ask(fx, "f", &as), -EINPROGRESS);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	assert_int_equal(as.as_times, 0);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(as.as_times, 1);
	assert_non_null(as.as_open.op_file);
	pw_file_unref(&as.as_open.op_file);
}

static void
by_the_pool_an_unchanged_file_stays_the_same_one(void **state)
{
	struct fixture *fx = *state;
	const struct pw_file *file;
	uint64_t now = loop_now();
	int fds, fd;

	make_file(fx, "f", SIZE);
	fx->fx_root->rt_cached = false;
	file = peek(fx, "f", now);
	fd = file->fil_fd;
	fds = count_fds();
	assert_ptr_equal(peek(fx, "f", now + 60 * SECOND), file);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(unlink(path_in(fx, "f")), 0);
	assert_int_equal(open_error(fx, "f", now + 120 * SECOND), -ENOENT);
	await_closed(fd);
}

static void
a_file_being_opened_is_not_evicted(void **state)
{
	struct fixture *fx = *state;
	struct asked as[2 * CACHE];
	char name[2] = "a";
	struct gate gt;
	size_t i;

	for (i = 0; i < COUNT(as); i++, name[0]++)
		make_file(fx, name, SIZE);
	shut(fx, &gt);
	for (i = 0, name[0] = 'a'; i < COUNT(as); i++, name[0]++)
		assert_int_equal(ask(fx, name, &as[i]), -EINPROGRESS);
	pw_loop_tick(fx->fx_loop, loop_now() + 60 * SECOND);
	gate_open(&gt);
	settle(fx->fx_loop);
	for (i = 0; i < COUNT(as); i++) {
		assert_int_equal(as[i].as_times, 1);
		assert_non_null(as[i].as_open.op_file);
		pw_file_unref(&as[i].as_open.op_file);
	}
}

static int
setup_small_cache_one_thread(void **state)
{
	return setup_with(state, 1, 0, CACHE);
}

/* A mount below the root hangs: what is on the root's own can be opened. */
static void
what_lies_on_another_mount_waits_in_a_queue_of_its_own(void **state)
{
	struct fixture *fx = *state;
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct asked other, own;
	struct gate gt;

	pw_root_close(&fx->fx_root);
	assert_int_equal(pw_root_open("/", &fx->fx_root), 0);
	gate_shut(&gt,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev ^ FILE_CROSSING),
	    fx->fx_loop);
	fx->fx_root->rt_cached = false;
	assert_int_equal(ask(fx, "proc/version", &other), -EINPROGRESS);
	assert_int_equal(ask(fx, "etc/passwd", &own), -EINPROGRESS);
	while (own.as_times == 0) {
		assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
		pw_loop_drain(fx->fx_loop);
	}
	assert_int_equal(own.as_open.op_waiter.wt_error, 0);
	assert_int_equal(other.as_times, 0);
	gate_open(&gt);
	settle(fx->fx_loop);
	assert_int_equal(other.as_times, 1);
	assert_int_equal(other.as_open.op_waiter.wt_error, 0);
	pw_file_unref(&own.as_open.op_file);
	pw_file_unref(&other.as_open.op_file);
}

#define TEST(name, up) cmocka_unit_test_setup_teardown(name, up, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_file_has_what_stat_says, setup),
	    TEST(within_a_second_nothing_is_looked_up, setup),
	    TEST(an_unchanged_file_stays_the_same_one, setup),
	    TEST(whatever_stat_tells_apart_is_changed, setup),
	    TEST(a_changed_size_is_noticed_after_a_second, setup),
	    TEST(a_changed_time_is_noticed_after_a_second, setup),
	    TEST(a_replacement_is_noticed_after_a_second, setup),
	    TEST(a_directory_in_its_place_is_noticed_after_a_second, setup),
	    TEST(an_absent_file_is_not_remembered, setup),
	    TEST(errors_are_those_of_openat2, setup),
	    TEST(a_fifo_is_never_opened, setup),
	    TEST(a_directory_is_never_opened, setup),
	    TEST(a_device_is_never_opened, setup),
	    TEST(a_socket_is_of_another_type, setup),
	    TEST(nothing_outside_the_root_is_opened, setup),
	    TEST(a_circle_of_links_is_refused, setup),
	    TEST(a_magic_link_is_refused, setup),
	    TEST(a_link_inside_the_root_works, setup),
	    TEST(a_root_is_a_directory, setup),
	    TEST(the_least_recently_used_file_goes_first, setup_small_cache),
	    TEST(the_cache_keeps_at_most_its_size, setup_small_cache),
	    TEST(a_file_in_use_survives_its_eviction, setup_small_cache),
	    TEST(what_nobody_asks_for_is_closed, setup),
	    TEST(
		only_a_removed_file_is_left_to_the_pool_to_close, setup_narrow),
	    TEST(what_the_caller_put_there_is_freed_with_the_last_reference,
		setup),
	    TEST(roots_do_not_mix, setup_small_cache),
	    TEST(those_who_open_the_same_path_share_one_job, setup_narrow),
	    TEST(an_error_is_told_to_all_who_wait, setup_narrow),
	    TEST(an_open_completes_from_drain_alone, setup),
	    TEST(by_the_pool_an_unchanged_file_stays_the_same_one, setup),
	    TEST(what_lies_on_another_mount_waits_in_a_queue_of_its_own, setup),
	    TEST(a_file_being_opened_is_not_evicted,
		setup_small_cache_one_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
