/*
 * Which descriptors a loop's cache of open files keeps (lib/file/open_cache.c), and who
 * closes the others.
 */
#include "lib_fixture.h"
#include "lib/file/slow_clients.h"
#include "lib/disk/shares.h"
#include "lib/util/clock.h"

#define CLIENT (1U << SHARES_CONNECTION) /* wt_client of a client */

#define SECOND UINT64_C(1000000)
#define SIZE   5000
#define CACHE  4

static int
setup_small_cache(void **state)
{
	return setup_with(state, 0, 0, CACHE);
}

/* Opens a file named by one letter; the descriptor that the cache keeps. */
static int
cached_fd(char letter)
{
	const char name[] = {letter, '\0'};

	if (access(path_in(name), F_OK) != 0)
		make_file(name, 10);
	return peek(name, clock_now())->fil_fd;
}

/* Not another that has been given the number since. */
static bool
is_open_as(int fd, const char *name)
{
	struct stat one, two;

	assert_int_equal(stat(path_in(name), &two), 0);
	return fstat(fd, &one) == 0 && one.st_ino == two.st_ino;
}

TEST(the_least_recently_used_file_goes_first, setup_small_cache)
{
	int a = cached_fd('a'), b = cached_fd('b');
	int c = cached_fd('c'), d = cached_fd('d');

	assert_true(is_open_as(a, "a") && is_open_as(b, "b"));
	assert_true(is_open_as(c, "c") && is_open_as(d, "d"));
	assert_int_equal(cached_fd('b'), b);
	assert_int_equal(cached_fd('a'), a);
	cached_fd('e');
	assert_false(is_open_as(c, "c"));
	assert_true(is_open_as(a, "a") && is_open_as(b, "b"));
	assert_true(is_open_as(d, "d"));
}

TEST(the_cache_keeps_at_most_its_size, setup_small_cache)
{
	int before = count_fds();
	char letter;

	for (letter = 'a'; letter <= 'z'; letter++) {
		cached_fd(letter);
		assert_in_range(count_fds(), before, before + CACHE);
	}
	assert_int_equal(count_fds(), before + CACHE);
}

TEST(spare_closes_the_oldest_unused_file, setup_small_cache)
{
	struct pw_file *used = new_file("f", SIZE);
	int a = cached_fd('a'), b = cached_fd('b');

	assert_true(pw_loop_spare(fx->fx_loop));
	assert_false(is_open_as(a, "a"));
	assert_true(is_open_as(b, "b"));
	assert_true(pw_loop_spare(fx->fx_loop));
	assert_false(is_open_as(b, "b"));
	assert_false(pw_loop_spare(fx->fx_loop));
	assert_true(is_open_as(used->fil_fd, "f"));
	pw_file_unref(&used);
	assert_true(pw_loop_spare(fx->fx_loop));
	assert_false(pw_loop_spare(fx->fx_loop));
}

TEST(a_file_in_use_survives_its_eviction, setup_small_cache)
{
	struct pw_file *file = new_file("f", SIZE);
	int fd = file->fil_fd;
	char letter, data[10], expected[10];

	assert_int_equal(file_priv(file)->fp_refs, 2);
	for (letter = 'a'; letter < 'a' + CACHE; letter++)
		cached_fd(letter);
	assert_int_equal(file_priv(file)->fp_refs, 1);
	assert_int_equal(unlink(path_in("f")), 0);
	assert_int_equal(pread(fd, data, 10, 100), 10);
	fill(expected, 100, 10);
	assert_memory_equal(data, expected, 10);
	pw_file_unref(&file);
	assert_null(file);
	await_closed(fd);
}

TEST(unused_files_are_closed)
{
	uint64_t now = clock_now();
	int used, idle;

	make_file("idle", SIZE);
	make_file("used", SIZE);
	idle = peek("idle", now)->fil_fd;
	used = peek("used", now)->fil_fd;
	assert_int_equal(peek("used", now + 9 * SECOND)->fil_fd, used);
	pw_loop_tick(fx->fx_loop, now + 9 * SECOND);
	assert_true(is_open(idle) && is_open(used));
	pw_loop_tick(fx->fx_loop, now + 11 * SECOND);
	assert_false(is_open(idle));
	assert_true(is_open(used));
	pw_loop_tick(fx->fx_loop, now + 20 * SECOND);
	assert_false(is_open(used));
}

/* The only thread of the pool is held: whoever closes, it is not that one. */
TEST(only_a_removed_file_is_left_to_the_pool_to_close, setup_narrow)
{
	struct pw_file *kept = new_file("kept", SIZE);
	struct pw_file *removed = new_file("removed", SIZE);
	int kept_fd = kept->fil_fd, removed_fd = removed->fil_fd;
	struct latch la;

	latch_shut(&la, file_priv(removed)->fp_device, fx->fx_loop);
	assert_int_equal(unlink(path_in("removed")), 0);
	pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
	pw_file_unref(&kept);
	pw_file_unref(&removed);
	assert_false(is_open(kept_fd));
	assert_true(is_open(removed_fd));
	latch_finish(&la);
	await_closed(removed_fd);
}

static unsigned freed;

static void
count_freed(void *user)
{
	freed += user == &freed;
}

TEST(data_of_the_caller_is_freed_with_the_last_reference)
{
	struct pw_file *file = new_file("f", SIZE), *again = file;

	file->fil_user = &freed;
	file->fil_user_free = count_freed;
	pw_file_ref(file);
	pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
	assert_int_equal(file_priv(file)->fp_refs, 2);
	pw_file_unref(&again);
	assert_int_equal(freed, 0);
	pw_file_unref(&file);
	assert_int_equal(freed, 1);
}

/* So many that some share a bucket of the cache. */
TEST(roots_do_not_mix, setup_small_cache)
{
	struct pw_root *own = fx->fx_root, *roots[40];
	char name[16];

	for (size_t i = 0; i < COUNT(roots); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		assert_int_equal(mkdir(path_in(name), 0700), 0);
		assert_int_equal(pw_root_open(path_in(name), &roots[i]), 0);
		snprintf(name, sizeof(name), "%zu/f", i);
		make_file(name, i);
		fx->fx_root = roots[i];
		assert_int_equal(peek("f", clock_now())->fil_size, i);
	}
	fx->fx_root = own;
	for (size_t i = 0; i < COUNT(roots); i++)
		pw_root_close(&roots[i]);
}

/* The same path and, if memory were reused, the same pointer. */
TEST(files_of_a_root_are_not_used_for_a_later_root)
{
	struct pw_root *own = fx->fx_root, *rt;
	char old[sizeof(fx->fx_dir) + 300];
	off_t size;

	snprintf(old, sizeof(old), "%s", path_in("d/old"));
	assert_int_equal(mkdir(path_in("d"), 0700), 0);
	for (int i = 0; i < 3; i++) {
		size = 10 + i;
		make_file("d/f", (size_t)size);
		assert_int_equal(pw_root_open(path_in("d"), &rt), 0);
		fx->fx_root = rt;
		assert_int_equal(peek("f", SECOND)->fil_size, size);
		fx->fx_root = own;
		file_root_unref(fx->fx_loop, &rt);
		assert_null(rt);
		assert_int_equal(rename(path_in("d/f"), old), 0);
	}
}

TEST(a_root_is_closed_with_the_last_of_its_files)
{
	struct pw_root *own = fx->fx_root, *rt;
	uint64_t now = clock_now();
	int fd;

	make_file("f", SIZE);
	assert_int_equal(pw_root_open(fx->fx_dir, &rt), 0);
	fd = rt->rt_fd;
	fx->fx_root = rt;
	peek("f", now);
	fx->fx_root = own;
	file_root_unref(fx->fx_loop, &rt);
	assert_true(is_open(fd));
	pw_loop_tick(fx->fx_loop, now + 11 * SECOND);
	await_closed(fd);
}

#ifdef __linux__
#define LINKS 39 /* Linux follows 40 in a path */

/* Makes links of 4 KB each, of which the first, "0", leads through all others to the root itself. */
static void
make_chain(void)
{
	char target[4090], name[8];

	for (int i = 0; i < LINKS; i++) {
		for (size_t k = 0; k < sizeof(target); k += 2)
			memcpy(target + k, "./", 2);
		snprintf(name, sizeof(name), "%d", i + 1);
		strcpy(target + sizeof(target) - sizeof(name),
		    i + 1 < LINKS ? name : ".");
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(symlink(target, path_in(name)), 0);
	}
}

static void
note_open(struct pw_waiter *w)
{
	(void)w;
}

/*
 * Looks up a path that does not exist, when the cache has forgotten the last time.  Returns true if a disk
 * thread did.
 */
static bool
a_disk_thread_looks_up(const char *path, unsigned client)
{
	struct pw_open op = {
	    .op_waiter = {.wt_done = note_open, .wt_client = client}};
	int error = pw_file_open(
	    fx->fx_loop, fx->fx_root, path, clock_now() + 2 * SECOND, &op);

	if (error == -EINPROGRESS)
		settle(fx->fx_loop);
	else
		assert_int_equal(error, -ENOENT);
	return error == -EINPROGRESS;
}

TEST(a_client_whose_lookups_take_long_leaves_the_loop)
{
	char path[32];
	int n = 0;

	if (!fx->fx_root->rt_cached)
		skip();
	make_chain();
	do {
		assert_in_range(n, 0, 1000);
		snprintf(path, sizeof(path), "0/missing%d", n++);
	} while (!a_disk_thread_looks_up(path, CLIENT) ||
		 a_disk_thread_looks_up("absent", CLIENT * (2 + n)) ||
		 !a_disk_thread_looks_up("absent", CLIENT + 1));
}

#endif

TEST(one_long_lookup_is_no_proof, NULL)
{
	struct slow_clients sls = {0};
	struct slow_lookup slo;

	assert_true(slow_clients_begin(&sls, CLIENT, clock_now(), &slo));
	assert_false(slo.slo_suspect);
	slo.slo_began -= SLOW_US;
	slow_clients_end(&sls, &slo);
	/* From now on the CPU time counts. */
	assert_true(slow_clients_begin(&sls, CLIENT, clock_now(), &slo));
	assert_true(slo.slo_suspect);
	slow_clients_end(&sls, &slo);
	assert_true(slow_clients_begin(&sls, CLIENT, clock_now(), &slo));
	slo.slo_began -= SLOW_US;
	slow_clients_end(&sls, &slo);
	assert_false(slow_clients_begin(&sls, CLIENT, clock_now(), &slo));
	/* All connections of a client count as one. */
	assert_false(slow_clients_begin(&sls, CLIENT + 1, clock_now(), &slo));
	assert_true(slow_clients_begin(&sls, 2 * CLIENT, clock_now(), &slo));
	assert_true(slow_clients_begin(
	    &sls, CLIENT, clock_now() + 2 * SLOW_FOR_US, &slo));
}
