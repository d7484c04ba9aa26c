/*
 * The rules of lib/send/account.h: by a table, and by a fake system call that plays
 * random scripts.
 */

#include "test.h"

#include "lib/send/account.h"

#define SEED	 20261121u
#define SCRIPTS	 100000u
#define MEM_MAX	 200
#define FILE_MAX 300

struct outcome_case {
	size_t oc_mem;
	off_t oc_len;
	int oc_error;
	uint64_t oc_sent;
	enum account_next oc_next;
	int oc_failed;	  /* snd_error */
	uint64_t oc_gone; /* bytes by which it advances */
};

static const struct outcome_case outcomes[] = {
    /* all of it, some of it */
    {10, 0, 0, 10, ACCOUNT_DONE, 0, 10},
    {0, 10, 0, 10, ACCOUNT_DONE, 0, 10},
    {10, 20, 0, 30, ACCOUNT_DONE, 0, 30},
    {10, 0, 0, 9, ACCOUNT_CALL, 0, 9},
    {0, 10, 0, 1, ACCOUNT_CALL, 0, 1},
    {10, 20, 0, 10, ACCOUNT_CALL, 0, 10},
    {10, 20, 0, 11, ACCOUNT_CALL, 0, 11},
    {10, 20, 0, 29, ACCOUNT_CALL, 0, 29},
    /* an error and no progress */
    {10, 20, -EAGAIN, 0, ACCOUNT_FULL, 0, 0},
    {0, 20, -EWOULDBLOCK, 0, ACCOUNT_FULL, 0, 0},
    {10, 20, -EINTR, 0, ACCOUNT_CALL, 0, 0},
    {0, 20, -EINTR, 0, ACCOUNT_CALL, 0, 0},
    {10, 20, -EBUSY, 0, ACCOUNT_BUSY, 0, 0},
    {10, 20, -EPIPE, 0, ACCOUNT_FAILED, -EPIPE, 0},
    {0, 20, -EIO, 0, ACCOUNT_FAILED, -EIO, 0},
    /* an error together with progress: the bytes are gone */
    {10, 20, -EAGAIN, 5, ACCOUNT_FULL, 0, 5},
    {10, 20, -EAGAIN, 15, ACCOUNT_FULL, 0, 15},
    {0, 20, -EAGAIN, 19, ACCOUNT_FULL, 0, 19},
    {10, 20, -EINTR, 10, ACCOUNT_CALL, 0, 10},
    {0, 20, -EINTR, 7, ACCOUNT_CALL, 0, 7},
    {0, 20, -EBUSY, 4, ACCOUNT_BUSY, 0, 4},
    {10, 20, -EBUSY, 12, ACCOUNT_BUSY, 0, 12},
    {10, 20, -ECONNRESET, 12, ACCOUNT_FAILED, -ECONNRESET, 12},
    /* everything together with an error: nothing is left to fail */
    {10, 20, -EAGAIN, 30, ACCOUNT_DONE, 0, 30},
    {0, 20, -EINTR, 20, ACCOUNT_DONE, 0, 20},
    {0, 20, -EBUSY, 20, ACCOUNT_DONE, 0, 20},
    {10, 0, -EPIPE, 10, ACCOUNT_DONE, 0, 10},
    /* the end of the file before the end of the range */
    {0, 20, 0, 0, ACCOUNT_FAILED, -ESTALE, 0},
    {10, 20, 0, 0, ACCOUNT_FAILED, -ESTALE, 0},
    /* more than there was */
    {0, 20, 0, 21, ACCOUNT_FAILED, -EOVERFLOW, 0},
    {10, 20, 0, 31, ACCOUNT_FAILED, -EOVERFLOW, 0},
    {10, 20, -EAGAIN, 31, ACCOUNT_FAILED, -EOVERFLOW, 0},
    {10, 0, 0, UINT64_MAX, ACCOUNT_FAILED, -EOVERFLOW, 0},
    /* nothing was to be sent */
    {0, 0, 0, 0, ACCOUNT_DONE, 0, 0},
    {0, 0, 0, 1, ACCOUNT_FAILED, -EOVERFLOW, 0},
    /* sizes that 32 bits do not hold */
    {0, (off_t)5 << 32, 0, (uint64_t)3 << 32, ACCOUNT_CALL, 0,
	(uint64_t)3 << 32},
    {1, (off_t)5 << 32, -EAGAIN, ((uint64_t)5 << 32) + 1, ACCOUNT_DONE, 0,
	((uint64_t)5 << 32) + 1},
};

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool
outcome_holds(const struct outcome_case *oc)
{
	static const char memory[16];
	const char *mem = oc->oc_mem > 0 ? memory : NULL;
	const off_t off = (off_t)7 << 33;
	uint64_t from_mem = least(oc->oc_gone, oc->oc_mem);
	uint64_t from_file = oc->oc_gone - from_mem;
	struct pw_send s = {
	    .snd_mem = mem,
	    .snd_mem_len = oc->oc_mem,
	    .snd_off = off,
	    .snd_len = oc->oc_len,
	    .snd_sent = 1000,
	};

	return account_sent(&s, oc->oc_error, oc->oc_sent) == oc->oc_next &&
	       s.snd_error == oc->oc_failed &&
	       s.snd_sent == 1000 + oc->oc_gone &&
	       s.snd_mem_len == oc->oc_mem - from_mem &&
	       s.snd_mem == (from_mem > 0 ? mem + from_mem : mem) &&
	       s.snd_off == off + (off_t)from_file &&
	       s.snd_len == oc->oc_len - (off_t)from_file;
}

TEST(every_outcome_advances_by_what_the_kernel_took)
{
	for (size_t i = 0; i < COUNT(outcomes); i++)
		if (!outcome_holds(&outcomes[i]))
			fail_msg("outcome %zu: mem %zu, file %lld, error %d, "
				 "sent %llu",
			    i, outcomes[i].oc_mem,
			    (long long)outcomes[i].oc_len, outcomes[i].oc_error,
			    (unsigned long long)outcomes[i].oc_sent);
}

/* A kernel that takes what it likes and says what it likes about it. */
struct kernel {
	unsigned k_random;
	char k_wire[2 * (MEM_MAX + FILE_MAX)];
	size_t k_len;
	bool k_misled; /* it was offered what is not there */
};

static unsigned
roll(struct kernel *k, unsigned n)
{
	k->k_random = k->k_random * 1664525u + 1013904223u;
	return (k->k_random >> 8) % n;
}

static char
file_byte(off_t off)
{
	return (char)(off % 251);
}

static void
take(struct kernel *k, const struct pw_send *s, uint64_t n)
{
	uint64_t i, mem = least(n, s->snd_mem_len);

	if (k->k_len + n > sizeof(k->k_wire)) {
		k->k_misled = true;
		return;
	}
	memcpy(k->k_wire + k->k_len, s->snd_mem, mem);
	for (i = mem; i < n; i++)
		k->k_wire[k->k_len + i] =
		    file_byte(s->snd_off + (off_t)(i - mem));
	k->k_len += n;
}

/* Memory alone or with the file behind it, or a piece of the file. */
static int
fake_call(struct kernel *k, const struct pw_send *s, uint64_t *sent)
{
	static const int errors[] = {0, 0, -EAGAIN, -EINTR, -EBUSY};
	uint64_t offered = s->snd_mem_len;
	int error = errors[roll(k, COUNT(errors))];

	if (offered == 0 || roll(k, 2) == 0)
		offered += (uint64_t)s->snd_len;
	*sent = roll(k, 3) == 0 ? offered : roll(k, (unsigned)offered + 1);
	if (error == 0 && *sent == 0)
		*sent = 1;
	take(k, s, *sent);
	return error;
}

static enum account_next
expected_next(int error, bool left)
{
	if (!left)
		return ACCOUNT_DONE;
	if (error == -EAGAIN)
		return ACCOUNT_FULL;
	return error == -EBUSY ? ACCOUNT_BUSY : ACCOUNT_CALL;
}

/* False: a byte is missing, doubled or out of place. */
static bool
play(unsigned seed)
{
	static char mem[MEM_MAX];
	struct kernel k = {.k_random = seed};
	size_t mem_len = roll(&k, MEM_MAX + 1), i, total;
	off_t off = ((off_t)roll(&k, 1 << 20) << 20) + roll(&k, 4096);
	off_t len = roll(&k, FILE_MAX) + (mem_len == 0);
	struct pw_send s = {.snd_mem = mem,
	    .snd_mem_len = mem_len,
	    .snd_off = off,
	    .snd_len = len};
	enum account_next next;
	uint64_t sent;
	int error;

	for (i = 0; i < mem_len; i++)
		mem[i] = (char)(128 + i % 127);
	total = mem_len + (size_t)len;
	do {
		error = fake_call(&k, &s, &sent);
		next = account_sent(&s, error, sent);
		if (next != expected_next(error, k.k_len < total))
			return false;
	} while (next != ACCOUNT_DONE && !k.k_misled);
	if (k.k_misled || k.k_len != total || s.snd_sent != total ||
	    memcmp(k.k_wire, mem, mem_len) != 0)
		return false;
	for (i = 0; i < (size_t)len; i++)
		if (k.k_wire[mem_len + i] != file_byte(off + (off_t)i))
			return false;
	return s.snd_mem_len == 0 && s.snd_len == 0 && s.snd_off == off + len;
}

TEST(every_byte_is_sent_once_and_in_order)
{
	for (unsigned i = 0; i < SCRIPTS; i++)
		if (!play(SEED + i))
			fail_msg("the script with seed %u", SEED + i);
}
