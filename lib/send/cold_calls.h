/*
 * cold_calls: a loop's calls of os_native_send that are counted in cold.h, and when each of them
 * ends.
 *
 * FreeBSD has no residency check, so each call may be cold.  It is counted before it is made, unless
 * its bytes are known to be resident (path_native.c).  The kernel does not report the end of its reads.
 * A call ends when
 *
 * - the socket has no byte that the kernel is still reading (os_unready).  The kernel queues the pages of
 *   a call at once, marks those that it reads as not ready, and makes them ready when the last read of
 *   the call has ended.  So without such a byte no read of the socket is in flight.  This is checked after
 *   the call, which is enough if all pages were resident; at each tick; and when the limit is reached.
 *
 * - or, if the socket was closed meanwhile or is a Unix socket, a disk thread has read the last byte of
 *   the call.  The reads go on without the socket.  Their pages are busy, so the thread waits for the read
 *   of this page, and reads nothing itself unless the page was evicted since.  A descriptor may be used
 *   again for another connection, so the peer's address is compared as well (os_peer).
 *
 * There is no timeout: on a disk that hangs, calls stay counted until the limit is reached.  Then the disk
 * threads of each device read before every call, and only those of the disk that hangs wait.
 */
#ifndef LIB_SEND_COLD_CALLS_H
#define LIB_SEND_COLD_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"

struct cold_call;

/*
 * Counts a call that the transmission is about to make.  `before` is true if its bytes were once resident
 * (cold_take).  Returns NULL if the limit is reached, or memory
 * is short: then a disk thread must read the bytes first.
 */
struct cold_call *cold_calls_begin(struct pw_send *, bool before);

/*
 * Call after the call of cold_calls_begin, which accepted `len` bytes of the file, from snd_off on.  Takes
 * ownership of the call.  Returns true if the call has ended already: all bytes in the socket are
 * resident.  If `nocache` is false, notes bytes that are read later as resident.
 */
bool cold_calls_end(
    struct pw_send *, struct cold_call *, size_t len, bool nocache);

/* Ends the calls whose reads have ended.  Call at each tick.  Loop's thread, as all here. */
void cold_calls_tick(struct pw_loop *);

/* Forgets all calls.  No disk thread reads for one.  Call before the loop is freed. */
void cold_calls_forget(struct pw_loop *);

#endif
