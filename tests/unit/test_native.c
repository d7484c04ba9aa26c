/*
 * The path native, with FreeBSD's sendfile(2) played by a fake: by a table, and by
 * random scripts of results.  What the fake kernel took is what a client would get.
 * The file that calls it there, lib/os/freebsd_native.c, is built into this test.
 */
#include "xfer_fixture.h"

#include <sys/ioctl.h>
#include <sys/uio.h>

#include <stdatomic.h>

#include "lib/disk/cold.h"
#include "lib/disk/completion.h"
#include "lib/file/indirect.h"
#include "lib/file/verified.h"

/* sys/socket.h of FreeBSD, whatever system this is. */
#undef SF_NODISKIO
#undef SF_NOCACHE
#undef SF_FLAGS
#define SF_NODISKIO	 0x01
#define SF_NOCACHE	 0x10
#define SF_FLAGS(rh, fl) (((rh) << 16) | (fl))

/* sys/filio.h and sys/errno.h. */
#undef FIOBMAP2
#undef FIONWRITE
#undef FIONSPACE
#define FIOBMAP2  0xc0106663
#define FIONWRITE 0x40046677
#define FIONSPACE 0x40046676
#ifndef ENOTCAPABLE
#define ENOTCAPABLE 93
#endif

#define sf_hdtr	     fake_sf_hdtr
#define fiobmap2_arg fake_fiobmap2_arg
#define ioctl	     fake_ioctl
#define lseek	     fake_lseek
#define getsockopt   fake_getsockopt
#define getpeername  fake_getpeername

#define os_freebsd_sysctl fake_sysctl
#define sendfile	  fake_sendfile
#define getosreldate	  fake_getosreldate

struct sf_hdtr {
	struct iovec *headers;
	int hdr_cnt;
	struct iovec *trailers;
	int trl_cnt;
};

struct fiobmap2_arg {
	int64_t bn;
	int runp;
	int runb;
};

static int osreldate = 1400500;

static int
getosreldate(void)
{
	return osreldate;
}

#define ALL ((size_t)-1)

/* The next results; when they are used up, everything is taken. */
struct result {
	int rs_error; /* errno, or 0: what there is, at most rs_most bytes */
	size_t rs_most;
};

static struct {
	struct result fk_script[64];
	size_t fk_results, fk_next;
	int fk_sock;
	char *fk_taken;
	size_t fk_len, fk_room;
	unsigned fk_calls;
	int fk_flags; /* of the last call */
	size_t fk_nbytes;
	off_t fk_block; /* of the file system, or 0: no indirect blocks */
	/* indirect blocks in the kernel's buffers, by number; disk threads */
	_Atomic uint64_t fk_indirect;
	atomic_uint fk_bmaps, fk_seeks; /* calls of each kind */
	_Atomic int fk_bmap_error, fk_seek_error;
	int fk_unready;	   /* bytes in every socket that wait for the disk */
	unsigned fk_looks; /* times that these were asked for */
} fake;

static int vnode_pbufs = 512; /* as in sysctl(3), or -errno */

#include "lib/os/freebsd.h"

int
os_freebsd_sysctl(const char *name)
{
	assert_string_equal(name, "vm.vnode_pbufs");
	return vnode_pbufs;
}

#define SNDBUF	1000000
#define UNACKED 1234 /* bytes in every socket that are ready */

static int connection = 80; /* port of every peer, or 0: Unix sockets */

static int
getpeername(int sock, struct sockaddr *peer, socklen_t *len)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct stat st;

	assert_true(*len >= sizeof(in));
	if (fstat(sock, &st) == -1)
		return -1;
	in.sin_port = (in_port_t)connection;
	if (connection == 0)
		in.sin_family = AF_UNIX;
	memcpy(peer, &in, sizeof(in));
	*len = sizeof(in);
	return 0;
}

static int
getsockopt(int sock, int level, int option, void *value, socklen_t *len)
{
	struct stat st;

	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(option, SO_SNDBUF);
	assert_int_equal(*len, sizeof(int));
	if (fstat(sock, &st) == -1)
		return -1;
	fake.fk_looks++;
	*(int *)value = SNDBUF;
	return 0;
}

static uint64_t
indirect_bit(off_t block)
{
	off_t span = fake.fk_block / 8;

	return block < 12 || span == 0 ? 0
				       : (uint64_t)1 << ((block - 12) / span);
}

static void
take(const void *data, size_t len)
{
	assert_true(fake.fk_len + len <= fake.fk_room);
	memcpy(fake.fk_taken + fake.fk_len, data, len);
	fake.fk_len += len;
}

/* Of the file what there is: it may have shrunk. */
static void
take_file(int fd, off_t off, size_t len)
{
	ssize_t n;

	assert_true(fake.fk_len + len <= fake.fk_room);
	n = pread(fd, fake.fk_taken + fake.fk_len, len, off);
	assert_int_equal(n, len);
	fake.fk_len += len;
}

static size_t
there(int fd, off_t off, size_t nbytes)
{
	struct stat st;
	off_t left;

	assert_int_equal(fstat(fd, &st), 0);
	left = st.st_size > off ? st.st_size - off : 0;
	return nbytes < (size_t)left ? nbytes : (size_t)left;
}

/*
 * Else the real one would wait for the disk, and the loop with it.  Its indirect blocks are in the
 * buffers only if VOP_BMAP was called: a read of a page that is cached, as all are here, does not
 * call it.
 */
static void
assert_found(off_t off, size_t len)
{
	off_t block, last;

	if (fake.fk_block == 0)
		return;
	last = (off + (off_t)len - 1) / fake.fk_block;
	for (block = off / fake.fk_block; block <= last; block++)
		assert_int_equal(indirect_bit(block) & ~fake.fk_indirect, 0);
}

/* VOP_BMAP reads the indirect blocks that lead to a block. */
static int
ioctl(int fd, unsigned long request, void *arg)
{
	struct fiobmap2_arg *bmap = arg;

	assert_true(fd >= 0);
	if (request == FIONSPACE) {
		*(int *)arg = SNDBUF - UNACKED - fake.fk_unready;
		return 0;
	}
	if (request == FIONWRITE) {
		*(int *)arg = UNACKED;
		return 0;
	}
	assert_true(request == FIOBMAP2);
	fake.fk_bmaps++;
	errno = fake.fk_bmap_error;
	if (errno != 0)
		return -1;
	fake.fk_indirect |= indirect_bit(bmap->bn);
	return 0;
}

/* And so does the search for data. */
static off_t
lseek(int fd, off_t off, int whence)
{
	assert_true(fd >= 0);
	assert_int_equal(whence, SEEK_DATA);
	fake.fk_seeks++;
	errno = fake.fk_seek_error;
	if (errno != 0)
		return -1;
	fake.fk_indirect |= indirect_bit(off / fake.fk_block);
	return off;
}

/*
 * Behind the end of a file it sends nothing at all, not even the headers.  The real one
 * ends at pages when it is busy, and cannot be busy before the headers have gone: scripts
 * may be harder than it is.
 */
static int
sendfile(int fd, int s, off_t offset, size_t nbytes, struct sf_hdtr *hdtr,
    off_t *sbytes, int flags)
{
	struct result rs = {0, ALL};
	size_t head, file, most, before = fake.fk_len;

	assert_int_equal(s, fake.fk_sock);
	assert_true(nbytes > 0); /* 0: up to the end of the file */
	assert_true((flags & SF_NODISKIO) != 0);
	assert_int_equal(flags & 0xffff & ~(SF_NODISKIO | SF_NOCACHE), 0);
	if (hdtr != NULL) {
		assert_int_equal(hdtr->hdr_cnt, 1);
		assert_true(hdtr->headers[0].iov_len > 0);
		assert_null(hdtr->trailers);
	}
	assert_found(offset, nbytes);
	fake.fk_calls++;
	fake.fk_flags = flags;
	fake.fk_nbytes = nbytes;
	if (fake.fk_next < fake.fk_results)
		rs = fake.fk_script[fake.fk_next++];
	head = hdtr == NULL ? 0 : hdtr->headers[0].iov_len;
	file = there(fd, offset, nbytes);
	most = file == 0 ? 0 : rs.rs_most;
	if (head > most)
		head = most;
	if (file > most - head)
		file = most - head;
	if (head > 0)
		take(hdtr->headers[0].iov_base, head);
	if (file > 0)
		take_file(fd, offset, file);
	*sbytes = (off_t)(fake.fk_len - before);
	errno = rs.rs_error;
	return rs.rs_error == 0 ? 0 : -1;
}

#include "lib/os/freebsd_native.c"
#include "lib/util/clock.h"

/* A transmission of mem_len bytes of memory and a range, as FreeBSD would do it. */
struct shot {
	struct wire sh_wire;
	struct xfer sh_xfer;
	char *sh_expected;
	size_t sh_len;
};

static void
begin(struct shot *sh, struct fixture *fx, struct pw_file *file, size_t mem_len,
    off_t off, off_t len)
{
	struct pw_send *s = &sh->sh_xfer.xf_send;

	wire_wide(&sh->sh_wire);
	sh->sh_len = mem_len + (size_t)len;
	sh->sh_expected = malloc(sh->sh_len + 1);
	fake.fk_taken = malloc(sh->sh_len + 1);
	assert_true(sh->sh_expected != NULL && fake.fk_taken != NULL);
	memset(sh->sh_expected, 'm', mem_len);
	fill(sh->sh_expected + mem_len, off, (size_t)len);
	fake.fk_sock = sh->sh_wire.wr_sock;
	fake.fk_room = sh->sh_len;
	fake.fk_len = fake.fk_next = fake.fk_calls = 0;
	file_priv(file)->fp_ask = OS_ASK_NATIVE;
	xfer_init(&sh->sh_xfer, "native", fx, &sh->sh_wire, file);
	s->snd_mem = sh->sh_expected;
	s->snd_mem_len = mem_len;
	s->snd_off = off;
	s->snd_len = len;
	s->snd_readahead = PW_READAHEAD_NONE;
	pw_send_start(s);
}

/* It knows no windows, only shares. */
static enum pw_send_status
step(struct shot *sh)
{
	struct xfer *xf = &sh->sh_xfer;
	uint64_t sent = xf->xf_send.snd_sent;
	enum pw_send_status status = pw_send_step(&xf->xf_send);

	assert_in_range(xf->xf_send.snd_sent - sent, 0, SHARE_MOST);
	xf->xf_full += status == PW_SEND_WANT_WRITE;
	xf->xf_again += status == PW_SEND_AGAIN;
	xf->xf_pending += status == PW_SEND_PENDING;
	return status;
}

/* Steps until it ends; each pending one is waited for. */
static enum pw_send_status
run(struct shot *sh)
{
	enum pw_send_status status;
	unsigned steps;

	for (steps = 0; steps < 100000; steps++) {
		status = step(sh);
		if (status == PW_SEND_DONE || status == PW_SEND_ERROR)
			return status;
		if (status == PW_SEND_PENDING)
			settle(sh->sh_xfer.xf_send.snd_loop);
	}
	fail_msg("it goes on and on");
	return PW_SEND_ERROR;
}

/* Every byte once and in order, as many as were counted. */
static void
end(struct shot *sh)
{
	assert_int_equal(fake.fk_len, sh->sh_xfer.xf_send.snd_sent);
	assert_memory_equal(fake.fk_taken, sh->sh_expected, fake.fk_len);
	assert_int_equal(sh->sh_xfer.xf_done, sh->sh_xfer.xf_pending);
	pw_send_finish(&sh->sh_xfer.xf_send);
	wire_close(&sh->sh_wire);
	free(sh->sh_expected);
	free(fake.fk_taken);
}

static void
script(const struct result *results, size_t n)
{
	assert_true(n <= COUNT(fake.fk_script));
	if (n > 0)
		memcpy(fake.fk_script, results, n * sizeof(*results));
	fake.fk_results = n;
}

/* -------------------------------------------------------------------- table */

#define SIZE 300000

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

static void
each_result_has_its_consequence(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	const struct row *rw;
	struct shot sh;

	for (rw = rows; rw < rows + COUNT(rows); rw++) {
		print_message("%s\n", rw->rw_name);
		begin(&sh, fx, file, rw->rw_mem, rw->rw_off, rw->rw_len);
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
	pw_file_unref(&file);
}

/* ------------------------------------------------------------------- random */

#define SEED	20261122u
#define SCRIPTS 20000u

static const int passing[] = {0, EAGAIN, EAGAIN, EBUSY, EINTR, ENOBUFS};
static const int failing[] = {EIO, EPIPE, ECONNRESET, ENOTCONN};

static uint32_t
below(uint32_t n)
{
	static uint32_t x = SEED;

	x ^= x << 13; /* xorshift32 */
	x ^= x >> 17;
	x ^= x << 5;
	return x % n;
}

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

static void
each_byte_is_sent_once_and_in_order(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
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
		begin(&sh, fx, file, mem, off, len);
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
	pw_file_unref(&file);
}

/* -------------------------------------------------------------------- hints */

static void
hints_of_the_location_are_flags_of_the_call(void **state)
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
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)4 << 20);
	int page = (int)sysconf(_SC_PAGESIZE), pages;
	struct shot sh;
	size_t i;

	for (i = 0; i < COUNT(hints); i++) {
		begin(&sh, fx, file, 10, 0, (off_t)4 << 20);
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
	pw_file_unref(&file);
}

/* Others have their turn after each share. */
static void
a_call_is_for_a_share(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)4 << 20);
	struct shot sh;

	begin(&sh, fx, file, 10, 0, (off_t)4 << 20);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(fake.fk_nbytes <= SHARE_MOST);
	assert_true(fake.fk_calls >= (4 << 20) / SHARE_MOST);
	/* The end of the file goes by a call of its own, in the last step. */
	assert_int_equal(sh.sh_xfer.xf_again + 2, fake.fk_calls);
	end(&sh);
	pw_file_unref(&file);
}

/* ---------------------------------------------------------- indirect blocks */

#define BLOCK	 ((off_t)4096)
#define DIRECT	 (12 * BLOCK)
#define INDIRECT (512 * BLOCK) /* of the file, by one indirect block */
#define LARGE	 ((size_t)(DIRECT + 2 * INDIRECT + 5 * BLOCK))

static struct pw_file *
large_file(struct fixture *fx)
{
	struct pw_file *file = new_file(fx, "f", LARGE);

	if (file_priv(file)->fp_indirect == NULL) /* it may be the cache's */
		file_priv(file)->fp_indirect =
		    calloc(1, sizeof(*file_priv(file)->fp_indirect));
	assert_non_null(file_priv(file)->fp_indirect);
	*file_priv(file)->fp_indirect = (struct indirect){.in_block = BLOCK};
	file_priv(file)->fp_device->dv_fs.fs_block = BLOCK;
	fake.fk_block = BLOCK;
	fake.fk_indirect = 0;
	fake.fk_bmaps = fake.fk_seeks = 0;
	fake.fk_bmap_error = fake.fk_seek_error = 0;
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
static void
indirect_blocks_are_read_by_the_pool_before_what_they_lead_to(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	struct pw_device *dv = file_priv(file)->fp_device;
	unsigned long before = device_ended(dv);
	struct shot sh;

	begin(&sh, fx, file, 10, 0, (off_t)LARGE);
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
	begin(&sh, fx, file, 10, 0, (off_t)LARGE);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(device_ended(dv) - before, 3);
	end(&sh);
	large_done(&file);
}

/* A client that is faster than the disk waits for it, and the loop does not. */
static void
what_is_not_read_in_time_is_waited_for(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	struct shot sh;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	begin(&sh, fx, file, 0, 0, (off_t)LARGE);
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_int_equal(fake.fk_len, DIRECT);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(sh.sh_xfer.xf_send.snd_sent, LARGE);
	end(&sh);
	large_done(&file);
}

static void
a_range_reads_what_leads_to_it_and_no_more(void **state)
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
	struct fixture *fx = *state;
	struct pw_file *file;
	unsigned long before;
	struct shot sh;
	size_t i;

	for (i = 0; i < COUNT(ranges); i++) {
		file = large_file(fx);
		before = device_ended(file_priv(file)->fp_device);
		begin(&sh, fx, file, 0, ranges[i].off, ranges[i].len);
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
static void
an_indirect_block_that_cannot_be_read_is_an_error(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	struct shot sh;

	fake.fk_bmap_error = EIO;
	begin(&sh, fx, file, 10, DIRECT, BLOCK);
	assert_int_equal(run(&sh), PW_SEND_ERROR);
	assert_int_equal(sh.sh_xfer.xf_send.snd_error, -EIO);
	assert_int_equal(fake.fk_calls, 0);
	assert_int_equal(fake.fk_seeks, 0);
	end(&sh);
	large_done(&file);
}

/* The kernel has evicted it since, while the pages that it leads to are cached. */
static void
an_indirect_block_is_read_again_behind_cached_pages(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	struct shot sh;

	begin(&sh, fx, file, 10, 0, (off_t)LARGE);
	run_slowly(&sh);
	assert_int_equal(fake.fk_bmaps, 3);
	end(&sh);
	fake.fk_indirect = 0;
	file_priv(file)->fp_indirect->in_since -= INDIRECT_HOLDS;
	begin(&sh, fx, file, 10, 0, (off_t)LARGE);
	run_slowly(&sh);
	assert_int_equal(fake.fk_bmaps, 6);
	assert_int_equal(fake.fk_seeks, 0);
	end(&sh);
	large_done(&file);
}

/* Such as nullfs, whose VOP_BMAP fails. */
static void
data_is_sought_where_there_is_no_bmap(void **state)
{
	static const int errors[] = {EOPNOTSUPP, ENOTTY, ENOTCAPABLE};
	struct fixture *fx = *state;
	struct pw_file *file;
	struct shot sh;
	size_t i;

	for (i = 0; i < COUNT(errors); i++) {
		file = large_file(fx);
		fake.fk_bmap_error = errors[i];
		begin(&sh, fx, file, 10, 0, (off_t)LARGE);
		run_slowly(&sh);
		assert_int_equal(fake.fk_seeks, 3);
		end(&sh);
		large_done(&file);
	}
}

/* A hole up to the end has no data, and its indirect blocks were read all the same. */
static void
a_hole_has_no_indirect_blocks_to_wait_for(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);

	fake.fk_bmap_error = EOPNOTSUPP;
	fake.fk_seek_error = ENXIO;
	assert_int_equal(os_native_map(file->fil_fd, DIRECT, BLOCK), 0);
	large_done(&file);
}

/* The pool sends what has neither, and the loop none of it. */
static void
a_file_without_bmap_is_sent_by_the_pool(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	struct shot sh;

	fake.fk_bmap_error = EOPNOTSUPP;
	fake.fk_seek_error = EINVAL;
	begin(&sh, fx, file, 10, DIRECT, 2 * BLOCK);
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

/* A read of the data that is queued already does not bring in the indirect block. */
static void
a_read_of_data_does_not_stand_for_the_indirect_block(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	struct pw_waiter w = {.wt_done = count_done};
	struct shot sh;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    pool_fetch(file, 0, LARGE, FETCH_PAGES, ADMIT_NEW, &w), 0);
	begin(&sh, fx, file, 0, DIRECT, BLOCK);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_true(pool_mapping(file, DIRECT));
	assert_false(pool_mapping(file, DIRECT + INDIRECT));
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(fake.fk_bmaps, 1);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	end(&sh);
	large_done(&file);
}

/* The transmission that asked for it early is gone when it comes. */
static void
an_early_read_outlives_its_transmission(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = large_file(fx);
	const struct indirect *in = file_priv(file)->fp_indirect;
	struct shot sh;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	begin(&sh, fx, file, 0, 0, (off_t)LARGE);
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	pw_send_cancel(&sh.sh_xfer.xf_send);
	latch_open(&la);
	settle(fx->fx_loop);
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
	begin(&sh, fx, file, 0, 0, (off_t)LARGE);
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	end(&sh);
	large_done(&file);
	latch_open(&la);
	settle(fx->fx_loop);
}

/* --------------------------------------------------------- reads in flight */

static unsigned
counted(const struct fixture *fx)
{
	return pool_cold(fx->fx_pool)->co_calls;
}

/* Sends a file of two calls; of the bytes that it has sent, some are not ready. */
static void
send_cold(struct shot *sh, struct fixture *fx, struct pw_file *file)
{
	begin(sh, fx, file, 10, 0, SIZE);
	script(NULL, 0);
	fake.fk_unready = 4096;
	assert_int_equal(run(sh), PW_SEND_DONE);
	assert_int_equal(sh->sh_xfer.xf_pending, 0);
	assert_int_equal(fake.fk_calls, 2);
}

static void
the_limit_is_half_of_the_buffers(void **state)
{
	struct fixture *fx = *state;

	assert_int_equal(pool_cold(fx->fx_pool)->co_most, 256);
	assert_int_equal(counted(fx), 0);
	vnode_pbufs = -EPERM;
	assert_int_equal(os_native_reads(), 32);
	vnode_pbufs = 512;
}

static void
a_call_is_counted_until_its_socket_waits_for_no_disk(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	unsigned long before = device_ended(file_priv(file)->fp_device);
	struct shot sh;

	send_cold(&sh, fx, file);
	assert_int_equal(counted(fx), 2);
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(fx), 2);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(fx), 0);
	/* No disk thread was needed for that. */
	assert_int_equal(device_ended(file_priv(file)->fp_device), before);
	end(&sh);
	pw_file_unref(&file);
}

/* The kernel goes on reading for it, and a read of the same page waits for that. */
static void
a_call_of_a_closed_socket_is_counted_until_a_disk_thread_has_read(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;
	struct latch la;

	send_cold(&sh, fx, file);
	end(&sh);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(fx), 2);
	pw_file_unref(&file);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(counted(fx), 0);
}

static void
nothing_is_counted_if_nothing_is_sent(void **state)
{
	static const struct result results[] = {
	    {EAGAIN, 0}, {EAGAIN, 10}, {EBUSY, 0}, {ENOBUFS, 0}, {EIO, 0}};
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;
	size_t i;

	for (i = 0; i < COUNT(results); i++) {
		begin(&sh, fx, file, 10, 0, SIZE);
		script(&results[i], 1);
		fake.fk_unready = 4096;
		step(&sh);
		assert_int_equal(counted(fx), 0);
		settle(fx->fx_loop);
		end(&sh);
	}
	pw_file_unref(&file);
}

/* A popular file: the second call knows from the first that its pages are there. */
static void
what_was_sent_a_moment_ago_is_not_counted(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;

	fake.fk_unready = 0;
	begin(&sh, fx, file, 10, 0, SIZE);
	script(NULL, 0);
	fake.fk_looks = 0;
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(fake.fk_looks, 2);
	end(&sh);
	begin(&sh, fx, file, 10, 0, SIZE);
	pool_cold(fx->fx_pool)->co_most = 0;
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(sh.sh_xfer.xf_pending, 0);
	assert_int_equal(fake.fk_looks, 2);
	end(&sh);
	pw_file_unref(&file);
}

/* The kernel frees the pages that are dropped. */
static void
what_was_dropped_is_counted_again(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;
	int i;

	fake.fk_unready = 0;
	fake.fk_looks = 0;
	for (i = 0; i < 2; i++) {
		begin(&sh, fx, file, 10, 0, SIZE);
		sh.sh_xfer.xf_send.snd_cache = PW_CACHE_DROP;
		pw_send_finish(&sh.sh_xfer.xf_send);
		sh.sh_xfer.xf_send.snd_file = file;
		pw_send_start(&sh.sh_xfer.xf_send);
		script(NULL, 0);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		end(&sh);
	}
	assert_int_equal(fake.fk_looks, 4);
	pw_file_unref(&file);
}

/* All calls of the process count, and so none of a slow disk hold up the loop. */
static void
at_the_limit_a_disk_thread_reads_first(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)4 << 20);
	struct cold *co = pool_cold(fx->fx_pool);
	struct shot sh;
	struct latch la;

	co->co_most = 3;
	co->co_calls = 2; /* of another loop */
	begin(&sh, fx, file, 10, 0, (off_t)4 << 20);
	script(NULL, 0);
	fake.fk_unready = 4096;
	assert_int_equal(step(&sh), PW_SEND_AGAIN);
	assert_int_equal(counted(fx), 3);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_int_equal(fake.fk_calls, 1);
	latch_open(&la);
	settle(fx->fx_loop);
	/* Bytes that a disk thread has read are sent, although the limit is still reached. */
	assert_int_equal(step(&sh), PW_SEND_PENDING);
	assert_int_equal(fake.fk_calls, 2);
	settle(fx->fx_loop);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(sh.sh_xfer.xf_pending >= 7);
	assert_int_equal(counted(fx), 3);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(fx), 2);
	co->co_calls = 0;
	end(&sh);
	pw_file_unref(&file);
}

/* Without waiting for a tick. */
static void
at_the_limit_calls_that_have_ended_are_found(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE),
		       *other = new_file(fx, "g", SIZE);
	struct shot sh, next;

	pool_cold(fx->fx_pool)->co_most = 2;
	send_cold(&sh, fx, file);
	free(fake.fk_taken);
	fake.fk_taken = NULL;
	fake.fk_unready = 0;
	begin(&next, fx, other, 10, 0, SIZE);
	assert_int_equal(run(&next), PW_SEND_DONE);
	assert_int_equal(next.sh_xfer.xf_pending, 0);
	assert_int_equal(counted(fx), 0);
	end(&next);
	pw_send_finish(&sh.sh_xfer.xf_send);
	wire_close(&sh.sh_wire);
	free(sh.sh_expected);
	pw_file_unref(&file);
	pw_file_unref(&other);
}

/* One that is found by a tick to be resident is remembered for longer than a second. */
static void
above_the_limit_bytes_once_resident_are_sent(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE),
		       *other = new_file(fx, "g", SIZE);
	struct verified *vf = fx->fx_loop->lp_verified;
	struct cold *co = pool_cold(fx->fx_pool);
	uint32_t number = file_priv(file)->fp_number;
	uint64_t since = clock_now();
	off_t off = 0, size = SIZE;
	struct shot sh;

	send_cold(&sh, fx, file);
	verified_trim(vf, number, &off, &size, since);
	assert_true(off < size);
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	verified_trim(vf, number, &off, &size, since);
	assert_int_equal(off, size);
	end(&sh);
	/* As if a minute had passed. */
	verified_note(vf, number, 0, SIZE, SIZE, 1);
	co->co_most = 2;
	co->co_calls = 2;
	begin(&sh, fx, file, 10, 0, SIZE);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_int_equal(sh.sh_xfer.xf_pending, 0);
	end(&sh);
	begin(&sh, fx, other, 10, 0, SIZE);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(sh.sh_xfer.xf_pending > 0);
	end(&sh);
	verified_note(vf, number, 0, SIZE, SIZE, 1);
	co->co_calls = 3;
	begin(&sh, fx, file, 10, 0, SIZE);
	script(NULL, 0);
	assert_int_equal(run(&sh), PW_SEND_DONE);
	assert_true(sh.sh_xfer.xf_pending > 0);
	end(&sh);
	co->co_calls = 0;
	pw_file_unref(&file);
	pw_file_unref(&other);
}

/* A loop that ends gives its calls back, and the files with them. */
static void
a_loop_forgets_its_calls(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;

	send_cold(&sh, fx, file);
	end(&sh);
	pw_file_unref(&file);
	assert_int_equal(counted(fx), 2);
}

/* Byte by byte as without a limit: each chunk is read, and then sent. */
static void
without_any_buffer_everything_is_read_first(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	unsigned i;
	struct shot sh;
	size_t mem;
	off_t off, len;

	pool_cold(fx->fx_pool)->co_most = 0;
	for (i = 0; i < 500; i++) {
		/* As if the file were another one, of which nothing is known. */
		file_priv(file)->fp_number =
		    verified_number(fx->fx_loop->lp_verified);
		mem = below(3) == 0 ? 0 : below(2000);
		off = below(SIZE);
		len = 1 + below(SIZE - (uint32_t)off);
		begin(&sh, fx, file, mem, off, len);
		script((struct result[]){{EAGAIN, below((uint32_t)len)}}, 1);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_int_equal(fake.fk_len, sh.sh_len);
		assert_true(sh.sh_xfer.xf_pending > 0);
		end(&sh);
	}
	assert_int_equal(counted(fx), 0);
	pw_file_unref(&file);
}

/* The number of its descriptor stands for another connection, which waits for no disk. */
static void
a_call_does_not_end_with_another_connection(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;
	struct latch la;

	send_cold(&sh, fx, file);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	connection++;
	fake.fk_unready = 0;
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(counted(fx), 2);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(counted(fx), 0);
	end(&sh);
	pw_file_unref(&file);
}

/* Its bytes are in the queue of the peer, and so none of its own is unready. */
static void
a_call_on_a_unix_socket_ends_with_a_read(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;
	int i;

	connection = 0;
	fake.fk_looks = 0;
	send_cold(&sh, fx, file);
	assert_int_equal(counted(fx), 2);
	pw_loop_tick(fx->fx_loop, clock_now());
	settle(fx->fx_loop);
	assert_int_equal(counted(fx), 0);
	end(&sh);
	/* At the limit only the first transmission waits for a disk thread. */
	pool_cold(fx->fx_pool)->co_most = 0;
	for (i = 0; i < 2; i++) {
		begin(&sh, fx, file, 10, 0, SIZE);
		script(NULL, 0);
		assert_int_equal(run(&sh), PW_SEND_DONE);
		assert_int_equal(sh.sh_xfer.xf_pending > 0, i == 0);
		end(&sh);
	}
	assert_int_equal(fake.fk_looks, 0);
	connection = 80;
	pw_file_unref(&file);
}

static void
peers_differ(void **state)
{
	uint64_t one = os_peer(STDIN_FILENO);

	(void)state;
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
static void
other_files_are_sent_by_the_pool(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct shot sh;

	begin(&sh, fx, file, 10, 0, SIZE);
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
	pw_file_unref(&file);
}

static void
a_kernel_before_11_does_not_have_it(void **state)
{
	const char *why;

	(void)state;
	assert_int_equal(pw_send_probe(pw_send_path("native"), &why), 0);
	assert_ptr_equal(pw_send_default(), pw_send_path("native"));
	osreldate = 1003000;
	assert_int_equal(pw_send_probe(pw_send_path("native"), &why), -ENOSYS);
	assert_non_null(strstr(why, "FreeBSD 11"));
	assert_ptr_equal(pw_send_default(), pw_send_path("nodiskio"));
	osreldate = 1400500;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		each_result_has_its_consequence, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		each_byte_is_sent_once_and_in_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		hints_of_the_location_are_flags_of_the_call, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_call_is_for_a_share, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		indirect_blocks_are_read_by_the_pool_before_what_they_lead_to,
		setup_one_thread, teardown),
	    cmocka_unit_test_setup_teardown(
		what_is_not_read_in_time_is_waited_for, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_range_reads_what_leads_to_it_and_no_more, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		an_indirect_block_that_cannot_be_read_is_an_error, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		an_indirect_block_is_read_again_behind_cached_pages, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		data_is_sought_where_there_is_no_bmap, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_hole_has_no_indirect_blocks_to_wait_for, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_file_without_bmap_is_sent_by_the_pool, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_read_of_data_does_not_stand_for_the_indirect_block,
		setup_one_thread, teardown),
	    cmocka_unit_test_setup_teardown(
		an_early_read_outlives_its_transmission, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		the_limit_is_half_of_the_buffers, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_call_is_counted_until_its_socket_waits_for_no_disk, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_call_of_a_closed_socket_is_counted_until_a_disk_thread_has_read,
		setup_one_thread, teardown),
	    cmocka_unit_test_setup_teardown(
		nothing_is_counted_if_nothing_is_sent, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		what_was_sent_a_moment_ago_is_not_counted, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		what_was_dropped_is_counted_again, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		at_the_limit_a_disk_thread_reads_first, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		at_the_limit_calls_that_have_ended_are_found, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		above_the_limit_bytes_once_resident_are_sent, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_loop_forgets_its_calls, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		without_any_buffer_everything_is_read_first, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_call_does_not_end_with_another_connection, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_call_on_a_unix_socket_ends_with_a_read, setup, teardown),
	    cmocka_unit_test(peers_differ),
	    cmocka_unit_test_setup_teardown(
		other_files_are_sent_by_the_pool, setup, teardown),
	    cmocka_unit_test(a_kernel_before_11_does_not_have_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
