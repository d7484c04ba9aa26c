/*
 * Reads in flight on the path native (native_fixture.h): which calls of sendfile(2) are counted,
 * and what is sent at the limit.
 */
#include "native_fixture.h"

#define SECOND UINT64_C(1000000)

static unsigned
counted(void)
{
	return pool_cold(fx->fx_pool)->co_calls;
}

/* Sends a file of two calls; of the bytes that it has sent, none is ready. */
static void
send_cold(struct shot *sh, struct pw_file *file)
{
	begin(sh, file, 10, 0, SIZE);
	script(NULL, 0);
	fake.fk_unready = SIZE;
	assert_int_equal(run(sh), PW_SEND_DONE);
	assert_int_equal(sh->sh_xfer.xf_pending, 0);
	assert_int_equal(fake.fk_calls, 2);
}

TEST(the_limit_is_half_of_the_buffers)
{
	assert_int_equal(pool_cold(fx->fx_pool)->co_most, 256);
	assert_int_equal(counted(), 0);
	vnode_pbufs = -EPERM;
	assert_int_equal(os_native_reads(), 32);
	vnode_pbufs = 512;
}

TEST(a_call_is_counted_until_its_socket_waits_for_no_disk)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	unsigned long before = device_ended(file_priv(file)->fp_device);
	struct shot sh;

	send_cold(&sh, file);
	assert_int_equal(counted(), 2);
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(), 2);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now() + SECOND);
	assert_int_equal(counted(), 0);
	/* No disk thread was needed for that. */
	assert_int_equal(device_ended(file_priv(file)->fp_device), before);
	end(&sh);
}

/* At the latest after two seconds.  No test waits for them. */
TEST(a_call_is_checked_when_its_age_has_doubled)
{
	static const struct {
		uint64_t ms;
		unsigned looks; /* at each of the two calls */
	} ticks[] = {{1000, 1}, {1900, 0}, {2900, 1}, {4800, 0}, {4950, 1}};
	SCOPED_FILE *file = new_file("f", SIZE);
	uint64_t begun;
	struct shot sh;

	send_cold(&sh, file);
	begun = clock_now();
	for (size_t i = 0; i < COUNT(ticks); i++) {
		fake.fk_looks = 0;
		pw_loop_tick(fx->fx_loop, begun + ticks[i].ms * 1000);
		assert_int_equal(fake.fk_looks, 2 * ticks[i].looks);
	}
	assert_int_equal(counted(), 2);
	end(&sh);
}

/* Without indirect blocks, which files of FreeBSD's UFS have from 384 KiB on. */
static struct pw_file *
direct_file(size_t size)
{
	struct pw_file *file = new_file("f", size);

	free(file_priv(file)->fp_indirect);
	file_priv(file)->fp_indirect = NULL;
	return file;
}

/* Nine calls, each of which passes more bytes than wait: a socket sends its queue in order. */
TEST(calls_end_when_only_bytes_of_later_calls_wait)
{
	SCOPED_FILE *file = direct_file((size_t)4 << 20);
	struct shot sh;
	int all;

	for (all = 0; all < 2; all++) {
		file_priv(file)->fp_number =
		    verified_number(fx->fx_loop->lp_verified);
		begin(&sh, file, 10, 0, (off_t)4 << 20);
		script(NULL, 0);
		fake.fk_unready = all ? 4 << 20 : 4096;
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_int_equal(sh.sh_xfer.xf_pending, 0);
		assert_int_equal(fake.fk_calls, 9);
		assert_int_equal(counted(), all ? 9 : 1);
		end(&sh);
		pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
		settle(fx->fx_loop);
	}
}

/* The kernel goes on reading for it, and a read of the same page waits for that. */
TEST(a_call_of_a_closed_socket_is_counted_until_a_disk_thread_has_read,
    setup_one_thread)
{
	struct pw_file *file = new_file("f", SIZE);
	struct shot sh;
	struct latch la;

	send_cold(&sh, file);
	end(&sh);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(), 2);
	pw_file_unref(&file);
	latch_finish(&la);
	assert_int_equal(counted(), 0);
}

TEST(nothing_is_counted_if_nothing_is_sent)
{
	static const struct result results[] = {
	    {EAGAIN, 0}, {EAGAIN, 10}, {EBUSY, 0}, {ENOBUFS, 0}, {EIO, 0}};
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;

	for (size_t i = 0; i < COUNT(results); i++) {
		begin(&sh, file, 10, 0, SIZE);
		script(&results[i], 1);
		fake.fk_unready = 4096;
		step(&sh);
		assert_int_equal(counted(), 0);
		settle(fx->fx_loop);
		end(&sh);
	}
}

/* A popular file: the second call knows from the first that its pages are there. */
TEST(what_was_sent_a_moment_ago_is_not_counted)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;

	fake.fk_unready = 0;
	begin(&sh, file, 10, 0, SIZE);
	script(NULL, 0);
	fake.fk_looks = 0;
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(fake.fk_looks, 2);
	end(&sh);
	begin(&sh, file, 10, 0, SIZE);
	pool_cold(fx->fx_pool)->co_most = 0;
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(sh.sh_xfer.xf_pending, 0);
	assert_int_equal(fake.fk_looks, 2);
	end(&sh);
}

/* The kernel frees the pages that are dropped. */
TEST(what_was_dropped_is_counted_again)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;

	fake.fk_unready = 0;
	fake.fk_looks = 0;
	for (int i = 0; i < 2; i++) {
		begin(&sh, file, 10, 0, SIZE);
		sh.sh_xfer.xf_send.snd_cache = PW_CACHE_DROP;
		pw_send_finish(&sh.sh_xfer.xf_send);
		sh.sh_xfer.xf_send.snd_file = file;
		pw_send_start(&sh.sh_xfer.xf_send);
		script(NULL, 0);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		end(&sh);
	}
	assert_int_equal(fake.fk_looks, 4);
}

static atomic_size_t released; /* bytes passed to os_unbuffer */

void __wrap_os_unbuffer(int fd, off_t off, size_t len);

void
__wrap_os_unbuffer(int fd, off_t off, size_t len)
{
	assert_true(fd >= 0 && off >= 0);
	released += len;
}

static atomic_size_t dropped; /* bytes passed to os_drop */

void __wrap_os_drop(int fd, off_t off, size_t len);

void
__wrap_os_drop(int fd, off_t off, size_t len)
{
	assert_true(fd >= 0 && off >= 0);
	dropped += len;
}

/* SF_NOCACHE frees no page whose object another processor has locked. */
TEST(what_was_sent_is_dropped_after_the_transmission)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;
	int drops;

	for (drops = 0; drops < 2; drops++) {
		begin(&sh, file, 10, 0, SIZE);
		sh.sh_xfer.xf_send.snd_cache =
		    drops ? PW_CACHE_DROP : PW_CACHE_KEEP;
		pw_send_finish(&sh.sh_xfer.xf_send);
		sh.sh_xfer.xf_send.snd_file = file;
		pw_send_start(&sh.sh_xfer.xf_send);
		script(NULL, 0);
		dropped = 0;
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_int_equal(sh.sh_xfer.xf_pending, 0);
		end(&sh);
		pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
		settle(fx->fx_loop);
		assert_int_equal(dropped, drops ? SIZE : 0);
	}
}

/* Otherwise the kernel's buffers would keep the pages. */
TEST(what_a_disk_thread_read_is_released_if_it_is_dropped)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;
	int drops;

	pool_cold(fx->fx_pool)->co_most = 0;
	for (drops = 0; drops < 2; drops++) {
		file_priv(file)->fp_number =
		    verified_number(fx->fx_loop->lp_verified);
		begin(&sh, file, 10, 0, SIZE);
		sh.sh_xfer.xf_send.snd_cache =
		    drops ? PW_CACHE_DROP : PW_CACHE_KEEP;
		pw_send_finish(&sh.sh_xfer.xf_send);
		sh.sh_xfer.xf_send.snd_file = file;
		pw_send_start(&sh.sh_xfer.xf_send);
		script(NULL, 0);
		released = 0;
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_true(sh.sh_xfer.xf_pending > 0);
		assert_int_equal(released, drops ? SIZE : 0);
		end(&sh);
	}
}

/* All calls of the process count, and so none of a slow disk hold up the loop. */
TEST(at_the_limit_a_disk_thread_reads_first, setup_one_thread)
{
	SCOPED_FILE *file = direct_file((size_t)4 << 20);
	struct cold *co = pool_cold(fx->fx_pool);
	struct shot sh;
	struct latch la;

	co->co_most = 3;
	co->co_calls = 2; /* of another loop */
	begin(&sh, file, 10, 0, (off_t)4 << 20);
	script(NULL, 0);
	fake.fk_unready = 4096;
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(counted(), 3);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_int_equal(fake.fk_calls, 1);
	latch_finish(&la);
	/* Bytes that a disk thread has read are sent, although the limit is still reached. */
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_int_equal(fake.fk_calls, 2);
	settle(fx->fx_loop);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(sh.sh_xfer.xf_pending >= 7);
	assert_int_equal(counted(), 3);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now() + SECOND);
	assert_int_equal(counted(), 2);
	co->co_calls = 0;
	end(&sh);
}

/* Without waiting for a tick. */
TEST(at_the_limit_calls_that_have_ended_are_found)
{
	SCOPED_FILE *file = new_file("f", SIZE), *other = new_file("g", SIZE);
	struct shot sh, next;

	pool_cold(fx->fx_pool)->co_most = 2;
	send_cold(&sh, file);
	free(fake.fk_taken);
	fake.fk_taken = NULL;
	fake.fk_unready = 0;
	begin(&next, other, 10, 0, SIZE);
	assert_int_equal(run(&next), PW_SEND_DONE);
	assert_int_equal(next.sh_xfer.xf_pending, 0);
	assert_int_equal(counted(), 0);
	end(&next);
	pw_send_finish(&sh.sh_xfer.xf_send);
	wire_close(&sh.sh_wire);
	free(sh.sh_expected);
}

/* However many transmissions wait for the limit. */
TEST(at_the_limit_no_call_is_checked_again_at_once)
{
	SCOPED_FILE *file = new_file("f", SIZE), *other = new_file("g", SIZE);
	struct shot sh, next;

	pool_cold(fx->fx_pool)->co_most = 2;
	send_cold(&sh, file);
	pw_loop_tick(fx->fx_loop, clock_now() + 60 * SECOND);
	free(fake.fk_taken);
	fake.fk_taken = NULL;
	fake.fk_looks = 0;
	begin(&next, other, 10, 0, SIZE);
	assert_int_equal(step(&next), PW_SEND_PENDING);
	assert_int_equal(fake.fk_looks, 0);
	settle(fx->fx_loop);
	end(&next);
	pw_send_finish(&sh.sh_xfer.xf_send);
	wire_close(&sh.sh_wire);
	free(sh.sh_expected);
}

/* One that is found by a tick to be resident is remembered for longer than a second. */
TEST(above_the_limit_bytes_once_resident_are_sent)
{
	SCOPED_FILE *file = new_file("f", SIZE), *other = new_file("g", SIZE);
	struct verified *vf = fx->fx_loop->lp_verified;
	struct cold *co = pool_cold(fx->fx_pool);
	uint32_t number = file_priv(file)->fp_number;
	uint64_t since = clock_now();
	off_t off = 0, size = SIZE;
	struct shot sh;

	send_cold(&sh, file);
	verified_trim(vf, number, &off, &size, since, UINT64_MAX);
	assert_true(off < size);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	verified_trim(vf, number, &off, &size, since, UINT64_MAX);
	assert_int_equal(off, size);
	end(&sh);
	/* As if a minute had passed. */
	verified_note(vf, number, 0, SIZE, SIZE, 1);
	co->co_most = 2;
	co->co_calls = 2;
	begin(&sh, file, 10, 0, SIZE);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(sh.sh_xfer.xf_pending, 0);
	end(&sh);
	begin(&sh, other, 10, 0, SIZE);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(sh.sh_xfer.xf_pending > 0);
	end(&sh);
	verified_note(vf, number, 0, SIZE, SIZE, 1);
	co->co_calls = 3;
	begin(&sh, file, 10, 0, SIZE);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(sh.sh_xfer.xf_pending > 0);
	end(&sh);
	co->co_calls = 0;
}

/* A loop that ends gives its calls back, and the files with them. */
TEST(a_loop_forgets_its_calls)
{
	struct pw_file *file = new_file("f", SIZE);
	struct shot sh;

	send_cold(&sh, file);
	end(&sh);
	pw_file_unref(&file);
	assert_int_equal(counted(), 2);
}

/* Byte by byte as without a limit: each chunk is read, and then sent. */
TEST(without_any_buffer_everything_is_read_first)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;
	size_t mem;
	off_t off, len;

	pool_cold(fx->fx_pool)->co_most = 0;
	for (unsigned i = 0; i < 500; i++) {
		/* As if the file were another one, of which nothing is known. */
		file_priv(file)->fp_number =
		    verified_number(fx->fx_loop->lp_verified);
		mem = below(3) == 0 ? 0 : below(2000);
		off = below(SIZE);
		len = 1 + below(SIZE - (uint32_t)off);
		begin(&sh, file, mem, off, len);
		script((struct result[]){{EAGAIN, below((uint32_t)len)}}, 1);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_int_equal(fake.fk_len, sh.sh_len);
		assert_true(sh.sh_xfer.xf_pending > 0);
		end(&sh);
	}
	assert_int_equal(counted(), 0);
}

/* The number of its descriptor stands for another connection, which waits for no disk. */
TEST(a_call_does_not_end_with_another_connection, setup_one_thread)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;
	struct latch la;

	send_cold(&sh, file);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	connection++;
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(), 2);
	latch_finish(&la);
	assert_int_equal(counted(), 0);
	end(&sh);
}

/* Its bytes are in the queue of the peer, and so none of its own is unready. */
TEST(a_call_on_a_unix_socket_ends_with_a_read)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;

	connection = 0;
	fake.fk_looks = 0;
	send_cold(&sh, file);
	assert_int_equal(counted(), 2);
	pw_loop_tick(fx->fx_loop, clock_now());
	settle(fx->fx_loop);
	assert_int_equal(counted(), 0);
	end(&sh);
	/* At the limit only the first transmission waits for a disk thread. */
	pool_cold(fx->fx_pool)->co_most = 0;
	for (int i = 0; i < 2; i++) {
		begin(&sh, file, 10, 0, SIZE);
		script(NULL, 0);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_int_equal(sh.sh_xfer.xf_pending > 0, i == 0);
		end(&sh);
	}
	assert_int_equal(fake.fk_looks, 0);
	connection = 80;
}
