/*
 * native_fixture: FreeBSD's sendfile(2) and the calls around it, played by a fake, for tests of
 * the path native.  The file that calls them, lib/os/freebsd_native.c, is built into each test.
 */
#ifndef TESTS_NATIVE_FIXTURE_H
#define TESTS_NATIVE_FIXTURE_H

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

static inline int
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
	atomic_uint fk_bmaps; /* calls */
	_Atomic int fk_bmap_error;
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

static inline int
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

static inline int
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

static inline uint64_t
indirect_bit(off_t block)
{
	off_t span = fake.fk_block / 8;

	return block < 12 || span == 0 ? 0
				       : (uint64_t)1 << ((block - 12) / span);
}

static inline void
take(const void *data, size_t len)
{
	assert_true(fake.fk_len + len <= fake.fk_room);
	memcpy(fake.fk_taken + fake.fk_len, data, len);
	fake.fk_len += len;
}

/* Takes len bytes of the file. */
static inline void
take_file(int fd, off_t off, size_t len)
{
	ssize_t n;

	assert_true(fake.fk_len + len <= fake.fk_room);
	n = pread(fd, fake.fk_taken + fake.fk_len, len, off);
	assert_int_equal(n, len);
	fake.fk_len += len;
}

static inline size_t
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
static inline void
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
static inline int
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

/*
 * Behind the end of a file it sends nothing at all, not even the headers.  The real one
 * ends at pages when it is busy, and cannot be busy before the headers have gone: scripts
 * may be harder than it is.
 */
static inline int
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

static inline void
begin(
    struct shot *sh, struct pw_file *file, size_t mem_len, off_t off, off_t len)
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
	xfer_init(&sh->sh_xfer, "native", &sh->sh_wire, file);
	s->snd_mem = sh->sh_expected;
	s->snd_mem_len = mem_len;
	s->snd_off = off;
	s->snd_len = len;
	s->snd_readahead = PW_READAHEAD_NONE;
	pw_send_start(s);
}

/* It knows no windows, only shares. */
static inline enum pw_send_status
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
static inline enum pw_send_status
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
static inline void
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

static inline void
script(const struct result *results, size_t n)
{
	assert_true(n <= COUNT(fake.fk_script));
	if (n > 0)
		memcpy(fake.fk_script, results, n * sizeof(*results));
	fake.fk_results = n;
}

#define SIZE 300000 /* bytes of a small file */

#define SEED 20261122u

static inline uint32_t
below(uint32_t n)
{
	static uint32_t x = SEED;

	x ^= x << 13; /* xorshift32 */
	x ^= x >> 17;
	x ^= x << 5;
	return x % n;
}

#endif
