/*
 * Windows that are fetched from the tier (lib/disk/tier_fetch.c): what is read, and for how much of the budget,
 * depends on the range that is asked for, also if the tier cannot read it.
 */
#include "xfer_fixture.h"

#include "lib/disk/tier_fetch.h"
#include "lib/disk/tier_fetch_priv.h"

#define PIECE	  ((off_t)TIER_PIECE)
#define SIZE	  (2 * OFF_FOLIO + 12345)
#define OFF_FOLIO ((off_t)OS_FOLIO)

static char dir[64];

struct tiered_file {
	struct pw_file *tf_file;
	struct tier *tf_tier;
};

static void
write_windows(struct tiered_file *tf)
{
	struct pins_key key = pins_key(tf->tf_file);
	char *memory = os_huge_page(OS_FOLIO);
	off_t off, next;

	assert_non_null(memory);
	assert_true(tier_place(tf->tf_file, &key.pk_dev));
	for (off = 0; off < SIZE; off = next) {
		next = off + OFF_FOLIO < SIZE ? off + OFF_FOLIO : SIZE;
		fill(memory, off, (size_t)(next - off));
		assert_int_equal(tier_write(tf->tf_tier, &key, off, memory,
				     (size_t)(next - off)),
		    0);
	}
	os_unmap(memory, OS_FOLIO);
}

/* A cold file whose windows are in a tier on another file system. */
static void
make_tiered(struct tiered_file *tf)
{
	struct tier_conf tc = {.tc_size = (uint64_t)32 * OS_FOLIO};
	struct tier *ti;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	*tf = (struct tiered_file){0};
	strcpy(dir, "/dev/shm/pagewise-tier-XXXXXX");
	tc.tc_dir = mkdtemp(dir);
	if (tc.tc_dir == NULL)
		skip();
	assert_int_equal(tier_open(&tc, &ti), 0);
	tf->tf_tier = ti;
	assert_true(tier_is_due(ti, clock_now()));
	tier_prepare(ti);
	assert_int_equal(tier_fetch_create(fx->fx_pool, &ti), 0);
	tf->tf_file = new_file("f", (size_t)SIZE);
	write_windows(tf);
	assert_true(evict(tf->tf_file->fil_fd, (size_t)SIZE));
}

static struct tier_stats
stats(void)
{
	struct tier_stats tu;

	assert_true(tier_fetch_stats(fx->fx_pool, &tu));
	return tu;
}

static uint64_t
budget_taken(void)
{
	struct pw_pool_stats ps;

	pw_pool_stats(fx->fx_pool, &ps);
	return ps.ps_unsent;
}

static void
end_tiered(struct tiered_file *tf)
{
	assert_int_equal(budget_taken(), 0);
	pw_file_unref(&tf->tf_file);
}

/* Starts a transmission of the range, which waits for the tier. */
static void
begin(struct tiered_file *tf, struct xfer *xf, struct wire *wr, off_t off,
    off_t len)
{
	wire_wide(wr);
	xfer_init(xf, "nodiskio", wr, tf->tf_file);
	xf->xf_send.snd_cache = PW_CACHE_DROP;
	xf->xf_send.snd_off = off;
	xf->xf_send.snd_len = len;
	pw_send_start(&xf->xf_send);
	assert_int_equal(xfer_step(xf), PW_SEND_PENDING);
}

static void
end(struct xfer *xf, struct wire *wr, off_t off, off_t len)
{
	enum pw_send_status status = xfer_step(xf);

	while (status == PW_SEND_PENDING || status == PW_SEND_AGAIN) {
		settle(fx->fx_loop);
		status = xfer_step(xf);
	}
	assert_int_equal(status, PW_SEND_DONE);
	wire_read(wr);
	assert_int_equal(wr->wr_len, len);
	for (off_t i = 0; i < len; i++)
		assert_int_equal(
		    (unsigned char)wr->wr_data[i], byte_at(off + i));
	pw_send_finish(&xf->xf_send);
	wire_close(wr);
	settle(fx->fx_loop);
}

/* Requests the range, and checks how many bytes are read from the tier, and taken from the budget. */
static void
reads(struct tiered_file *tf, off_t off, off_t len, off_t bytes)
{
	struct pins *ps = fx->fx_pool->pl_pins;
	const uint64_t before = stats().tu_hit_bytes;
	const size_t pinned = pins_bytes(ps);
	uint64_t taken;
	struct latch la;
	struct xfer xf;
	struct wire wr;

	latch_shut(&la, fx->fx_pool->pl_tiered->td_device, fx->fx_loop);
	begin(tf, &xf, &wr, off, len);
	taken = budget_taken();
	latch_finish(&la);
	assert_in_range(taken, bytes, bytes + PIECE - 1);
	assert_int_equal(stats().tu_hit_bytes - before, bytes);
	assert_in_range(pins_bytes(ps) - pinned, bytes, bytes + PIECE);
	end(&xf, &wr, off, len);
}

static int
teardown_tier(void **state)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return teardown(state);
}

TEST(ranges_are_read_in_whole_pieces, setup_one_thread, teardown_tier)
{
	struct tiered_file tf;

	make_tiered(&tf);
	reads(&tf, 5 * PIECE + 100, 1, PIECE);
	reads(&tf, 9 * PIECE - 1, 2, 2 * PIECE);
	reads(&tf, OFF_FOLIO, PIECE, PIECE);
	reads(&tf, SIZE - 1, 1, SIZE % OFF_FOLIO);
	assert_int_equal(stats().tu_hits, 4);
	assert_int_equal(stats().tu_misses, 0);
	assert_int_equal(
	    pages_resident(tf.tf_file->fil_fd, 0, (size_t)SIZE), 0);
	end_tiered(&tf);
}

TEST(reads_of_a_piece_are_shared, setup_one_thread, teardown_tier)
{
	const off_t off[] = {7 * PIECE + 9000, 7 * PIECE + 100};
	struct tiered_file tf;
	struct latch la;
	struct xfer xf[2];
	struct wire wr[2];

	make_tiered(&tf);
	latch_shut(&la, fx->fx_pool->pl_tiered->td_device, fx->fx_loop);
	for (size_t i = 0; i < 2; i++)
		begin(&tf, &xf[i], &wr[i], off[i], 1);
	latch_finish(&la);
	assert_int_equal(stats().tu_hits, 1);
	for (size_t i = 0; i < 2; i++)
		end(&xf[i], &wr[i], off[i], 1);
	end_tiered(&tf);
}

/*
 * Without memory for a copy.  The slow disk reads the pages of both ranges and those between them, and the tier,
 * which has the window, does not get it again.
 */
TEST(read_that_is_given_up_fetches_what_was_asked, setup_one_thread,
    teardown_tier)
{
	const off_t off[] = {7 * PIECE + 9000, 7 * PIECE + 100};
	struct tiered_file tf;
	uint64_t written, fetched;
	struct latch la;
	struct xfer xf[2];
	struct wire wr[2];

	make_tiered(&tf);
	written = stats().tu_written;
	fetched = file_priv(tf.tf_file)->fp_device->dv_bytes;
	leave_no_room_for_pins();
	latch_shut(&la, fx->fx_pool->pl_tiered->td_device, fx->fx_loop);
	for (size_t i = 0; i < 2; i++)
		begin(&tf, &xf[i], &wr[i], off[i], 1);
	latch_finish(&la);
	for (size_t i = 0; i < 2; i++)
		end(&xf[i], &wr[i], off[i], 1);
	assert_int_equal(stats().tu_hits, 0);
	assert_int_equal(file_priv(tf.tf_file)->fp_device->dv_bytes - fetched,
	    off[0] + 1 - off[1]);
	assert_int_equal(stats().tu_written, written);
	end_tiered(&tf);
}
