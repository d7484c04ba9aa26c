/*
 * What one step of a transmission sends (lib/send/transfer.c, prefetch.c): how large a
 * share is, where it ends, and how it is asked whether it is in memory.
 */
#include "xfer_fixture.h"

#include <sys/sendfile.h>
#include <sys/uio.h>

#include "lib/disk/completion.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/reclaim.h"
#include "lib/file/verified.h"
#include "lib/util/clock.h"

#define PAGE	((off_t)4 * KIB) /* where nothing but RWF_NOWAIT can be asked */
#define SIZE	(4 * SHARE)
#define MOST	(16 * SHARE)
#define HELD	((off_t)64 * KIB)
#define NOWHERE ((off_t)1 << 40)

/* What RWF_NOWAIT finds in the page cache: SIZE bytes without those from hole on, and without the page at flying. */
static struct {
	unsigned questions; /* reads of one or two bytes: residency checks */
	off_t hole;
	off_t flying;
} fake = {.hole = NOWHERE, .flying = NOWHERE};

/* Replaces the C library's.  Longer reads with RWF_NOWAIT are copies of what is sent. */
ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	struct iovec one = iov[0];
	off_t refused = fake.hole;

	assert_int_equal(n, 1);
	if (flags != 0 && one.iov_len <= 2)
		fake.questions++;
	if (fake.flying < refused && off < fake.flying + PAGE)
		refused = fake.flying;
	if (flags != 0 && refused <= off) {
		errno = EAGAIN;
		return -1;
	}
	if (flags != 0 && one.iov_len > (size_t)(refused - off))
		one.iov_len = (size_t)(refused - off);
	return preadv(fd, &one, 1, off);
}

static pthread_t loop_thread;
static unsigned sent_by_loop;

/* In place of the C library's: who sends? */
ssize_t
sendfile(int out, int in, off_t *off, size_t len)
{
	sent_by_loop += pthread_equal(pthread_self(), loop_thread) != 0;
	return syscall(SYS_sendfile, out, in, off, len);
}

static bool quiet; /* the kernel evicts nothing */

bool __wrap_reclaim_is_quiet(struct reclaim *, uint64_t);

bool
__wrap_reclaim_is_quiet(struct reclaim *rc, uint64_t now)
{
	(void)rc, (void)now;
	return quiet;
}

static uint64_t used_stay; /* for how long pages in use are resident, us */

uint64_t __wrap_reclaim_used_stay(const struct reclaim *, uint64_t);

uint64_t
__wrap_reclaim_used_stay(const struct reclaim *rc, uint64_t now)
{
	(void)rc, (void)now;
	return used_stay;
}

/* Asked by RWF_NOWAIT alone, everywhere; nothing is known of it yet. */
static struct pw_file *
sampled_file(void)
{
	struct pw_file *file = new_file("f", SIZE);

	file_priv(file)->fp_ask = OS_ASK_NOWAIT;
	as_another_owner(file);
	file_priv(file)->fp_number = verified_number(fx->fx_loop->lp_verified);
	residency_fetched(file, 0, SIZE);
	return file;
}

static enum pw_send_status
step_with_hole(struct xfer *xf, off_t hole)
{
	fake.hole = hole;
	fake.questions = 0;
	return xfer_step(xf);
}

static void
start(struct xfer *xf, const char *path, struct wire *wr, struct pw_file *file)
{
	xfer_init(xf, path, wr, file);
	xf->xf_send.snd_len = file->fil_size;
	pw_send_start(&xf->xf_send);
}

static void
end(struct xfer *xf, struct wire *wr, struct pw_file *file)
{
	pw_send_finish(&xf->xf_send);
	wire_close(wr);
	pw_file_unref(&file);
}

/* -------------------------------------------------------------- how large it is */

/* So that 128 KiB do not take a step more because of the head. */
TEST(a_head_is_sent_with_the_first_chunk)
{
	static char head[300];
	struct pw_file *file = new_file("f", SHARE);
	struct wire wr = wide_wire();
	struct xfer xf;

	start(&xf, "blocking", &wr, file);
	xf.xf_send.snd_mem = head;
	xf.xf_send.snd_mem_len = sizeof(head);
	send_priv(&xf.xf_send)->ss_chunk = SHARE;
	assert_int_equal(xfer_step(&xf), PW_SEND_DONE);
	assert_int_equal(xf.xf_send.snd_sent, SHARE + sizeof(head));
	end(&xf, &wr, file);
}

/* Each time the socket is empty: how it counts what it holds is its own affair. */
TEST(a_chunk_adapts_to_the_socket)
{
	struct pw_file *file = new_file("f", 2 * MOST);
	const size_t larger[] = {2 * SHARE, 4 * SHARE};
	struct wire wr = narrow_wire();
	struct xfer xf;
	size_t i, chunk, taken;

	start(&xf, "blocking", &wr, file);
	chunk = send_priv(&xf.xf_send)->ss_chunk;
	assert_int_equal(chunk, MOST);
	for (i = 0; i < 8; i++) {
		taken = xf.xf_send.snd_sent;
		sent_by_loop = 0;
		assert_int_equal(xfer_step(&xf), PW_SEND_WANT_WRITE);
		/* Nothing is tried in vain. */
		assert_int_equal(sent_by_loop, 1);
		taken = xf.xf_send.snd_sent - taken;
		if (chunk > SHARE && taken < chunk / 4)
			chunk /= 2;
		assert_int_equal(send_priv(&xf.xf_send)->ss_chunk, chunk);
		wire_flush(&wr);
	}
	assert_true(chunk < MOST);
	wire_close(&wr);
	wire_wide(&wr);
	xf.xf_send.snd_sock = wr.wr_sock;
	send_priv(&xf.xf_send)->ss_chunk = SHARE;
	for (i = 0; i < COUNT(larger); i++) {
		assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
		assert_int_equal(send_priv(&xf.xf_send)->ss_chunk, larger[i]);
		wire_read(&wr);
	}
	end(&xf, &wr, file);
}

/* Pages that may be evicted while they are sent, and copies, which take longer, go in smaller chunks. */
TEST(resident_file_is_sent_by_one_call_while_nothing_is_evicted)
{
	static const struct {
		bool quiet;
		off_t sent;
	} cases[] = {{true, MOST - 1}, {false, 4 * SHARE}};
	SCOPED_FILE *file = new_file("f", MOST - 1);
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	for (size_t i = 0; i < COUNT(cases); i++) {
		quiet = cases[i].quiet;
		wire_wide(&wr);
		start(&xf, "nodiskio", &wr, file);
		sent_by_loop = 0;
		xfer_step(&xf);
		assert_int_equal(xf.xf_send.snd_sent, cases[i].sent);
		assert_int_equal(sent_by_loop, 1);
		wire_read(&wr);
		assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
		assert_int_equal(wr.wr_len, MOST - 1);
		pw_send_finish(&xf.xf_send);
		wire_close(&wr);
	}
	quiet = false;
}

/* Not even the bytes before the last one. */
TEST(file_that_has_changed_is_not_sent_by_its_last_call)
{
	const struct timespec other[2] = {{1000, 0}, {1000, 0}};
	struct pw_file *file = new_file("f", SIZE);
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	wire_wide(&wr);
	start(&xf, "nodiskio", &wr, file);
	assert_int_equal(utimensat(AT_FDCWD, path_in("f"), other, 0), 0);
	sent_by_loop = 0;
	assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -ESTALE);
	assert_int_equal(xf.xf_send.snd_sent, 0);
	assert_int_equal(sent_by_loop, 0);
	end(&xf, &wr, file);
}

/* Nobody knows whether the socket would have taken more. */
TEST(a_chunk_cut_by_its_window_does_not_grow)
{
	struct pw_file *file = new_file("f", SIZE);
	struct wire wr = wide_wire();
	struct xfer xf;

	start(&xf, "blocking", &wr, file);
	send_priv(&xf.xf_send)->ss_chunk = SHARE;
	send_priv(&xf.xf_send)->ss_window = SHARE / 2;
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_sent, SHARE / 2);
	assert_int_equal(send_priv(&xf.xf_send)->ss_chunk, SHARE);
	send_priv(&xf.xf_send)->ss_window = SIZE;
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(send_priv(&xf.xf_send)->ss_chunk, 2 * SHARE);
	end(&xf, &wr, file);
}

/* What follows may be on its way. */
TEST(a_chunk_ends_with_the_fetched_data)
{
	struct pw_file *file = new_file("f", SIZE);
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	wire_wide(&wr);
	start(&xf, "nodiskio", &wr, file);
	send_priv(&xf.xf_send)->ss_asked = SHARE + 1;
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_sent, SHARE + 1);
	/* Before Linux 6.5 a local socket counts the pages that it holds. */
	wire_read(&wr);
	assert_int_equal(xfer_step(&xf), PW_SEND_DONE);
	end(&xf, &wr, file);
}

/* Not more than sendfile(2) takes hold of before it asks for the socket's memory. */
TEST(a_chunk_is_held_memory_where_sockets_evict)
{
	struct pw_file *file = new_file("f", SIZE);
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	fx->fx_pool->pl_sockets = true;
	wire_wide(&wr);
	start(&xf, "nodiskio", &wr, file);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
		assert_int_equal(xf.xf_send.snd_sent, i * HELD);
		wire_read(&wr);
	}
	fx->fx_pool->pl_sockets = false;
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_sent, 3 * HELD + SHARE);
	wire_read(&wr);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, SIZE);
	end(&xf, &wr, file);
}

/* A range that begins within a page; and the head's memory is the socket's as well. */
TEST(a_head_is_sent_alone_where_sockets_evict)
{
	static char head[300];
	struct pw_file *file = new_file("f", SIZE);
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	fx->fx_pool->pl_sockets = true;
	wire_wide(&wr);
	start(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_off = 100;
	xf.xf_send.snd_len = SIZE - 100;
	xf.xf_send.snd_mem = head;
	xf.xf_send.snd_mem_len = sizeof(head);
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_sent, sizeof(head));
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_off, HELD);
	wire_read(&wr);
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_off, 2 * HELD);
	wire_read(&wr);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, sizeof(head) + SIZE - 100);
	end(&xf, &wr, file);
}

/* ---------------------------------------------------------- is it in memory? */

/* cachestat counts a page whose read is in flight as present. */
TEST(a_page_in_flight_ends_what_is_sent)
{
	static const off_t pages[] = {1, 2, 15, 17, 100, SIZE / PAGE - 2};
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	void *held;

	skip_unless(NEED_LOCK | NEED_EXACT);
	for (size_t i = 0; i < 2 * COUNT(pages); i++) {
		file = i % 2 == 0 ? sampled_file() : new_file("f", SIZE);
		held = hold(file->fil_fd, SIZE);
		wire_wide(&wr);
		start(&xf, "nodiskio", &wr, file);
		fake.flying = pages[i / 2] * PAGE;
		/* samples may miss the page; then the copy ends there, and a disk thread sends */
		assert_int_equal(step_with_hole(&xf, NOWHERE),
		    i % 2 != 0 || fake.flying < SHARE ? PW_SEND_PENDING
						      : PW_SEND_AGAIN);
		assert_true(xf.xf_send.snd_sent <= (uint64_t)fake.flying);
		fake.flying = NOWHERE;
		settle(fx->fx_loop);
		assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
		let_go(held, SIZE);
		end(&xf, &wr, file);
	}
}

/* It is not taken for all missing. */
TEST(the_resident_part_of_a_chunk_is_sent)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	fake.hole = NOWHERE;
	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = new_file("f", SIZE);
	assert_true(evict(file->fil_fd, SIZE));
	read_in(file->fil_fd, 0, SHARE);
	wire_wide(&wr);
	start(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_AGAIN);
	assert_int_equal(xf.xf_send.snd_sent, SHARE);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	settle(fx->fx_loop);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	end(&xf, &wr, file);
}

/* Past the smaller share, that is: the transmission does not wait for it. */
TEST(a_missing_page_reduces_the_chunk)
{
	static const off_t holes[] = {SHARE, 2 * SHARE, SIZE - PAGE};
	struct pw_loop_stats ls;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	for (size_t i = 0; i < COUNT(holes); i++) {
		file = sampled_file();
		wire_wide(&wr);
		start(&xf, "nodiskio", &wr, file);
		send_priv(&xf.xf_send)->ss_asked = SIZE;
		assert_int_equal(step_with_hole(&xf, holes[i]), PW_SEND_AGAIN);
		assert_int_equal(xf.xf_send.snd_sent, SHARE);
		/* Each page up to the refusal, and those before it only once; two pages by a read. */
		assert_int_equal(fake.questions, holes[i] / PAGE / 2 + 1);
		end(&xf, &wr, file);
	}
	pw_loop_stats(fx->fx_loop, &ls);
	assert_int_equal(ls.ls_evicted, 0);
}

/* Its read may have been started by the question. */
TEST(a_missing_chunk_is_not_checked_again_at_once)
{
	static const off_t holes[] = {0, SHARE / 2};
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	for (size_t i = 0; i < COUNT(holes); i++) {
		file = sampled_file();
		wire_wide(&wr);
		start(&xf, "nodiskio", &wr, file);
		assert_int_equal(
		    step_with_hole(&xf, holes[i]), PW_SEND_PENDING);
		assert_int_equal(fake.questions, holes[i] / PAGE / 2 + 1);
		assert_int_equal(xf.xf_send.snd_sent, 0);
		fake.hole = NOWHERE;
		settle(fx->fx_loop);
		assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
		end(&xf, &wr, file);
	}
}

/* Returns how often the loop calls sendfile(2) for the file. */
static unsigned
sendfiles_for(struct pw_file *file)
{
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	loop_thread = pthread_self();
	sent_by_loop = 0;
	fake.hole = NOWHERE;
	wire_wide(&wr);
	start(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	wire_has_file(&wr, 0, SIZE);
	return sent_by_loop;
}

/* Others may be evicted before sendfile(2) reaches them, or were never read: cachestat counts pages in flight. */
TEST(only_pages_that_stay_are_sent_by_sendfile)
{
	SCOPED_FILE *file;

	skip_unless(NEED_LOCK | NEED_EXACT);
	file = new_file("f", SIZE);
	quiet = true;
	assert_true(sendfiles_for(file) > 0);
	quiet = false;
	used_stay = RECLAIM_USED;
	assert_int_equal(sendfiles_for(file), 0);
	/* used again and again, each time soon: they need no check */
	while (sendfiles_for(file) == 0)
		;
	do
		fake.questions = 0;
	while (sendfiles_for(file) == 0 || fake.questions > 0);
	usleep(VERIFIED_AGAIN);
	assert_int_equal(sendfiles_for(file), 0);
	/* the kernel reclaims fast */
	used_stay = 0;
	assert_int_equal(sendfiles_for(file), 0);
	assert_int_equal(sendfiles_for(file), 0);
	assert_int_equal(sendfiles_for(file), 0);
}

/* The loop would wait for it: what is gone once may be gone again. */
TEST(a_repeatedly_evicted_chunk_is_sent_by_the_pool)
{
	static const char *const asking[] = {"nodiskio", "uring", "splice"};
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	const char *why;

	leave_no_room_for_pins();
	for (size_t i = 0; i < COUNT(asking); i++) {
		if (pw_send_probe(pw_send_path(asking[i]), &why) != 0)
			continue;
		file = sampled_file();
		wire_wide(&wr);
		start(&xf, asking[i], &wr, file);
		xf.xf_send.snd_mem = "head";
		xf.xf_send.snd_mem_len = 4;
		sent_by_loop = 0;
		fake.hole = 0;
		while (step_with_hole(&xf, 0) != PW_SEND_DONE) {
			if (xf.xf_send.snd_pending) {
				pw_loop_tick(fx->fx_loop, clock_now());
				settle(fx->fx_loop);
			}
			wire_read(&wr);
			assert_int_equal(xf.xf_send.snd_error, 0);
		}
		assert_int_equal(sent_by_loop, 0);
		assert_int_equal(xf.xf_send.snd_sent, SIZE + 4);
		end(&xf, &wr, file);
	}
}

/* Starts a transmission.  Returns true if the kernel does not read the file ahead by itself. */
static bool
started_without_read_ahead(const char *path, struct pw_file *file)
{
	struct wire wr = wide_wire();
	struct xfer xf;

	xfer_init(&xf, path, &wr, file);
	xf.xf_send.snd_len = SIZE;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	return file_priv(file)->fp_random;
}

/* What a path that waits for the disk, or cannot ask, sends would else be read page by page. */
TEST(kernel_read_ahead_is_off_only_for_prefetching_paths)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);

	file_priv(file)->fp_ask = OS_ASK_NOWAIT;
	assert_true(started_without_read_ahead("nodiskio", file));
	assert_false(started_without_read_ahead("blocking", file));
	file_priv(file)->fp_ask = OS_ASK_FETCH;
	assert_false(started_without_read_ahead("nodiskio", file));
}

int
setup_all(void **state)
{
	(void)state;
	stay_on_one_cpu();
	loop_thread = pthread_self();
	return 0;
}
