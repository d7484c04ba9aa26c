/*
 * writer: the writer thread, which writes lines directly from the rings and reports the number of
 * lost lines.
 */

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "lib/os/os.h"

#include "server/log/log_priv.h"

#define LOG_NAP	  50   /* time between two checks of the rings, ms */
#define LOG_IDLE  1000 /* time without a record until the thread blocks, ms */
#define LOG_TELL  1000 /* minimum time between two reports, ms */
#define LOG_DRAIN 1000 /* time without progress until log_drain gives up, ms */

static uint64_t
log_writer_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static size_t
log_lane_backlog(const struct lane *ln)
{
	size_t len = 0;

	if (ln->ln_ring != NULL)
		ring_peek(ln->ln_ring, &len);
	return len;
}

static size_t
log_backlog(struct log *lg)
{
	size_t sum = 0;
	unsigned slot;

	for (slot = 0; slot < log_slots(lg); slot++)
		sum += log_lane_backlog(log_lane(lg, slot));
	return sum;
}

/*
 * Writes a ring's lines to the sink.  Increments lg_beat after the call, so that log_destroy
 * detects a disk that hangs.  Returns false if the file accepts no more now.
 */
static bool
log_put(struct log *lg, struct sink *sk, struct ring *rg)
{
	bool taken;

	atomic_store(&lg->lg_busy, (int)(sk - lg->lg_sinks));
	taken = sink_put(sk, rg);
	atomic_fetch_add(&lg->lg_beat, 1);
	return taken;
}

/*
 * Writes to a sink from all workers' rings in rotation, so that a worker that logs faster than a
 * slow pipe accepts does not starve the other workers.  Finishes an incomplete line first.
 */
static void
log_flush_sink(struct log *lg, struct sink *sk)
{
	unsigned i, slots = log_slots(lg);
	struct lane *ln;
	bool taken;

	for (i = 0; i < slots; i++) {
		ln = log_lane(lg, sk->sk_next);
		taken = true;
		if (ln->ln_sink == sk && log_lane_backlog(ln) > 0)
			taken = log_put(lg, sk, ln->ln_ring);
		if (sk->sk_begun > 0)
			return;
		sk->sk_next = (sk->sk_next + 1) % slots;
		if (!taken)
			return;
	}
}

static void
log_flush(struct log *lg)
{
	int kind;

	for (kind = 0; kind < NKINDS; kind++)
		log_flush_sink(lg, &lg->lg_sinks[kind]);
}

static void
log_tell(struct log *lg, int kind, uint64_t lost)
{
	static const char *const names[NKINDS] = {
	    "access log", "stdout", "stderr"};
	struct sink *sk = &lg->lg_sinks[kind];

	if (sk->sk_error == 0)
		log_error(log_own(lg),
		    "%s: %" PRIu64 " records lost: the log's file or reader is "
		    "too slow",
		    names[kind], lost);
	else
		log_error(log_own(lg), "%s: %" PRIu64 " records lost: %s: %s",
		    names[kind], lost, sk->sk_path, strerror(sk->sk_error));
	sk->sk_error = 0;
}

/* Logs the losses whose reports are due.  Returns false if a report must wait. */
static bool
log_report(struct log *lg, uint64_t now)
{
	bool told = true;
	uint64_t lost;
	int kind;

	for (kind = 0; kind < NKINDS; kind++) {
		lost = log_lost(lg, kind);
		if (lost == lg->lg_told[kind])
			continue;
		if (now < lg->lg_tell_at[kind] ||
		    lg->lg_sinks[KIND_ERROR].sk_full) {
			told = false;
			continue;
		}
		log_tell(lg, kind, lost - lg->lg_told[kind]);
		lg->lg_told[kind] = lost;
		lg->lg_tell_at[kind] = now + LOG_TELL;
	}
	return told;
}

/*
 * Waits for a wake-up or until a file accepts more.  Returns false after `timeout` ms; -1 means no
 * limit.
 */
static bool
log_wait(struct log *lg, int timeout)
{
	struct pollfd pfd[1 + NKINDS];
	nfds_t n = 0;
	int kind;

	pfd[n++] = (struct pollfd){.fd = lg->lg_wake[0], .events = POLLIN};
	for (kind = 0; kind < NKINDS; kind++)
		if (lg->lg_sinks[kind].sk_full)
			pfd[n++] = (struct pollfd){
			    .fd = lg->lg_sinks[kind].sk_fd, .events = POLLOUT};
	if (poll(pfd, n, timeout) == 0)
		return false;
	os_wake_clear(lg->lg_wake[0]);
	return true;
}

static void
log_set_idle(struct log *lg, bool idle)
{
	unsigned i;

	for (i = 0; i < lg->lg_nwriters; i++)
		atomic_exchange_explicit(
		    &lg->lg_writers[i].lw_idle, idle, memory_order_acq_rel);
}

static void
log_sleep(struct log *lg)
{
	log_set_idle(lg, true);
	/* LOG_NAP is longer than any processor delays a store: see lw_idle. */
	if (!log_wait(lg, LOG_NAP) && log_backlog(lg) == 0)
		log_wait(lg, -1);
	log_set_idle(lg, false);
}

/* Writes the remaining lines.  Drops them if all files accept nothing for LOG_DRAIN. */
static void
log_drain(struct log *lg)
{
	uint64_t now = log_writer_now_ms(), deadline = now + LOG_DRAIN;
	size_t left, before = SIZE_MAX;
	struct lane *ln;
	unsigned slot;

	for (;; now = log_writer_now_ms()) {
		log_flush(lg);
		left = log_backlog(lg);
		if (left < before)
			deadline = now + LOG_DRAIN;
		if (left == 0 || now >= deadline)
			break;
		before = left;
		log_wait(lg, LOG_NAP);
	}
	for (slot = 0; slot < log_slots(lg); slot++) {
		ln = log_lane(lg, slot);
		if (log_lane_backlog(ln) > 0)
			sink_drop(ln->ln_sink, ln->ln_ring);
	}
	log_report(lg, UINT64_MAX);
	log_flush_sink(lg, &lg->lg_sinks[KIND_ERROR]);
}

void
log_thread(void *arg)
{
	struct log *lg = arg;
	uint64_t now = log_writer_now_ms(), busy_at = now;
	bool told;

	while (!atomic_load(&lg->lg_want_stop)) {
		if (log_backlog(lg) > 0)
			busy_at = now;
		log_flush(lg);
		told = log_report(lg, now);
		if (told && now - busy_at >= LOG_IDLE)
			log_sleep(lg);
		else
			log_wait(lg, LOG_NAP);
		now = log_writer_now_ms();
	}
	log_drain(lg);
}
