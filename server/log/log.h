/*
 * log: the access log and the messages of a running server, written by one
 * thread of their own.
 *
 * A worker formats a record into a ring of its own (lib/os/ring.h; one producer,
 * one consumer, no lock) and goes on; the writer thread collects from all rings
 * and writes.  Neither a full disk nor a stopped terminal can block a worker:
 * what does not fit into the ring is dropped and counted, and the writer
 * reports the count on stderr as soon as it can, once a second at most:
 *     pagewise: access log: 12 records lost
 *     pagewise: access log: 12 records lost: PATH: No space left on device
 *
 * Access records go to the access log; messages to stderr (log_warn,
 * log_error) or, for log_notice, to stdout, or to stderr while the access log
 * is stdout.  Each of the three has a ring per worker, so that messages do not
 * wait behind an access log that takes nothing.  SIGPIPE must be ignored.
 */
#ifndef SERVER_LOG_LOG_H
#define SERVER_LOG_LOG_H

#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "server/http/request.h"

struct log;	   /* the writer thread and its files */
struct log_writer; /* one worker's end; used by that worker's thread only */

enum log_format { LOG_COMBINED, LOG_JSON };

/* Of messages: those above it are not written. */
enum log_level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTICE };

/* Of a line of the access log, in the order of LOG_JSON. */
enum log_field {
	FIELD_TIME,
	FIELD_REMOTE,
	FIELD_USER,
	FIELD_METHOD,
	FIELD_TARGET,
	FIELD_PROTOCOL,
	FIELD_STATUS,
	FIELD_BYTES,
	FIELD_BODY_BYTES,
	FIELD_REFERER,
	FIELD_USER_AGENT,
	FIELD_HOST,
	FIELD_DURATION,
	FIELD_DISK_WAIT,
	/* not in LOG_JSON, unless they are asked for: */
	FIELD_TLS_VERSION,
	FIELD_TLS_CIPHER,
	FIELD_TLS_NAME,
	FIELD_TLS_SESSION,
	FIELD_TLS_HANDSHAKE,
	FIELD_TLS_SUBJECT,
	NFIELDS
};

extern const char *const log_field_names[NFIELDS];

/* Those that are wanted, each at most once. */
struct log_fields {
	unsigned lf_count; /* 0: the format's own */
	enum log_field lf_list[NFIELDS];
};

/* Of a connection that speaks TLS. */
struct log_tls {
	struct str lt_version;
	struct str lt_cipher;
	struct str lt_name;    /* that the client asked for; absent: none */
	struct str lt_session; /* "full" or "resumed" */
	struct str lt_subject; /* of the client's certificate; absent: none */
	uint64_t lt_handshake; /* microseconds */
};

struct log_record {
	const struct sockaddr *rec_peer;
	time_t rec_time; /* of the request's arrival, seconds */
	struct str
	    rec_user; /* user name sent; right unless the status is 401 or 503 */
	struct request_texts rec_texts; /* an empty line: "-" */
	int rec_status;
	uint64_t rec_body;     /* bytes of body handed to the kernel */
	uint64_t rec_bytes;    /* the same with the head */
	uint64_t rec_duration; /* microseconds, head complete to last byte */
	uint64_t
	    rec_wait; /* of it, while a disk was waited for: see exchange.h */
	const struct log_tls *rec_tls; /* NULL: no TLS */
};

/*
 * Opens the access log (path, "-" for stdout, NULL for none; append, 0640) for
 * nwriters threads: the main thread needs one as well if it has something to say
 * later.  stdout and stderr are those of this moment.  0 or -errno; if the file is at
 * fault, *opened is false: then -ENXIO is a FIFO without a reader, and -ELOOP a symbolic
 * link that is neither root's nor this user's.
 */
int log_create(const char *access_path, enum log_format, unsigned nwriters,
    struct log **, bool *opened);

/* Before log_start. */
void log_set_fields(struct log *, const struct log_fields *);

/* Starts the thread that writes; what was logged before waits for it.  0 or -errno. */
int log_start(struct log *);

/* i counts from 0.  Owned by the log; used by one thread only. */
struct log_writer *log_writer(struct log *, unsigned i);

/* Whether records go anywhere: lets the caller skip gathering them. */
bool log_access_on(const struct log_writer *);

/*
 * LOG_COMBINED: the combined format, then bytes with the head, duration, disk
 * wait:
 *   ADDR - USER [21/Nov/2026:02:13:54 +0000] "GET / HTTP/1.1" 200 512 "-"
 *       "curl/8" 771 153 0
 * A quote, a backslash and every byte outside 0x20-0x7E is written as \xHH,
 * so that a line cannot be forged; a space in USER as well.
 *
 * LOG_JSON: an object (RFC 8259) on a line, in ASCII:
 *   {"time":"2026-11-21T02:13:54Z","remote":"192.0.2.7","user":null,
 *    "method":"GET","target":"/","protocol":"HTTP/1.1","status":200,"bytes":771,
 *    "body_bytes":512,"referer":null,"user_agent":"curl/8",
 *    "host":"localhost","duration_us":153,"disk_wait_us":0}
 * What was not sent is null.  Of a line that is no request line, method and
 * protocol are null, and the target is all of it.  A character beyond ASCII is
 * written as \uHHHH.  A backslash, a control character and a byte that is not UTF-8
 * come out of a parser as the four characters \xHH; no other backslash does.
 *
 * Fields are cut at 2 KiB.
 *
 * After log_set_fields LOG_JSON has these members, and LOG_COMBINED these fields, separated by
 * a space: texts that a client sent in quotes, "-" for what it did not send.
 */
void log_access(struct log_writer *, const struct log_record *);

/*
 * printf-like, without a newline.  With NULL: no thread yet, write directly.
 * A line begins with "pagewise: ", that of log_warn with "pagewise: warning: ";
 * bytes outside 0x20-0x7E become \xHH; cut at 2 KiB.
 */
void log_notice(struct log_writer *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_warn(struct log_writer *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_error(struct log_writer *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Of all messages from now on; LEVEL_NOTICE until then.  While there is one thread. */
void log_set_level(enum log_level);

/*
 * Finds out whether the standard output and error are journald's (JOURNAL_STREAM,
 * systemd.exec(5)).  Then messages to them begin with a priority: "<3>" of log_error, "<4>" of
 * log_warn, "<5>" of log_notice.  At the start of the program, once.
 */
void log_find_journal(void);

/* What an error that is written to stderr otherwise begins with: "<3>", or nothing. */
const char *log_error_prefix(void);

/* Lines of the access log that were lost so far.  Any thread. */
uint64_t log_access_lost(struct log *);

/*
 * Writes what is in the rings, stops the thread, closes, frees.  No worker may
 * use its log_writer any more.  A file that takes nothing for a second is given
 * up; what was for it counts as lost.  A thread that does not come back from the
 * disk for a second is left behind, with what it uses, after a message.
 */
void log_destroy(struct log **);

#endif
