/*
 * cold_calls: counts a loop's calls of os_native_send (cold.h), and determines when each call ends.
 *
 * FreeBSD has no residency check, so each call may be cold.  The loop counts a call before it makes
 * the call, unless the bytes of the call are known to be resident (path_native.c).  The kernel does
 * not report the end of its reads.  A call ends when
 *
 * - the socket has no byte of the call that the kernel is still reading (os_unready).  The kernel
 *   queues the pages of a call at once, behind those of earlier calls, marks those that it reads as
 *   not ready, and makes them ready when the last read of the call has ended.  So if at most the
 *   bytes of later calls wait, no read for the call is in flight.  The loop calls os_unready after
 *   each call of the connection, at ticks, and when the limit is reached.  Such a check makes four
 *   system calls.  So ticks check a call when it has been in flight for as long as the connection's
 *   previous call was, and then whenever its age has doubled.
 *
 * - or, if the socket was closed meanwhile or is a Unix socket, a disk thread has read the last
 *   byte of the call.  The kernel's reads continue without the socket.  Their pages are busy, so
 *   the thread waits until the kernel has read the last page, and reads the page itself only if the
 *   kernel has evicted it since.  A descriptor may be used again for another connection, so the
 *   loop compares the peer's address as well (os_peer).
 *
 * There is no timeout: on a disk that hangs, calls stay counted until the limit is reached.  Then a
 * disk thread of the file's device reads before every call, so only files on the disk that hangs
 * wait.
 */
#ifndef LIB_SEND_COLD_CALLS_H
#define LIB_SEND_COLD_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"

struct cold_call;

/*
 * Counts a call that the transmission is about to make.  `before` is true if the bytes of the call
 * were once resident (cold_take).  Returns NULL if the limit is reached or memory is short; then a
 * disk thread must read the bytes first.
 */
struct cold_call *cold_calls_begin(struct pw_send *, bool before);

/*
 * Takes ownership of a call that has returned, and that accepted `len` bytes of the file from
 * snd_off on.  Ends earlier calls of the connection whose reads have ended.  Returns true if the
 * call has ended already, so that all bytes in the socket are resident.  Otherwise keeps the call
 * counted until its reads have ended; if `nocache` is false, then notes its bytes as resident.
 */
bool cold_calls_end(
    struct pw_send *, struct cold_call *, size_t len, bool nocache);

/*
 * Ends calls whose reads have ended: each at the latest when it has been in flight for twice as long, or
 * two seconds later.  Call at each tick.  Loop's thread, as all functions here.
 */
void cold_calls_tick(struct pw_loop *, uint64_t now_us);

/* Forgets all calls.  Call before the loop is freed, when no disk thread reads for a call. */
void cold_calls_forget(struct pw_loop *);

#endif
