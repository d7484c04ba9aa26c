/*
 * log: formats lines into the rings.  Each worker has a ring for each kind of file, so that a
 * blocked file does not delay the lines of other files.  The writer thread writes lines directly
 * from the rings.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/log/log_priv.h"

static enum log_level most = LEVEL_NOTICE;

void
log_set_level(enum log_level level)
{
	most = level;
}

/* Wakes the writer thread.  If that fails, the writer's next line tries again. */
static void
log_wake(struct log_writer *w)
{
	if (!os_wake_signal(w->lw_log->lg_wake[1]))
		atomic_store(&w->lw_idle, true);
}

/*
 * ------------------------------------------------------ the worker's side
 */
struct log_writer *
log_writer(struct log *lg, unsigned i)
{
	return i + 1 < lg->lg_nwriters ? &lg->lg_writers[i] : NULL;
}

bool
log_access_on(const struct log_writer *w)
{
	return w->lw_lanes[KIND_ACCESS].ln_ring != NULL;
}

static char *
log_lane_reserve(struct lane *ln, size_t len)
{
	char *p;

	p = ring_reserve(ln->ln_ring, len);
	if (p == NULL)
		atomic_fetch_add_explicit(
		    &ln->ln_lost, 1, memory_order_relaxed);
	return p;
}

static void
log_lane_commit(struct log_writer *w, struct lane *ln, size_t len)
{
	bool above;

	ring_commit(ln->ln_ring, len);
	/* The processor may still delay the commit past the read of lw_idle, but not by 50 ms. */
	atomic_signal_fence(memory_order_seq_cst);
	above = ring_above(ln->ln_ring, ring_size(ln->ln_ring) / 2);
	if (atomic_load_explicit(&w->lw_idle, memory_order_relaxed) &&
	    atomic_exchange_explicit(&w->lw_idle, false, memory_order_acq_rel))
		log_wake(w);
	else if (above && !ln->ln_nudged)
		log_wake(w);
	ln->ln_nudged = above;
}

static void
log_access_fields(
    struct log_writer *w, struct lane *ln, const struct log_record *rec)
{
	const struct log *lg = w->lw_log;
	char *p = log_lane_reserve(ln, format_bound(rec, LOG_JSON));

	if (p != NULL)
		log_lane_commit(w, ln,
		    format_fields(
			p, rec, lg->lg_format, &lg->lg_fields, w->lw_stamps));
}

void
log_access(struct log_writer *w, const struct log_record *rec)
{
	struct lane *ln = &w->lw_lanes[KIND_ACCESS];
	enum log_format format = w->lw_log->lg_format;
	char *p;

	if (ln->ln_ring == NULL)
		return;
	if (w->lw_log->lg_fields.lf_count > 0) {
		log_access_fields(w, ln, rec);
		return;
	}
	p = log_lane_reserve(ln, format_bound(rec, format));
	if (p != NULL)
		log_lane_commit(
		    w, ln, format_access(p, rec, format, w->lw_stamps));
}

bool
log_release(struct log_writer *w)
{
	bool all = true;

	for (int kind = 0; kind < NKINDS; kind++)
		if (w->lw_lanes[kind].ln_ring != NULL)
			all = ring_release(w->lw_lanes[kind].ln_ring) && all;
	return all;
}

static size_t
log_format(char *line, enum log_level level, bool journal, struct str text)
{
	static const char priorities[][4] = {"<3>", "<4>", "<5>"};
	size_t len = journal ? strlen(priorities[level]) : 0;

	memcpy(line, priorities[level], len);
	return len + format_message(line + len,
			 level == LEVEL_WARNING ? "warning: " : "", text);
}

static void
log_message(struct log_writer *w, enum log_level level, struct str text)
{
	enum kind kind = level == LEVEL_NOTICE ? KIND_NOTICE : KIND_ERROR;
	char line[FORMAT_MESSAGE], *p;
	struct lane *ln;
	int fd;

	if (w == NULL) {
		fd = kind == KIND_NOTICE ? STDOUT_FILENO : STDERR_FILENO;
		sink_write_fd(fd, line,
		    log_format(line, level, log_to_journal(fd), text));
		return;
	}
	ln = &w->lw_lanes[kind];
	if (ln->ln_ring == NULL)
		return;
	p = log_lane_reserve(ln, FORMAT_FIXED + 4 * text.s_len);
	if (p != NULL)
		log_lane_commit(
		    w, ln, log_format(p, level, ln->ln_sink->sk_journal, text));
}

static void __attribute__((format(printf, 3, 0))) log_vmessage(
    struct log_writer *w, enum log_level level, const char *fmt, va_list ap)
{
	char text[FORMAT_FIELD + 1];
	int len;

	if (level > most)
		return;
	len = vsnprintf(text, sizeof(text), fmt, ap);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(text))
		len = sizeof(text) - 1;
	log_message(w, level, (struct str){text, (size_t)len});
}

void
log_notice(struct log_writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vmessage(w, LEVEL_NOTICE, fmt, ap);
	va_end(ap);
}

void
log_warn(struct log_writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vmessage(w, LEVEL_WARNING, fmt, ap);
	va_end(ap);
}

void
log_error(struct log_writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vmessage(w, LEVEL_ERROR, fmt, ap);
	va_end(ap);
}

uint64_t
log_lost(struct log *lg, int kind)
{
	uint64_t lost = 0;
	unsigned i;

	for (i = 0; i < lg->lg_nwriters; i++)
		lost += atomic_load_explicit(
		    &lg->lg_writers[i].lw_lanes[kind].ln_lost,
		    memory_order_relaxed);
	/* Losses of stderr itself cannot be reported. */
	if (kind != KIND_ERROR)
		lost += lg->lg_sinks[kind].sk_dropped;
	return lost;
}

uint64_t
log_access_lost(struct log *lg)
{
	return log_lost(lg, KIND_ACCESS);
}
