/*
 * log: the access log and the messages of a running server, which a writer thread writes to their
 * files.
 *
 * A worker formats a record into a ring of its own (lib/os/ring.h; one producer, one consumer, no
 * lock) and continues; the writer thread writes the contents of all rings.  Neither a full disk nor
 * a stopped terminal can block a worker: a record that does not fit into the ring is dropped and
 * counted, and the writer reports the count on stderr as soon as it can, at most once a second:
 *     pagewise: access log: 12 records lost
 *     pagewise: access log: 12 records lost: PATH: No space left on device
 *
 * Access records go to the access log; messages to stderr (log_warn, log_error) or, for log_notice,
 * to stdout, or to stderr while the access log is stdout.  Each of the three files has a ring per
 * worker, so that messages do not wait behind a blocked access log.  SIGPIPE must be ignored.
 */
#ifndef SERVER_LOG_LOG_H
#define SERVER_LOG_LOG_H

#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "server/http/request.h"

struct log;	   /* the writer thread and its files */
struct log_writer; /* one worker's side; used only by that worker's thread */

enum log_format { LOG_COMBINED, LOG_JSON };

/*
 * Levels of messages, the most severe first.  Messages that are less severe than the level of
 * log_set_level are not written.
 */
enum log_level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTICE };

/* Fields of an access log line, in the order of LOG_JSON. */
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
	/* fields that LOG_JSON has only if configured */
	FIELD_TLS_VERSION,
	FIELD_TLS_CIPHER,
	FIELD_TLS_NAME,
	FIELD_TLS_SESSION,
	FIELD_TLS_HANDSHAKE,
	FIELD_TLS_SUBJECT,
	NFIELDS
};

extern const char *const log_field_names[NFIELDS];

/* The configured fields, each at most once. */
struct log_fields {
	unsigned lf_count; /* number of fields; 0 for the format's own */
	enum log_field lf_list[NFIELDS];
};

/* Properties of a TLS connection. */
struct log_tls {
	struct str lt_version;
	struct str lt_cipher;
	struct str lt_name;    /* name that the client requested, or absent */
	struct str lt_session; /* "full" or "resumed" */
	struct str lt_subject; /* client certificate's subject, or absent */
	uint64_t lt_handshake; /* duration of the handshake, microseconds */
};

struct log_record {
	const struct sockaddr *rec_peer;
	time_t rec_time;     /* arrival of the request, seconds */
	struct str rec_user; /* user name; verified unless 401 or 503 */
	struct request_texts rec_texts; /* request line and fields to log */
	int rec_status;
	uint64_t rec_body;     /* bytes of body handed to the kernel */
	uint64_t rec_bytes;    /* bytes of head and body handed to the kernel */
	uint64_t rec_duration; /* time from complete head to last byte, us */
	uint64_t rec_wait;     /* total of disk waits, us: exchange.h */
	const struct log_tls *rec_tls; /* NULL without TLS */
};

/*
 * Opens the access log (path, "-" for stdout, NULL for none; append, 0640) for `nwriters` threads,
 * including the main thread if the main thread logs later.  Uses stdout and stderr as they are at
 * this moment.  Returns 0 or -errno.  Sets *opened to false if a file could not be opened; then
 * -ENXIO means a FIFO without a reader, and -ELOOP a symbolic link that belongs neither to root nor
 * to this user.
 */
int log_create(const char *access_path, enum log_format, unsigned nwriters,
    struct log **, bool *opened);

/* Selects the fields of the access log.  Call before log_start. */
void log_set_fields(struct log *, const struct log_fields *);

/* Starts the writer thread, which also writes earlier records.  Returns 0 or -errno. */
int log_start(struct log *);

/* Limits the rights of the log's descriptors (os_limit_rights).  Returns 0 or -errno. */
int log_limit_rights(struct log *);

/*
 * Returns writer number `i`, counted from 0, or NULL if `i` is not below `nwriters` of log_create.
 * The log owns the writer; only one thread may use it.
 */
struct log_writer *log_writer(struct log *, unsigned i);

/* Returns true if the access log is on, so that the caller can skip gathering records. */
bool log_access_on(const struct log_writer *);

/*
 * Writes a record.
 *
 * LOG_COMBINED: the combined format, then bytes with the head, duration, disk wait:
 *   ADDR - USER [21/Nov/2026:02:13:54 +0000] "GET / HTTP/1.1" 200 512 "-"
 *       "curl/8" 771 153 0
 * A quote, a backslash, every byte outside 0x20-0x7E, and a space in USER are written as \xHH, so
 * that a client cannot forge a line.
 *
 * LOG_JSON: an object (RFC 8259) on a line, in ASCII:
 *   {"time":"2026-11-21T02:13:54Z","remote":"192.0.2.7","user":null,
 *    "method":"GET","target":"/","protocol":"HTTP/1.1","status":200,"bytes":771,
 *    "body_bytes":512,"referer":null,"user_agent":"curl/8",
 *    "host":"localhost","duration_us":153,"disk_wait_us":0}
 * A field that the client did not send is null.  If the line is not a request line, method and
 * protocol are null, and the target is the whole line.  A character beyond ASCII is written as
 * \uHHHH.  In the parsed text, a backslash, a control character and a byte that is not UTF-8 are
 * the four characters \xHH; there is no other backslash.
 *
 * Fields are truncated at 2 KiB.
 *
 * After log_set_fields LOG_JSON has the selected members, and LOG_COMBINED the selected fields,
 * separated by a space.  A text from the client is in quotes, and "-" if the client did not send
 * it.
 */
void log_access(struct log_writer *, const struct log_record *);

/*
 * log_notice, log_warn and log_error write a message in the format of printf(3), without a final
 * newline.  If the writer is NULL, as before the writer thread starts, the functions write directly
 * to stdout or stderr.  A line of log_warn begins with "pagewise: warning: ", other lines with
 * "pagewise: ".  Bytes outside 0x20-0x7E become \xHH; text is truncated at 2 KiB.
 */
void log_notice(struct log_writer *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_warn(struct log_writer *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_error(struct log_writer *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Sets the level of all later messages; the default is LEVEL_NOTICE.  Call while there is one
 * thread.
 */
void log_set_level(enum log_level);

/*
 * Finds out whether stdout and stderr lead to journald (JOURNAL_STREAM, systemd.exec(5)).  Messages
 * to journald begin with a priority: "<3>" for log_error, "<4>" for log_warn, "<5>" for log_notice.
 * Call once, at the start of the program.
 */
void log_find_journal(void);

/* Returns the prefix for errors that are written to stderr without this log: "<3>", or nothing. */
const char *log_error_prefix(void);

/* Returns the number of access log lines lost so far.  Callable from any thread. */
uint64_t log_access_lost(struct log *);

/*
 * Returns the memory of the writer's rings to the system.  Returns false if a ring is not empty, so that its
 * memory stays.  Call on the writer's thread, or after its end.
 */
bool log_release(struct log_writer *);

/*
 * Writes the contents of the rings, stops the thread, closes the files and frees the log.  No
 * worker may use its log_writer any more.  Drops the remaining lines if no file accepts any for a
 * second, and counts them as lost.  If the thread hangs in a write for a second, abandons the
 * thread and the log's memory, and writes a message.
 */
void log_destroy(struct log **);

#endif
