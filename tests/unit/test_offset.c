/*
 * Sums of offsets near 2^31, 2^32, 2^48 and 2^63: under UBSan none overflows, and every send path
 * ends at the end of the file, however it asks what is in memory.
 */
#include "xfer_fixture.h"

#include "lib/file/verified.h"
#include "lib/util/offset.h"

#define LEN   70000
#define STEPS 1000 /* it does not get anywhere */

static const off_t ends[] = {((off_t)1 << 31) - 1, (off_t)1 << 31,
    ((off_t)1 << 32) + 5, ((off_t)1 << 48) - 1, ((off_t)1 << 48) + 4097,
    (off_t)1 << 62, OFFSET_MAX - 1, OFFSET_MAX};

TEST(sums_end_at_the_end, NULL)
{
	assert_int_equal(offset_add(5, 6, 20), 11);
	assert_int_equal(offset_add(5, 15, 20), 20);
	assert_int_equal(offset_add(5, UINT64_MAX, 20), 20);
	assert_int_equal(offset_add(OFFSET_MAX - 3, 3, OFFSET_MAX), OFFSET_MAX);
	assert_int_equal(offset_next(0, 8, 20), 8);
	assert_int_equal(offset_next(7, 8, 20), 8);
	assert_int_equal(offset_next(8, 8, 20), 16);
	assert_int_equal(offset_next(16, 8, 20), 20);
	assert_int_equal(
	    offset_next(OFFSET_MAX - 3, 1 << 21, OFFSET_MAX), OFFSET_MAX);
	assert_int_equal(offset_round_up(8, 8, 20), 8);
	assert_int_equal(offset_round_up(9, 8, 20), 16);
	assert_int_equal(offset_round_up(17, 8, 20), 20);
}

TEST(pieces_of_each_place_are_told_apart, NULL)
{
	struct verified *vf = verified_create();
	uint32_t file = verified_number(vf);
	off_t off, end, from;

	for (size_t i = 0; i < COUNT(ends); i++) {
		from = ends[i] - LEN;
		verified_note(vf, file, from, ends[i], ends[i], 10);
		off = from % ((off_t)1 << 32);
		end = off + LEN / 2;
		if (off != from) {
			verified_trim(vf, file, &off, &end, 10, UINT64_MAX);
			assert_true(off < end);
		}
		off = from;
		end = ends[i];
		verified_trim(vf, file, &off, &end, 10, UINT64_MAX);
		assert_in_range(off, from, end);
		verified_destroy(&vf);
		vf = verified_create();
	}
	verified_destroy(&vf);
}

/* Only file systems in memory have files of any size everywhere. */
static int
setup_memory(void **state)
{
	setenv("TMPDIR", "/dev/shm", 1);
	return setup(state);
}

static struct pw_file *
sparse_file(off_t size)
{
	int fd = open(path_in("f"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	bool made = ftruncate(fd, size) == 0;

	close(fd);
	pw_loop_tick(fx->fx_loop, clock_now() + 3600u * 1000000u);
	return made ? open_file("f") : NULL;
}

static void
send_end(const char *path, struct pw_file *file, off_t off, uint64_t readahead)
{
	enum pw_send_status status = PW_SEND_AGAIN;
	SCOPED_WIRE wr = wide_wire();
	struct xfer xf;
	int steps = 0;

	xfer_init(&xf, path, &wr, file);
	xf.xf_send.snd_off = off;
	xf.xf_send.snd_len =
	    file->fil_size - off < LEN ? file->fil_size - off : LEN;
	xf.xf_send.snd_readahead = readahead;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	while (status != PW_SEND_DONE && ++steps < STEPS) {
		status = pw_send_step(&xf.xf_send);
		if (status == PW_SEND_ERROR)
			fail_msg("%s from %lld: error %d", path, (long long)off,
			    xf.xf_send.snd_error);
		wire_read(&wr);
		pw_loop_tick(fx->fx_loop, clock_now());
		settle(fx->fx_loop);
	}
	assert_int_equal(status, PW_SEND_DONE);
	wire_read(&wr);
	assert_int_equal(wr.wr_len, xf.xf_send.snd_sent);
	pw_send_finish(&xf.xf_send);
	settle(fx->fx_loop);
}

TEST(every_path_sends_the_end_of_the_largest_files, setup_memory)
{
	static const uint64_t windows[] = {
	    PW_READAHEAD_AUTO, PW_READAHEAD_NONE, 64 * KIB, UINT64_MAX / 2 + 7};
	static const int asks[] = {OS_ASK_UNKNOWN, OS_ASK_NOWAIT, OS_ASK_FETCH};
	const char *const *path;
	struct pw_file *file;
	size_t i, w, a;

	for (i = 0; i < COUNT(ends); i++) {
		file = sparse_file(ends[i]);
		if (file == NULL)
			continue;
		for (path = pw_send_path_names(); *path != NULL; path++)
			for (w = 0; w < COUNT(windows); w++)
				for (a = 0; a < COUNT(asks); a++) {
					if (asks[a] != OS_ASK_UNKNOWN)
						file_priv(file)->fp_ask =
						    asks[a];
					send_end(*path, file,
					    ends[i] - (w == 0 ? 3 : LEN),
					    windows[w]);
				}
		pw_file_unref(&file);
	}
}

TEST(a_range_behind_the_last_offset_is_refused)
{
	SCOPED_FILE *file = new_file("f", 5);
	SCOPED_WIRE wr = wide_wire();
	SCOPED_XFER xf;

	xfer_init(&xf, "copy", &wr, file);
	xf.xf_send.snd_off = OFFSET_MAX - 4;
	xf.xf_send.snd_len = 5;
	assert_int_equal(pw_send_start(&xf.xf_send), -EINVAL);
}
