/*
 * trace: records the steps of a request, and logs them at the end of the exchange.  A request is
 * traced if it has the field Pagewise-Trace and its client is in trace_clients.
 *
 * Without a trace, ex_trace is NULL, and callers must not call these functions except trace_begin.
 * A trace is one block of memory with a fixed size.  When the block is full, further lines are only
 * counted.  Runs on the worker's thread.
 */
#ifndef SERVER_CONTENT_TRACE_H
#define SERVER_CONTENT_TRACE_H

#include <stdint.h>

#include "lib/pagewise.h"

struct exchange;

#define TRACE_MOST 64 /* maximum concurrent traces of a worker */

/*
 * Starts a trace if the client may request one.  Starts none if the value of the field is not an
 * identifier, if memory is short, or if the worker has TRACE_MOST traces.  Call when the client is
 * known.
 */
void trace_begin(struct exchange *);

void trace_located(struct exchange *);

/* Records the result of an open.  The file is NULL if `error` is not 0. */
void trace_opened(struct exchange *, int error, const struct pw_file *);

/* Records that a response is ready to be sent, also if the response replaces a failed one. */
void trace_response(struct exchange *);

/* Records a step of the response and the result of the step. */
void trace_step(struct exchange *, enum pw_send_status);

/* Records the end of a wait.  `us` is the duration of the wait in microseconds. */
void trace_waited(struct exchange *, uint64_t us);

/* Logs and frees the trace.  Call with the status and the sent bytes of the exchange. */
void trace_end(struct exchange *, int status, uint64_t sent);

#endif
