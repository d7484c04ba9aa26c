/* trace: see trace.h.  Consecutive steps that only send bytes make one line. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/os/os.h"
#include "lib/send/facts.h"
#include "lib/util/clock.h"
#include "server/content/exchange.h"
#include "server/content/trace.h"
#include "server/http/chars.h"
#include "server/tls/session.h"

#define TRACE_ID   32	/* maximum bytes of an identifier */
#define TRACE_LINE 512	/* maximum bytes of a line, with its NUL */
#define TRACE_TEXT 6144 /* maximum bytes of all lines */
#define TRACE_GAP  5000 /* longest pause within a run of steps, us */

/* Consecutive steps that only sent bytes. */
struct run {
	unsigned run_steps;
	uint64_t run_bytes;
	uint64_t run_from; /* time of the first step, microseconds */
	uint64_t run_last; /* time of the last step, microseconds */
	bool run_pinned;   /* true if the window was locked or copied */
};

struct trace {
	char tr_id[TRACE_ID + 1];
	int tr_status;	     /* status of the last response, or 0 */
	bool tr_done;	     /* true if the last byte was sent */
	uint64_t tr_sent;    /* sent bytes that are in tr_run or tr_text */
	unsigned tr_waits;   /* number of completed waits */
	uint64_t tr_longest; /* longest completed wait, microseconds */
	unsigned tr_full;    /* number of steps that filled the socket */
	char tr_cause[128];  /* cause of the current wait, or empty */
	struct run tr_run;
	unsigned tr_left_out; /* lines that do not fit into tr_text */
	size_t tr_len;
	char tr_text[TRACE_TEXT]; /* lines, each with a NUL */
};

/* ------------------------------------------------------------------- lines */

/* Adds a line with the time since the head of the request was complete. */
static void __attribute__((format(printf, 3, 4)))
trace_note(struct exchange *ex, uint64_t now, const char *fmt, ...)
{
	struct trace *tr = ex->ex_trace;
	char line[TRACE_LINE];
	size_t len, room = sizeof(tr->tr_text) - tr->tr_len;
	va_list ap;

	len = (size_t)snprintf(
	    line, sizeof(line), "+%" PRIu64 " us: ", now - ex->ex_since);
	va_start(ap, fmt);
	vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	va_end(ap);
	len = strlen(line) + 1;
	if (len > room) {
		tr->tr_left_out++;
		return;
	}
	memcpy(tr->tr_text + tr->tr_len, line, len);
	tr->tr_len += len;
}

/* Adds a line for the current run, if there is one.  `end` is the end of the line. */
static void
trace_flush(struct exchange *ex, const char *end)
{
	struct run run = ex->ex_trace->tr_run;
	const char *from = run.run_pinned ? " from a pinned window" : "";

	ex->ex_trace->tr_run = (struct run){0};
	if (run.run_steps == 1)
		trace_note(ex, run.run_last, "sent %" PRIu64 " bytes%s%s",
		    run.run_bytes, from, end);
	else if (run.run_steps > 1)
		trace_note(ex, run.run_last,
		    "sent %" PRIu64 " bytes%s in %u steps, the first at "
		    "+%" PRIu64 " us%s",
		    run.run_bytes, from, run.run_steps,
		    run.run_from - ex->ex_since, end);
}

static void
trace_log(struct exchange *ex)
{
	const struct trace *tr = ex->ex_trace;
	struct log_writer *log = ex->ex_service->svc_log;

	for (size_t at = 0; at < tr->tr_len; at += strlen(tr->tr_text + at) + 1)
		log_notice(log, "trace %s: %s", tr->tr_id, tr->tr_text + at);
}

/* ------------------------------------------------------------- the request */

static bool
trace_is_id(struct str s)
{
	for (size_t i = 0; i < s.s_len; i++)
		if (!chars_is(s.s_ptr[i], CHAR_TOKEN))
			return false;
	return s.s_len > 0 && s.s_len <= TRACE_ID;
}

static bool
trace_is_allowed(const struct exchange *ex)
{
	const struct cidr_list *cl = &ex->ex_service->svc_conf->conf_trace;

	return cl->cl_count > 0 && trace_is_id(ex->ex_request.rq_trace) &&
	       cidr_has_any(cl->cl_list, cl->cl_count, exchange_client(ex)) &&
	       ex->ex_service->svc_traces < TRACE_MOST;
}

void
trace_begin(struct exchange *ex)
{
	const struct request *rq = &ex->ex_request;
	const struct str line = rq->rq_texts.qt_line;
	char address[INET6_ADDRSTRLEN];
	struct trace *tr;

	if (!trace_is_allowed(ex) || !exchange_reserve(ex, sizeof(*tr)) ||
	    (tr = malloc(sizeof(*tr))) == NULL)
		return;
	*tr = (struct trace){0};
	memcpy(tr->tr_id, rq->rq_trace.s_ptr, rq->rq_trace.s_len);
	ex->ex_trace = tr;
	ex->ex_service->svc_traces++;
	*sockaddr_text(address, exchange_client(ex)) = '\0';
	trace_note(ex, clock_now(), "request \"%.*s\" from %s%s%s",
	    (int)line.s_len, line.s_ptr, address,
	    ex->ex_tls != NULL ? " over " : "",
	    ex->ex_tls != NULL ? ex->ex_tls->tl_log.lt_version.s_ptr : "");
}

/* Returns the path of the location with these settings, or NULL if they belong to the site. */
static const char *
trace_location(const struct site *site, const struct settings *set)
{
	for (size_t i = 0; i < site->site_nlocations; i++)
		if (&site->site_locations[i].loc_set == set)
			return site->site_locations[i].loc_path;
	return NULL;
}

void
trace_located(struct exchange *ex)
{
	const struct lookup *lk = &ex->ex_lookup;
	const char *path = trace_location(lk->lk_site, lk->lk_set);

	if (path != NULL)
		trace_note(ex, clock_now(), "site \"%s\", location \"%s\"",
		    lk->lk_site->site_name, path);
	else
		trace_note(ex, clock_now(), "site \"%s\", no location",
		    lk->lk_site->site_name);
}

void
trace_opened(struct exchange *ex, int error, const struct pw_file *file)
{
	static const char *const types[] = {
	    [PW_FILE_REGULAR] = "file",
	    [PW_FILE_DIRECTORY] = "directory",
	    [PW_FILE_OTHER] = "neither file nor directory",
	};
	const char *path = ex->ex_lookup.lk_path.b_data;
	char device[32];

	if (error != 0) {
		trace_note(
		    ex, clock_now(), "\"%s\": %s", path, strerror(-error));
		return;
	}
	os_dev_name(file->fil_dev, device, sizeof(device));
	trace_note(ex, clock_now(), "\"%s\": %s, %jd bytes, device %s, %s",
	    path, types[file->fil_type], (intmax_t)file->fil_size, device,
	    file->fil_checked < ex->ex_since ? "from the cache of open files"
					     : "looked up");
}

/* ------------------------------------------------------------ the response */

static const char *
trace_path_name(const struct pw_send_path *path)
{
	const char *const *name = pw_send_path_names();

	while (*name != NULL && pw_send_path(*name) != path)
		name++;
	return *name != NULL ? *name : "";
}

static const char *
trace_source(const struct response *rs)
{
	if (rs->rs_ready != NULL)
		return "the response cache";
	if (rs->rs_stream != NULL)
		return "a streamed listing";
	if (rs->rs_text != NULL)
		return "a listing";
	return "memory";
}

void
trace_response(struct exchange *ex)
{
	const struct response *rs = &ex->ex_response;
	uint64_t now = clock_now();

	if (rs->rs_status == ex->ex_trace->tr_status)
		return;
	ex->ex_trace->tr_status = rs->rs_status;
	if (rs->rs_nranges > 0)
		trace_note(ex, now,
		    "response %d from the file, ranges: %zu, first: %jd bytes "
		    "at %jd, send path %s",
		    rs->rs_status, rs->rs_nranges,
		    (intmax_t)rs->rs_ranges[0].rng_len,
		    (intmax_t)rs->rs_ranges[0].rng_off,
		    trace_path_name(rs->rs_settings->set_send_path));
	else
		trace_note(ex, now, "response %d from %s", rs->rs_status,
		    trace_source(rs));
}

/* Stores the cause of the wait that starts now. */
static void
trace_set_cause(struct exchange *ex)
{
	static const char *const causes[] = {
	    [SEND_WAIT_THREAD] = "a disk thread to read or send at",
	    [SEND_WAIT_FETCH] = "the window",
	    [SEND_WAIT_AHEAD] = "the prefetch of the window at",
	    [SEND_WAIT_BUDGET] = "budget for a window at",
	};
	struct trace *tr = ex->ex_trace;
	const struct pw_send *s = &ex->ex_response.rs_send;
	struct send_facts sf = send_facts(s);

	if (!s->snd_pending)
		return;
	if (sf.sf_wait == SEND_WAIT_FETCH)
		snprintf(tr->tr_cause, sizeof(tr->tr_cause),
		    "the window of %jd bytes at %jd",
		    (intmax_t)(sf.sf_end - sf.sf_from), (intmax_t)sf.sf_from);
	else
		snprintf(tr->tr_cause, sizeof(tr->tr_cause), "%s %jd",
		    causes[sf.sf_wait], (intmax_t)s->snd_off);
}

/* Adds a step to the current run.  Starts another run after a pause, or if run_pinned changes. */
static void
trace_add(struct exchange *ex, uint64_t now)
{
	struct trace *tr = ex->ex_trace;
	struct run *run = &tr->tr_run;
	uint64_t sent = response_sent(&ex->ex_response);
	bool pinned = send_facts(&ex->ex_response.rs_send).sf_pinned;

	if (sent <= tr->tr_sent)
		return;
	if (run->run_steps > 0 &&
	    (now - run->run_last > TRACE_GAP || run->run_pinned != pinned))
		trace_flush(ex, "");
	if (run->run_steps++ == 0)
		run->run_from = now;
	run->run_bytes += sent - tr->tr_sent;
	run->run_last = now;
	run->run_pinned = pinned;
	tr->tr_sent = sent;
}

void
trace_step(struct exchange *ex, enum pw_send_status status)
{
	struct trace *tr = ex->ex_trace;

	trace_add(ex, clock_now());
	tr->tr_done = status == PW_SEND_DONE;
	tr->tr_cause[0] = '\0';
	if (status == PW_SEND_PENDING) {
		trace_flush(ex, "");
		trace_set_cause(ex);
	}
	/* With HTTP/2 PW_SEND_WANT_WRITE means that the frame is full, not the socket. */
	if (status == PW_SEND_WANT_WRITE && !ex->ex_head_apart) {
		tr->tr_full++;
		trace_flush(ex, ", then the socket was full");
	}
}

static const char *
trace_cause(const struct exchange *ex)
{
	return ex->ex_trace->tr_cause[0] != '\0' ? ex->ex_trace->tr_cause
						 : ex->ex_pending_on->name;
}

void
trace_waited(struct exchange *ex, uint64_t us)
{
	struct trace *tr = ex->ex_trace;

	tr->tr_waits++;
	if (us > tr->tr_longest)
		tr->tr_longest = us;
	trace_note(ex, clock_now(), "waited %" PRIu64 " us for %s%s", us,
	    trace_cause(ex),
	    send_facts(&ex->ex_response.rs_send).sf_direct
		? ", read past the page cache"
		: "");
	tr->tr_cause[0] = '\0';
}

/* ----------------------------------------------------------------- the end */

/* Returns true if the response has no body, and its owner sent the head (response_head_given). */
static bool
trace_is_empty(const struct response *rs)
{
	return rs->rs_sent > 0 && rs->rs_nranges == 0 &&
	       rs->rs_stream == NULL &&
	       rs->rs_send.snd_mem_len + rs->rs_body.s_len == 0;
}

/* Returns a description of the end of the exchange.  `text` is a buffer for the description. */
static const char *
trace_outcome(const struct exchange *ex, char *text, size_t size)
{
	const struct response *rs = &ex->ex_response;

	if (ex->ex_pending)
		snprintf(text, size,
		    "aborted after a wait of %" PRIu64 " us for %s",
		    clock_now() - ex->ex_waiting, trace_cause(ex));
	else if (rs->rs_send.snd_error != 0)
		snprintf(text, size, "aborted: %s",
		    strerror(-rs->rs_send.snd_error));
	else
		snprintf(text, size, "%s",
		    ex->ex_trace->tr_done || trace_is_empty(rs)
			? "complete"
			: "aborted before the end of the response");
	return text;
}

void
trace_end(struct exchange *ex, int status, uint64_t sent)
{
	struct trace *tr = ex->ex_trace;
	struct log_writer *log = ex->ex_service->svc_log;
	char outcome[256];

	trace_flush(ex, "");
	trace_log(ex);
	if (tr->tr_left_out > 0)
		log_notice(log, "trace %s: lines left out: %u", tr->tr_id,
		    tr->tr_left_out);
	log_notice(log,
	    "trace %s: +%" PRIu64 " us: end: status %d, %s, %" PRIu64
	    " bytes sent; waits: %u, together %" PRIu64 " us, longest %" PRIu64
	    " us; socket full: %u",
	    tr->tr_id, clock_now() - ex->ex_since, status,
	    trace_outcome(ex, outcome, sizeof(outcome)), sent, tr->tr_waits,
	    ex->ex_wait, tr->tr_longest, tr->tr_full);
	ex->ex_service->svc_traces--;
	free(tr);
	ex->ex_trace = NULL;
}
