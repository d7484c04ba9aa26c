/*
 * shot_fixture: a transmission of memory and a file on a send path into the fake socket
 * (fake_socket.h), for tests that check after each step what lib/pagewise.h promises.
 */
#ifndef TESTS_SHOT_FIXTURE_H
#define TESTS_SHOT_FIXTURE_H

#include "cold_fixture.h"
#include "fake_socket.h"
#include "xfer_fixture.h"

#include "lib/os/os.h"
#include "lib/util/clock.h"

#define MIB	   ((size_t)1 << 20)
#define LEN_MAX	   (4 * MIB)
#define OFFSET_END (600 * KIB)
#define MANY	   10000000 /* steps: it does not get anywhere */

/* Where a path does two things, by what can be known of the file. */
static const struct way {
	const char *wy_path;
	int wy_ask; /* enum os_ask; OS_ASK_UNKNOWN: as it is found */
} ways[] = {
    {"native", OS_ASK_NATIVE},
    {"native", OS_ASK_FETCH},
    {"nodiskio", OS_ASK_UNKNOWN},
    {"nodiskio", OS_ASK_FETCH},
    {"uring", OS_ASK_UNKNOWN},
    {"splice", OS_ASK_UNKNOWN},
    {"splice", OS_ASK_FETCH},
    {"mlock", OS_ASK_UNKNOWN},
    {"mlock", OS_ASK_FETCH},
    {"aio", OS_ASK_UNKNOWN},
    {"pool", OS_ASK_UNKNOWN},
    {"blocking", OS_ASK_UNKNOWN},
    {"copy", OS_ASK_UNKNOWN},
};

static char memory[LEN_MAX], content[OFFSET_END + LEN_MAX];

struct shot {
	struct xfer sh_xfer;
	const struct way *sh_way;
	struct pw_file *sh_file; /* NULL if only memory is sent */
	int sh_ask;		 /* how it was asked before */
	size_t sh_mem;
	off_t sh_off, sh_len;
	bool sh_random; /* room comes bit by bit, at any time */
	bool sh_waited; /* it was pending */
	unsigned sh_waits, sh_full;
};

static inline void
describe(const struct shot *sh)
{
	print_error(
	    "%s (asked by %d): %zu bytes and [%lld, +%lld), window %llu; "
	    "room %zu, at most %zu, both %d, odds %u, cold %u, end %zu; "
	    "taken %zu, counted %llu; %s\n",
	    sh->sh_way->wy_path, sh->sh_way->wy_ask, sh->sh_mem,
	    (long long)sh->sh_off, (long long)sh->sh_len,
	    (unsigned long long)sh->sh_xfer.xf_send.snd_readahead, fake.fk_room,
	    fake.fk_most, fake.fk_both, fake.fk_odds, fake.fk_cold, fake.fk_end,
	    fake.fk_len, (unsigned long long)sh->sh_xfer.xf_send.snd_sent,
	    fake.fk_wrong == NULL ? "no wrong call" : fake.fk_wrong);
}

#define RULE(sh, rule)                                 \
	do {                                           \
		if (!(rule)) {                         \
			describe(sh);                  \
			fail_msg("broken: %s", #rule); \
		}                                      \
	} while (0)

/* Prepares a transmission to a socket that accepts everything.  The caller may change it before pw_send_start. */
static inline void
begin(struct shot *sh, const struct way *wy, struct pw_file *file, size_t mem,
    off_t off, off_t len)
{
	struct wire wr = {.wr_sock = fake.fk_sock};
	struct pw_send *s = &sh->sh_xfer.xf_send;

	*sh = (struct shot){.sh_way = wy,
	    .sh_file = file,
	    .sh_mem = mem,
	    .sh_off = off,
	    .sh_len = file == NULL ? 0 : len};
	fake_reset(mem + (size_t)sh->sh_len);
	if (file != NULL) {
		sh->sh_ask = file_priv(file)->fp_ask;
		if (wy->wy_ask != OS_ASK_UNKNOWN)
			file_priv(file)->fp_ask = wy->wy_ask;
		residency_drops(file); /* each question is asked */
	}
	xfer_init(&sh->sh_xfer, wy->wy_path, &wr, file);
	s->snd_mem = mem == 0 ? NULL : memory;
	s->snd_mem_len = mem;
	s->snd_off = off;
	s->snd_len = len;
}

/* Reports room once, as an event loop does: only room that came after the socket refused bytes. */
static inline void
give_room(const struct shot *sh)
{
	fake.fk_room =
	    !sh->sh_random || below(4) == 0 ? ALL : 1 + below(1u << below(21));
	fake.fk_refused = false;
}

static inline void
wait_for_room(struct shot *sh)
{
	sh->sh_full++;
	give_room(sh);
}

static inline void
wait_for_it(struct shot *sh)
{
	const struct pw_send *s = &sh->sh_xfer.xf_send;
	unsigned done = sh->sh_xfer.xf_done;

	sh->sh_waits++;
	pw_loop_tick(s->snd_loop, clock_now()); /* ends a pause */
	settle(s->snd_loop);
	RULE(sh, sh->sh_xfer.xf_done == done + 1);
	RULE(sh, !s->snd_pending && __atomic_load_n(&send_priv(s)->ss_lent,
					__ATOMIC_SEQ_CST) == 0);
	if (sh->sh_random && below(2) == 0)
		give_room(sh);
}

/* Runs a step, and checks the rules of its result. */
static inline enum pw_send_status
step(struct shot *sh)
{
	struct pw_send *s = &sh->sh_xfer.xf_send;
	unsigned done = sh->sh_xfer.xf_done;
	uint64_t before = s->snd_sent;
	/* Less memory goes beside a chunk and the tail. */
	uint64_t most = s->snd_mem_len >= SEND_HEAD
			    ? SHARE_MOST
			    : share_most(s) + s->snd_mem_len;
	bool waited = sh->sh_waited;
	enum pw_send_status status = pw_send_step(s);

	sh->sh_waited = status == PW_SEND_PENDING;
	RULE(sh, sh->sh_xfer.xf_done == done);
	RULE(sh, s->snd_pending == (status == PW_SEND_PENDING));
	if (status == PW_SEND_PENDING)
		return status;
	RULE(sh, fake.fk_wrong == NULL);
	RULE(sh, s->snd_sent == fake.fk_len);
	RULE(sh, s->snd_sent - before <= most);
	RULE(sh, (status == PW_SEND_DONE) == (fake.fk_len == fake.fk_total));
	RULE(sh, status != PW_SEND_WANT_WRITE || fake.fk_refused);
	RULE(sh, status != PW_SEND_AGAIN || !fake.fk_refused);
	RULE(sh, status != PW_SEND_AGAIN || s->snd_sent > before || waited);
	RULE(sh, (status == PW_SEND_ERROR) == fake.fk_failed);
	return status;
}

/* Until it ends. */
static inline enum pw_send_status
drive(struct shot *sh)
{
	enum pw_send_status status;
	unsigned steps;

	pw_send_start(&sh->sh_xfer.xf_send);
	for (steps = 0; steps < MANY; steps++) {
		status = step(sh);
		if (status == PW_SEND_DONE || status == PW_SEND_ERROR)
			return status;
		if (status == PW_SEND_PENDING)
			wait_for_it(sh);
		if (status == PW_SEND_WANT_WRITE)
			wait_for_room(sh);
	}
	RULE(sh, steps < MANY);
	return PW_SEND_ERROR;
}

static inline void
check_bytes(const struct shot *sh)
{
	size_t mem = least(sh->sh_mem, fake.fk_len);

	RULE(sh, memcmp(fake.fk_data, memory, mem) == 0);
	RULE(sh, memcmp(fake.fk_data + mem, content + sh->sh_off,
		     fake.fk_len - mem) == 0);
}

/* Every byte once and in order; nothing is held on to. */
static inline void
end(struct shot *sh)
{
	struct pw_send *s = &sh->sh_xfer.xf_send;
	struct pw_pool_stats ps;

	check_bytes(sh);
	RULE(sh, sh->sh_xfer.xf_done == sh->sh_waits);
	pw_send_finish(s);
	RULE(sh, s->snd_file == NULL && send_priv(s)->ss_own == NULL);
	if (sh->sh_file == NULL)
		return;
	file_priv(sh->sh_file)->fp_ask = sh->sh_ask;
	settle_cold(fx->fx_loop); /* also for windows that were fetched ahead */
	RULE(sh, file_priv(sh->sh_file)->fp_refs <= 2); /* ours, the cache's */
	pw_pool_stats(fx->fx_pool, &ps);
	RULE(sh, ps.ps_unsent == 0);
}

static inline void
sends_all(struct shot *sh)
{
	RULE(sh, drive(sh) == PW_SEND_DONE);
	end(sh);
}

#endif
