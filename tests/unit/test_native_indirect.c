/*
 * Indirect blocks on the path native (native_fixture.h): disk threads read them before the loop
 * sends the data behind them.
 */
#include "native_fixture.h"

#define BLOCK	 ((off_t)4096)
#define DIRECT	 (12 * BLOCK)
#define INDIRECT (512 * BLOCK) /* of the file, by one indirect block */
#define LARGE	 ((size_t)(DIRECT + 2 * INDIRECT + 5 * BLOCK))

static struct pw_file *
large_file(void)
{
	struct pw_file *file = new_file("f", LARGE);

	if (file_priv(file)->fp_indirect == NULL) /* it may be the cache's */
		file_priv(file)->fp_indirect =
		    calloc(1, sizeof(*file_priv(file)->fp_indirect));
	assert_non_null(file_priv(file)->fp_indirect);
	*file_priv(file)->fp_indirect = (struct indirect){.in_block = BLOCK};
	file_priv(file)->fp_device->dv_fs.fs_block = BLOCK;
	fake.fk_block = BLOCK;
	fake.fk_indirect = 0;
	fake.fk_bmaps = 0;
	fake.fk_bmap_error = 0;
	script(NULL, 0);
	return file;
}

static void
count_done(struct pw_waiter *w)
{
	assert_int_equal(w->wt_error, 0);
}

static void
large_done(struct pw_file **file)
{
	fake.fk_block = 0;
	pw_file_unref(file);
}

/* Each step has what was asked for before. */
static void
run_slowly(struct shot *sh)
{
	struct pw_send *s = &sh->sh_xfer.xf_send;
	enum pw_send_status status;

	do {
		settle(s->snd_loop);
		status = step(sh);
	} while (status == PW_SEND_AGAIN || status == PW_SEND_PENDING);
	assert_int_equal(status, PW_SEND_DONE);
}

/* Each is read once, by the pool, and by the time it is needed. */
TEST(indirect_blocks_are_read_by_the_pool_before_what_they_lead_to,
    setup_one_thread)
{
	struct pw_file *file = large_file();
	struct pw_device *dv = file_priv(file)->fp_device;
	unsigned long before = device_ended(dv);
	struct shot sh;

	begin(&sh, file, 10, 0, (off_t)LARGE);
	/* The first twelve blocks wait for nothing. */
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(fake.fk_len, 10 + DIRECT);
	do {
		settle(fx->fx_loop);
	} while (step(&sh) == PW_SEND_AGAIN);
	assert_int_equal(sh.sh_xfer.xf_send.snd_sent, sh.sh_len);
	assert_int_equal(sh.sh_xfer.xf_pending, 0);
	assert_int_equal(device_ended(dv) - before, 3);
	end(&sh);
	/* And not for the next client. */
	begin(&sh, file, 10, 0, (off_t)LARGE);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(device_ended(dv) - before, 3);
	end(&sh);
	large_done(&file);
}

/* A client that is faster than the disk waits for it, and the loop does not. */
TEST(what_is_not_read_in_time_is_waited_for, setup_one_thread)
{
	struct pw_file *file = large_file();
	struct shot sh;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	begin(&sh, file, 0, 0, (off_t)LARGE);
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_int_equal(fake.fk_len, DIRECT);
	latch_finish(&la);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(sh.sh_xfer.xf_send.snd_sent, LARGE);
	end(&sh);
	large_done(&file);
}

TEST(a_range_reads_what_leads_to_it_and_no_more, setup_one_thread)
{
	static const struct {
		off_t off, len;
		unsigned long reads;
	} ranges[] = {
	    {0, DIRECT, 0},
	    {DIRECT - 1, 1, 0},
	    {DIRECT - 1, 2, 1},
	    {DIRECT + INDIRECT - 1, 1, 1},
	    {DIRECT + INDIRECT, 1, 1},
	    {DIRECT + INDIRECT - 1, 2, 2},
	    {(off_t)LARGE - 1, 1, 1},
	};
	struct pw_file *file;
	unsigned long before;
	struct shot sh;

	for (size_t i = 0; i < COUNT(ranges); i++) {
		file = large_file();
		before = device_ended(file_priv(file)->fp_device);
		begin(&sh, file, 0, ranges[i].off, ranges[i].len);
		do {
			settle(fx->fx_loop);
		} while (sh.sh_xfer.xf_send.snd_len > 0 &&
			 step(&sh) != PW_SEND_ERROR);
		assert_int_equal(fake.fk_len, ranges[i].len);
		assert_int_equal(
		    device_ended(file_priv(file)->fp_device) - before,
		    ranges[i].reads);
		end(&sh);
		large_done(&file);
	}
}

/* Nothing was sent yet: it can still become another answer. */
TEST(an_indirect_block_that_cannot_be_read_is_an_error)
{
	struct pw_file *file = large_file();
	struct shot sh;

	fake.fk_bmap_error = EIO;
	begin(&sh, file, 10, DIRECT, BLOCK);
	assert_int_equal(run(&sh), PW_SEND_ERROR);
	assert_int_equal(sh.sh_xfer.xf_send.snd_error, -EIO);
	assert_int_equal(fake.fk_calls, 0);
	end(&sh);
	large_done(&file);
}

/* The kernel has evicted it since, while the pages that it leads to are cached. */
TEST(an_indirect_block_is_read_again_behind_cached_pages)
{
	struct pw_file *file = large_file();
	struct shot sh;

	begin(&sh, file, 10, 0, (off_t)LARGE);
	run_slowly(&sh);
	assert_int_equal(fake.fk_bmaps, 3);
	end(&sh);
	fake.fk_indirect = 0;
	file_priv(file)->fp_indirect->in_since -= INDIRECT_HOLDS;
	begin(&sh, file, 10, 0, (off_t)LARGE);
	run_slowly(&sh);
	assert_int_equal(fake.fk_bmaps, 6);
	end(&sh);
	large_done(&file);
}

/* Such as one of nullfs, whose VOP_BMAP fails. */
static void
send_without_bmap(int error)
{
	struct pw_file *file = large_file();
	struct shot sh;

	fake.fk_bmap_error = error;
	begin(&sh, file, 10, DIRECT, 2 * BLOCK);
	assert_int_equal(
	    xfer_run(&sh.sh_xfer, &sh.sh_wire, (uint64_t)-1), PW_SEND_DONE);
	assert_int_equal(fake.fk_calls, 0);
	assert_int_equal(file_priv(file)->fp_ask, OS_ASK_FETCH);
	assert_int_equal(sh.sh_wire.wr_len, sh.sh_len);
	assert_memory_equal(sh.sh_wire.wr_data, sh.sh_expected, sh.sh_len);
	pw_send_finish(&sh.sh_xfer.xf_send);
	wire_close(&sh.sh_wire);
	free(sh.sh_expected);
	free(fake.fk_taken);
	large_done(&file);
}

TEST(a_file_without_bmap_is_sent_by_the_pool)
{
	static const int errors[] = {EOPNOTSUPP, ENOTTY, ENOTCAPABLE};

	for (size_t i = 0; i < COUNT(errors); i++)
		send_without_bmap(errors[i]);
}

/* A read of the data that is queued already does not bring in the indirect block. */
TEST(a_read_of_data_does_not_stand_for_the_indirect_block, setup_one_thread)
{
	struct pw_file *file = large_file();
	struct pw_waiter w = {.wt_done = count_done};
	struct shot sh;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    pool_fetch(file, 0, LARGE, FETCH_PAGES, ADMIT_NEW, &w), 0);
	begin(&sh, file, 0, DIRECT, BLOCK);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_true(pool_mapping(file, DIRECT));
	assert_false(pool_mapping(file, DIRECT + INDIRECT));
	latch_finish(&la);
	assert_int_equal(fake.fk_bmaps, 1);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	end(&sh);
	large_done(&file);
}

/* The transmission that asked for it early is gone when it comes. */
TEST(an_early_read_outlives_its_transmission, setup_one_thread)
{
	struct pw_file *file = large_file();
	const struct indirect *in = file_priv(file)->fp_indirect;
	struct shot sh;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	begin(&sh, file, 0, 0, (off_t)LARGE);
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	pw_send_cancel(&sh.sh_xfer.xf_send);
	latch_finish(&la);
	assert_int_equal(step(&sh), PW_SEND_ERROR);
	assert_int_equal(sh.sh_xfer.xf_send.snd_error, -ECANCELED);
	assert_int_equal(fake.fk_len, DIRECT);
	assert_int_equal(
	    indirect_missing(in, 0, DIRECT + INDIRECT, clock_now()),
	    DIRECT + INDIRECT);
	end(&sh);
	/* With nobody left at all. */
	file_priv(file)->fp_indirect->in_known = 0;
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	begin(&sh, file, 0, 0, (off_t)LARGE);
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	end(&sh);
	large_done(&file);
	latch_finish(&la);
}
