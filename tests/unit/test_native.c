/*
 * The path native (native_fixture.h): a table of results, and random scripts of results.  What the
 * fake kernel took is what a client would get.
 */
#include "native_fixture.h"

/* -------------------------------------------------------------------- table */

struct row {
	const char *rw_name;
	size_t rw_mem;
	off_t rw_off, rw_len;
	struct result rw_script[4];
	size_t rw_results;
	int rw_error;	     /* of the transmission */
	size_t rw_sent;	     /* in all */
	unsigned rw_full;    /* times that the socket was full */
	unsigned rw_pending; /* times that it was waited */
	unsigned rw_calls;
};

static const struct row rows[] = {
    {"all at once", 300, 0, 1000, {{0, ALL}}, 1, 0, 1300, 0, 0, 1},
    {"no head", 0, 5, 1000, {{0, ALL}}, 1, 0, 1000, 0, 0, 1},
    {"part of the head", 300, 0, 1000, {{EAGAIN, 7}}, 1, 0, 1300, 1, 0, 2},
    {"the head alone", 300, 0, 1000, {{EAGAIN, 300}}, 1, 0, 1300, 1, 0, 2},
    {"the head and some", 300, 9, 1000, {{EAGAIN, 777}}, 1, 0, 1300, 1, 0, 2},
    {"all but a byte", 300, 9, 1000, {{EAGAIN, 1299}}, 1, 0, 1300, 1, 0, 2},
    {"nothing", 300, 0, 1000, {{EAGAIN, 0}, {EAGAIN, 0}}, 2, 0, 1300, 2, 0, 3},
    {"byte by byte", 2, 0, 2, {{EAGAIN, 1}, {EAGAIN, 1}, {EAGAIN, 1}}, 3, 0, 4,
	3, 0, 4},
    {"busy at once", 0, 0, 1000, {{EBUSY, 0}}, 1, 0, 1000, 0, 1, 2},
    {"busy at once, with a head", 300, 0, 1000, {{EBUSY, 300}}, 1, 0, 1300, 0,
	1, 2},
    {"busy in the file", 300, 0, 9000, {{EBUSY, 4396}}, 1, 0, 9300, 0, 1, 2},
    {"busy again and again", 0, 0, 9000, {{EBUSY, 0}, {EBUSY, 0}, {EBUSY, 1}},
	3, 0, 9000, 0, 3, 4},
    {"no buffers", 0, 0, 9000, {{ENOBUFS, 0}, {ENOBUFS, 4096}}, 2, 0, 9000, 0,
	2, 3},
    {"a signal", 300, 0, 1000, {{EINTR, 0}, {EINTR, 301}}, 2, 0, 1300, 0, 0, 3},
    {"full, busy, a signal", 300, 0, 9000,
	{{EAGAIN, 100}, {EBUSY, 4000}, {EINTR, 1}}, 3, 0, 9300, 1, 1, 4},
    {"the file ends at once", 300, SIZE, 1000, {{0, ALL}}, 0, -ESTALE, 0, 0, 0,
	1},
    {"the file ends early", 300, SIZE - 500, 1000, {{0, ALL}}, 0, -ESTALE, 800,
	0, 0, 2},
    {"a zero in between", 0, 0, 1000, {{0, 10}, {0, 0}}, 2, -ESTALE, 10, 0, 0,
	2},
    {"the disk fails", 300, 0, 1000, {{EAGAIN, 300}, {EIO, 0}}, 2, -EIO, 300, 1,
	0, 2},
    {"the client is gone", 300, 0, 1000, {{EPIPE, 0}}, 1, -EPIPE, 0, 0, 0, 1},
    {"reset after some", 300, 0, 1000, {{ECONNRESET, 4}}, 1, -ECONNRESET, 4, 0,
	0, 1},
};

TEST(each_result_has_its_consequence)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	const struct row *rw;
	struct shot sh;

	for (rw = rows; rw < rows + COUNT(rows); rw++) {
		print_message("%s\n", rw->rw_name);
		begin(&sh, file, rw->rw_mem, rw->rw_off, rw->rw_len);
		script(rw->rw_script, rw->rw_results);
		assert_int_equal(
		    run(&sh), rw->rw_error == 0 ? PW_SEND_DONE : PW_SEND_ERROR);
		assert_int_equal(sh.sh_xfer.xf_send.snd_error, rw->rw_error);
		assert_int_equal(fake.fk_len, rw->rw_sent);
		assert_int_equal(fake.fk_calls, rw->rw_calls);
		assert_int_equal(sh.sh_xfer.xf_full, rw->rw_full);
		assert_int_equal(sh.sh_xfer.xf_pending, rw->rw_pending);
		end(&sh);
	}
}

/* ------------------------------------------------------------------- random */

#define SCRIPTS 20000u

static const int passing[] = {0, EAGAIN, EAGAIN, EBUSY, EINTR, ENOBUFS};
static const int failing[] = {EIO, EPIPE, ECONNRESET, ENOTCONN};

/*
 * Without an error a call that took less than all has met the end of the file, which
 * is not to come by chance: 0 takes all.  Returns the error that ends it, or 0.
 */
static int
random_script(size_t len)
{
	struct result results[COUNT(fake.fk_script)];
	size_t i, n = below(below(3) == 0 ? COUNT(results) : 8);
	int error = 0;

	for (i = 0; i < n; i++) {
		results[i].rs_error = passing[below(COUNT(passing))];
		results[i].rs_most = results[i].rs_error == 0 ? ALL
				     : below(3) == 0
					 ? 0
					 : below((uint32_t)len / 8 + 2);
	}
	if (n > 0 && below(8) == 0) {
		error = failing[below(COUNT(failing))];
		results[n - 1].rs_error = error;
	}
	script(results, n);
	return error;
}

TEST(each_byte_is_sent_once_and_in_order)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	unsigned i, done = 0, failed = 0, waited = 0;
	enum pw_send_status status;
	struct shot sh;
	size_t mem;
	off_t off, len;
	int error;

	for (i = 0; i < SCRIPTS; i++) {
		mem = below(3) == 0 ? 0 : below(2000);
		off = below(4) == 0 ? 0 : below(SIZE);
		len = 1 + below(below(4) == 0 ? SIZE - (uint32_t)off : 5000);
		if (len > SIZE - off)
			len = SIZE - off;
		begin(&sh, file, mem, off, len);
		error = random_script(sh.sh_len);
		status = run(&sh);
		if (status == PW_SEND_ERROR) {
			assert_int_equal(sh.sh_xfer.xf_send.snd_error, -error);
			assert_int_equal(fake.fk_next, fake.fk_results);
			failed++;
		} else {
			assert_int_equal(fake.fk_len, sh.sh_len);
			done++;
		}
		waited += sh.sh_xfer.xf_pending;
		end(&sh);
	}
	print_message("%u scripts: %u sent, %u failed, %u waits\n", SCRIPTS,
	    done, failed, waited);
	assert_true(done > SCRIPTS / 2 && failed > 0 && waited > 0);
}

/* -------------------------------------------------------------------- hints */

TEST(hints_of_the_location_are_flags_of_the_call)
{
	static const struct {
		uint64_t readahead;
		enum pw_cache cache;
		int pages, flags;
	} hints[] = {
	    {PW_READAHEAD_NONE, PW_CACHE_KEEP, 0, 0},
	    {PW_READAHEAD_NONE, PW_CACHE_DROP, 0, SF_NOCACHE},
	    {64 * KIB, PW_CACHE_KEEP, 64 * KIB, 0},
	    {64 * KIB + 1, PW_CACHE_DROP, 64 * KIB + 1, SF_NOCACHE},
	    {1 << 30, PW_CACHE_KEEP, 1 << 30,
		0}, /* more than there is room for */
	};
	SCOPED_FILE *file = new_file("f", (size_t)4 << 20);
	int page = (int)sysconf(_SC_PAGESIZE), pages;
	struct shot sh;

	for (size_t i = 0; i < COUNT(hints); i++) {
		begin(&sh, file, 10, 0, (off_t)4 << 20);
		sh.sh_xfer.xf_send.snd_readahead = hints[i].readahead;
		sh.sh_xfer.xf_send.snd_cache = hints[i].cache;
		pw_send_finish(&sh.sh_xfer.xf_send);
		sh.sh_xfer.xf_send.snd_file = file;
		pw_send_start(&sh.sh_xfer.xf_send);
		script(NULL, 0);
		assert_int_equal(step(&sh), PW_SEND_AGAIN);
		pages = (hints[i].pages + page - 1) / page;
		if (pages > 0x7fff)
			pages = 0x7fff;
		assert_int_equal((unsigned)fake.fk_flags >> 16, pages);
		assert_int_equal(
		    fake.fk_flags & SF_NOCACHE, hints[i].flags & SF_NOCACHE);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		/* Nothing is left to read ahead. */
		assert_int_equal((unsigned)fake.fk_flags >> 16, 0);
		end(&sh);
	}
}

/* Others have their turn after each share. */
TEST(a_call_is_for_a_share)
{
	SCOPED_FILE *file = new_file("f", (size_t)4 << 20);
	struct shot sh;

	begin(&sh, file, 10, 0, (off_t)4 << 20);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(fake.fk_nbytes <= SHARE_MOST);
	assert_true(fake.fk_calls >= (4 << 20) / SHARE_MOST);
	/* The end of the file goes by a call of its own, in the last step. */
	assert_int_equal(sh.sh_xfer.xf_again + 2, fake.fk_calls);
	end(&sh);
}

TEST(peers_differ, NULL)
{
	uint64_t one = os_peer(STDIN_FILENO);

	assert_true(one != 0);
	assert_true(os_peer(STDIN_FILENO) == one);
	connection++;
	assert_true(os_peer(STDIN_FILENO) != one);
	assert_int_equal(os_peer(-1), 0);
	connection = 0;
	assert_int_equal(os_peer(STDIN_FILENO), 0);
	connection = 80;
}

/* Of a file system whose pages the kernel waits for: the pool sends it. */
TEST(other_files_are_sent_by_the_pool)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct shot sh;

	begin(&sh, file, 10, 0, SIZE);
	file_priv(file)->fp_ask = OS_ASK_FETCH;
	assert_int_equal(
	    xfer_run(&sh.sh_xfer, &sh.sh_wire, (uint64_t)-1), PW_SEND_DONE);
	assert_int_equal(fake.fk_calls, 0);
	assert_int_equal(sh.sh_wire.wr_len, sh.sh_len);
	assert_memory_equal(sh.sh_wire.wr_data, sh.sh_expected, sh.sh_len);
	assert_true(sh.sh_xfer.xf_pending > 0);
	pw_send_finish(&sh.sh_xfer.xf_send);
	wire_close(&sh.sh_wire);
	free(sh.sh_expected);
	free(fake.fk_taken);
}

TEST(a_kernel_before_11_does_not_have_it, NULL)
{
	const char *why;

	assert_int_equal(pw_send_probe(pw_send_path("native"), &why), 0);
	assert_ptr_equal(pw_send_default(), pw_send_path("native"));
	osreldate = 1003000;
	assert_int_equal(pw_send_probe(pw_send_path("native"), &why), -ENOSYS);
	assert_non_null(strstr(why, "FreeBSD 11"));
	assert_ptr_equal(pw_send_default(), pw_send_path("nodiskio"));
	osreldate = 1400500;
}
