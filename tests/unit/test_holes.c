/*
 * Holes of sparse files (lib/send/holes.c): their zeros are sent without a window, without budget and
 * without pages of the file; islands of data between them are sent as of any file.
 */
#include "xfer_fixture.h"

#include "lib/disk/pool.h"

#define MIB	(1024 * 1024)
#define SIZE	((off_t)40 * MIB + 77)
#define SETTLED 4 /* seconds: pool_is_settled has 2, and compares whole ones */
#define HUGE	((off_t)1 << 40)
#define SLACK \
	((uint64_t)256 * KIB) /* bytes around islands that may be fetched */

/* The second island has holes that are too small to be worth a look of their own. */
static const struct island {
	off_t is_from, is_end;
} islands[] = {{0, 70000}, {10 * MIB + 12288, 14 * MIB + 1},
    {14 * MIB + 300 * KIB, 15 * MIB}, {15 * MIB + 64 * KIB, 16 * MIB},
    {25 * MIB, 25 * MIB + 3}};

static char *whole; /* the file as it has to be sent */

static uint64_t
data_of_islands(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < COUNT(islands); i++)
		sum += (uint64_t)(islands[i].is_end - islands[i].is_from);
	return sum + COUNT(islands) * SLACK;
}

static void
make_sparse(const char *name, off_t size)
{
	SCOPED(close_at)
	int fd = open(path_in(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t i, len;

	assert_true(fd >= 0);
	if (ftruncate(fd, size) != 0) {
		print_message("%s: no file of this size here\n", fx->fx_dir);
		skip();
	}
	for (i = 0; i < COUNT(islands) && size == SIZE; i++) {
		len = (size_t)(islands[i].is_end - islands[i].is_from);
		assert_int_equal(pwrite(fd, whole + islands[i].is_from, len,
				     islands[i].is_from),
		    len);
	}
	assert_int_equal(fsync(fd), 0);
}

static struct pw_device_stats
disk(void)
{
	struct pw_device_stats stats[8];
	size_t i, n = pw_pool_devices(fx->fx_pool, stats, COUNT(stats));

	for (i = 0; i < n; i++)
		if (stats[i].ds_dev == pw_root_dev(fx->fx_root) &&
		    strcmp(stats[i].ds_queue, "files") == 0)
			return stats[i];
	return (struct pw_device_stats){0};
}

static void
wire_is_right(struct wire *wr, off_t from, off_t len)
{
	wire_await(wr, (size_t)len);
	assert_int_equal(wr->wr_len, len);
	assert_memory_equal(wr->wr_data, whole + from, (size_t)len);
}

static void
begin_by(const char *path, enum pw_cache cache, struct xfer *xf,
    struct wire *wr, struct pw_file *file, off_t from, off_t to)
{
	wire_wide(wr);
	xfer_init(xf, path, wr, file);
	xf->xf_send.snd_off = from;
	xf->xf_send.snd_len = to - from;
	xf->xf_send.snd_cache = cache;
	assert_int_equal(pw_send_start(&xf->xf_send), 0);
}

static void
begin(struct xfer *xf, struct wire *wr, struct pw_file *file, off_t from,
    off_t to)
{
	begin_by("nodiskio", PW_CACHE_KEEP, xf, wr, file, from, to);
}

/* As xfer_run, but with ticks, for which a transmission waits whose window was evicted. */
static enum pw_send_status
run(struct xfer *xf, struct wire *wr, uint64_t enough)
{
	struct pw_loop *lp = xf->xf_send.snd_loop;
	enum pw_send_status status;

	do {
		status = xfer_step(xf);
		if (status == PW_SEND_PENDING) {
			pw_loop_tick(lp, clock_now());
			settle(lp);
		}
		if (status == PW_SEND_WANT_WRITE)
			wire_flush(wr);
	} while (status != PW_SEND_DONE && status != PW_SEND_ERROR &&
		 xf->xf_send.snd_sent < enough);
	wire_await(wr, xf->xf_send.snd_sent);
	return status;
}

static void
end(struct xfer *xf, struct wire *wr)
{
	struct pw_loop *lp = xf->xf_send.snd_loop;

	pw_send_finish(&xf->xf_send);
	settle(lp);
	pw_loop_tick(lp, clock_now() + PINS_WAITED_US + 1);
	settle(lp);
	wire_close(wr);
}

static void
send_all(struct pw_file *file, const char *path, enum pw_cache cache,
    off_t from, off_t to)
{
	struct wire wr;
	struct xfer xf;

	begin_by(path, cache, &xf, &wr, file, from, to);
	assert_int_equal(run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	wire_is_right(&wr, from, to - from);
	end(&xf, &wr);
}

/*
 * Twice: a read-ahead mark that the first one left would have the second one read the holes.  Islands may
 * be read once more, if the kernel evicts them.
 */
static void
range_is_right(struct pw_file *file, const char *path, enum pw_cache cache,
    off_t from, off_t to)
{
	uint64_t bytes = disk().ds_bytes;

	send_all(file, path, cache, from, to);
	send_all(file, path, cache, from, to);
	assert_in_range(disk().ds_bytes - bytes, 0, 4 * data_of_islands());
	assert_in_range(pages_resident(file->fil_fd, 0, (size_t)file->fil_size),
	    0, data_of_islands() / os_page_size());
	assert_true(evict(file->fil_fd, (size_t)file->fil_size));
}

/* Each send path fetches only the islands of a file. */
static void
every_byte_is_right(struct pw_file *file)
{
	static const char *const paths[] = {"nodiskio", "splice", "uring"};
	const char *why;

	for (size_t i = 0; i < COUNT(paths); i++) {
		if (pw_send_probe(pw_send_path(paths[i]), &why) != 0)
			continue;
		range_is_right(file, paths[i], PW_CACHE_KEEP, 0, SIZE);
		range_is_right(file, paths[i], PW_CACHE_DROP, 0, SIZE);
		range_is_right(file, paths[i], PW_CACHE_KEEP, SIZE - 9, SIZE);
		range_is_right(file, paths[i], PW_CACHE_KEEP, 10 * MIB + 12287,
		    10 * MIB + 12289);
		range_is_right(
		    file, paths[i], PW_CACHE_KEEP, 1 * MIB, 12 * MIB);
	}
}

/* The first client waits for the look; then nothing of the file is in memory, and no budget is taken. */
static void
hole_takes_no_window(struct pw_file *file)
{
	struct pw_device_stats before = disk();
	struct pw_pool_stats stats;
	struct wire wr;
	struct xfer xf;

	begin(&xf, &wr, file, 2 * MIB, 9 * MIB);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	pw_pool_stats(fx->fx_pool, &stats);
	assert_int_equal(stats.ps_unsent, 0);
	settle(fx->fx_loop);
	assert_int_equal(run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	pw_pool_stats(fx->fx_pool, &stats);
	assert_int_equal(stats.ps_unsent, 0);
	assert_int_equal(disk().ds_bytes, before.ds_bytes);
	assert_int_equal(disk().ds_jobs, before.ds_jobs + 1);
	assert_int_equal(
	    pages_resident(file->fil_fd, 2 * MIB, (size_t)7 * MIB), 0);
	wire_is_right(&wr, 2 * MIB, 7 * MIB);
	end(&xf, &wr);
}

static void
write_at(const char *path, off_t at)
{
	SCOPED(close_at) int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "!", 1, at), 1);
}

static void
fill_ahead(const char *path)
{
	write_at(path, 8 * MIB);
}

static void
fill_behind(const char *path)
{
	write_at(path, 2 * MIB);
}

static void
cut(const char *path)
{
	assert_int_equal(truncate(path, 4 * MIB), 0);
}

/* Bytes sent before the change are of the first version, so the client must not get a whole file. */
static void
changed_hole_is_not_sent_whole(
    const char *name, void (*change)(const char *path))
{
	SCOPED_FILE *file = open_file(name);
	struct wire wr;
	struct xfer xf;

	begin(&xf, &wr, file, 2 * MIB, 9 * MIB);
	run(&xf, &wr, MIB);
	assert_int_equal(pages_resident(file->fil_fd, 2 * MIB, MIB), 0);
	change(path_in(name));
	assert_int_equal(run(&xf, &wr, UINT64_MAX), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -ESTALE);
	assert_true(wr.wr_len < 7 * MIB);
	if (change == fill_ahead) {
		assert_true(wr.wr_len > 6 * MIB);
		assert_int_equal(wr.wr_data[6 * MIB], '!');
	}
	end(&xf, &wr);
}

static const struct change {
	const char *ch_name;
	void (*ch_change)(const char *path);
} changes[] = {{"filled-ahead", fill_ahead}, {"filled-behind", fill_behind},
    {"cut", cut}, {"sink-filled-ahead", fill_ahead},
    {"sink-filled-behind", fill_behind}, {"sink-cut", cut}};

static bool
has_holes(struct pw_file *file)
{
	int fd = file->fil_fd;

	if (file_priv(file)->fp_sparse && os_seek_hole(fd, 0) < MIB &&
	    os_seek_data(fd, MIB) == islands[1].is_from)
		return true;
	print_message("%s: no holes here\n", fx->fx_dir);
	return false;
}

/* The times of a young file might be those of a second version.  A time ahead stays young. */
static void
unsettled_hole_is_read(void)
{
	const struct timespec ahead[2] = {
	    {.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) + 3600}};
	SCOPED_FILE *file;
	struct wire wr;
	struct xfer xf;

	make_sparse("young", SIZE);
	assert_int_equal(utimensat(AT_FDCWD, path_in("young"), ahead, 0), 0);
	file = open_file("young");
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	begin(&xf, &wr, file, 2 * MIB, 9 * MIB);
	assert_int_equal(run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	wire_is_right(&wr, 2 * MIB, 7 * MIB);
	assert_true(pages_resident(file->fil_fd, 2 * MIB, (size_t)7 * MIB) > 0);
	end(&xf, &wr);
}

/* A look takes no longer if the hole is larger. */
static void
hole_of_a_tebibyte(const char *path)
{
	static const off_t from[] = {0, HUGE / 2 + 1, HUGE - 5 * MIB};
	SCOPED_FILE *file = open_file("huge");
	uint64_t bytes = disk().ds_bytes;
	struct wire wr;
	struct xfer xf;

	for (size_t i = 0; i < COUNT(from); i++) {
		begin_by(path, PW_CACHE_KEEP, &xf, &wr, file, from[i],
		    from[i] + 5 * MIB);
		assert_int_equal(run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
		assert_int_equal(xf.xf_pending, 1);
		assert_int_equal(wr.wr_len, 5 * MIB);
		assert_int_equal(wr.wr_data[0], 0);
		assert_memory_equal(wr.wr_data, wr.wr_data + 1, 5 * MIB - 1);
		assert_int_equal(disk().ds_bytes, bytes);
		assert_int_equal(pages_resident(file->fil_fd,
				     from[i] & ~(off_t)0xfffff, 6 * MIB),
		    0);
		end(&xf, &wr);
	}
}

/* Then no look is needed. */
static void
file_without_holes_is_fetched_at_once(void)
{
	SCOPED_FILE *file = open_file("dense");
	uint64_t jobs;
	struct wire wr;
	struct xfer xf;

	assert_true(evict(file->fil_fd, (size_t)MIB));
	jobs = disk().ds_jobs;
	begin(&xf, &wr, file, 0, MIB);
	assert_int_equal(run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(disk().ds_jobs, jobs + 1);
	wire_has_file(&wr, 0, MIB);
	end(&xf, &wr);
}

static void
make_files(void)
{
	whole = calloc(1, (size_t)SIZE);
	assert_non_null(whole);
	for (size_t i = 0; i < COUNT(islands); i++)
		fill(whole + islands[i].is_from, islands[i].is_from,
		    (size_t)(islands[i].is_end - islands[i].is_from));
	make_sparse("f", SIZE);
	for (size_t i = 0; i < COUNT(changes); i++)
		make_sparse(changes[i].ch_name, SIZE);
	make_sparse("huge", HUGE);
	make_file("dense", MIB);
}

/* All in one, since files have to wait until they are settled. */
TEST(holes_of_sparse_files)
{
	struct pw_file *file;

	skip_unless(NEED_EVICTION | NEED_NOWAIT | NEED_EXACT);
	make_files();
	file = open_file("f");
	if (!has_holes(file)) {
		pw_file_unref(&file);
		skip();
	}
	unsettled_hole_is_read();
	sleep(SETTLED);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	for (size_t i = 0; i < COUNT(changes); i++) {
		fx->fx_sinks = strncmp(changes[i].ch_name, "sink", 4) == 0;
		changed_hole_is_not_sent_whole(
		    changes[i].ch_name, changes[i].ch_change);
	}
	send_all(file, "aio", PW_CACHE_KEEP, 0, SIZE);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	for (size_t i = 0; i < 2; i++) {
		fx->fx_sinks = i == 1;
		hole_takes_no_window(file);
		every_byte_is_right(file);
		hole_of_a_tebibyte("nodiskio");
		hole_of_a_tebibyte("aio");
	}
	as_another_owner(file);
	range_is_right(file, "nodiskio", PW_CACHE_KEEP, 0, SIZE);
	pw_file_unref(&file);
	file_without_holes_is_fetched_at_once();
	free(whole);
}
