/*
 * fake_socket: a socket that takes what a test lets it take, behind the functions of lib/os/os.h,
 * which are replaced by __wrap_* of the test (see Makefile).
 *
 * Touched by one thread at a time: the loop's, or the pool's while the loop waits for it;
 * with no lock, so that ThreadSanitizer sees who else does.
 */
#ifndef TESTS_FAKE_SOCKET_H
#define TESTS_FAKE_SOCKET_H

#define ALL  SIZE_MAX
#define SEED 20261122u

static inline uint32_t
below(uint32_t n)
{
	static _Thread_local uint32_t x = SEED; /* disk threads draw, too */

	x ^= x << 13; /* xorshift32 */
	x ^= x >> 17;
	x ^= x << 5;
	return n == 0 ? 0 : x % n;
}

static struct {
	int fk_sock;
	char *fk_data; /* what it took */
	size_t fk_len, fk_total;
	size_t fk_room;	  /* it takes so much until it is full */
	size_t fk_most;	  /* a call takes no more */
	bool fk_more;	  /* another transmission follows */
	bool fk_both;	  /* FreeBSD: bytes and an error from one call */
	unsigned fk_odds; /* 0, or one call of so many is interrupted */
	unsigned fk_cold; /* 0, or one question of so many is answered by no */
	size_t fk_end;	  /* it fails here ... */
	int fk_error;	  /* ... with this */
	bool fk_refused;  /* it was full, and has had no room since */
	bool fk_failed;
	unsigned fk_calls;
	int fk_refuses; /* errno of sendfile(2) for every file, or 0 ... */
	unsigned fk_refusals; /* ... and how often it was said */
	const char *fk_wrong; /* a pool's thread cannot fail a test */
} fake;

/* It takes all. */
static inline void
fake_reset(size_t total)
{
	fake.fk_len = fake.fk_calls = 0;
	fake.fk_refuses = 0;
	fake.fk_refusals = 0;
	fake.fk_total = total;
	fake.fk_room = fake.fk_most = fake.fk_end = ALL;
	fake.fk_odds = fake.fk_cold = 0;
	fake.fk_more = fake.fk_both = fake.fk_refused = fake.fk_failed = false;
}

static inline size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline bool
is_interrupted(void)
{
	return fake.fk_odds != 0 && below(fake.fk_odds) == 0;
}

/* What comes of a call that offers so much: bytes, and 0 or -errno. */
static inline int
take(size_t offered, size_t *taken)
{
	size_t n = least(least(offered, fake.fk_most),
	    least(fake.fk_room, fake.fk_end - fake.fk_len));
	bool full = n == fake.fk_room, fails = n == fake.fk_end - fake.fk_len;

	*taken = 0;
	fake.fk_calls++;
	if (offered > fake.fk_total - fake.fk_len)
		fake.fk_wrong = "more than was promised";
	if (offered == 0)
		fake.fk_wrong = "a call for nothing";
	if (fake.fk_wrong != NULL)
		return -EINVAL;
	if (is_interrupted())
		return -EINTR;
	*taken = n;
	if (n == offered || (n > 0 && !fake.fk_both) || (!full && !fails))
		return 0;
	fake.fk_refused = full;
	fake.fk_failed = !full;
	return full ? -EAGAIN : -fake.fk_error;
}

static inline void
took(size_t n)
{
	fake.fk_len += n;
	fake.fk_room -= fake.fk_room == ALL ? 0 : n;
}

static inline void
take_memory(const void *mem, size_t n)
{
	if (n > 0)
		memcpy(fake.fk_data + fake.fk_len, mem, n);
	took(n);
}

static inline void
take_file(int fd, off_t off, size_t n)
{
	if (pread(fd, fake.fk_data + fake.fk_len, n, off) != (ssize_t)n)
		fake.fk_wrong = "past the end of the file";
	took(n);
}

static inline void
take_pipe(int pipe, size_t n)
{
	if (n > 0 && read(pipe, fake.fk_data + fake.fk_len, n) != (ssize_t)n)
		fake.fk_wrong = "not so much in the pipe";
	took(n);
}

/* What is held back for more that does not follow comes 200 ms later. */
static inline void
check_more(bool more, size_t offered)
{
	if (more != (fake.fk_more || fake.fk_len + offered < fake.fk_total))
		fake.fk_wrong = "MSG_MORE";
}

#endif
