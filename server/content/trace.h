/*
 * trace: records the steps of one request, and logs them when the exchange ends.  A request is traced
 * if it has the field Pagewise-Trace and its client is one of trace_clients.
 *
 * An exchange without a trace has ex_trace NULL; then the callers of these functions skip them.  A trace
 * is one block of memory of a fixed size.  When it is full, later steps are only counted.  The worker's
 * thread only.
 */
#ifndef SERVER_CONTENT_TRACE_H
#define SERVER_CONTENT_TRACE_H

#include <stdint.h>

#include "lib/pagewise.h"

struct exchange;

#define TRACE_MOST 64 /* maximum traces of a worker at a time */

/*
 * Begins a trace if the client may have one.  Call when the client is known.  Begins none if the value of
 * the field is not an identifier, if memory is short, or if there are TRACE_MOST traces.
 */
void trace_begin(struct exchange *);

/* Call when the site and the location are found. */
void trace_located(struct exchange *);

/* Call with the result of an open.  The file is NULL if error is not 0. */
void trace_opened(struct exchange *, int error, const struct pw_file *);

/* Call when a response is ready to be sent, also one that replaces a failed one. */
void trace_response(struct exchange *);

/* Call after each step of the response, with its result. */
void trace_step(struct exchange *, enum pw_send_status);

/* Call when the completion of a wait arrives, with the duration of the wait in microseconds. */
void trace_waited(struct exchange *, uint64_t us);

/* Logs the trace and frees it.  Call once the exchange has a status and has sent its last byte. */
void trace_end(struct exchange *, int status, uint64_t sent);

#endif
