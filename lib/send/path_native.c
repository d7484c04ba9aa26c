/*
 * path_native: FreeBSD's asynchronous sendfile(2) (thesis chapter 4): the head and the
 * file in one call that does not wait for a file's data.  The kernel puts pages that it
 * is still reading into the socket's queue, and sends them when they are read, without a
 * completion and without a residency check.
 *
 * The call would wait for a data page only if the page is being read for another request; with
 * SF_NODISKIO the call fails with EBUSY instead.  Then a disk thread waits for the end of that
 * read.
 *
 * The call does wait for indirect blocks (indirect.h).  So a disk thread reads these blocks first,
 * in advance if earlier bytes can be sent meanwhile.
 *
 * The call also waits if too many reads are in flight.  So calls that may read are counted
 * (cold_calls.h), unless their bytes were read or sent in the last second (HOLDS).  While the limit
 * is reached, a disk thread first reads the chunk, as if the kernel had returned EBUSY.  The limit
 * is higher for bytes that were resident before, so that a cached file does not wait for the reads
 * of other files.
 *
 * The pool sends files of file systems that do not support the call.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/file/indirect.h"
#include "lib/file/residency.h"
#include "lib/file/verified.h"
#include "lib/os/os.h"
#include "lib/send/cold_calls.h"
#include "lib/send/own.h"
#include "lib/send/path.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

#define AHEAD	   WINDOW_MOST
#define READ_AHEAD WINDOW_MOST /* bytes that read(2) reads ahead at most */
#define HOLDS	   1000000 /* time that bytes count as resident, microseconds */

/* Returns the number of bytes to read ahead, behind the chunk: as many as other paths would prefetch. */
static size_t
native_readahead(struct pw_send *s)
{
	if (s->snd_readahead == PW_READAHEAD_NONE ||
	    s->snd_len <= (off_t)send_priv(s)->ss_chunk)
		return 0;
	send_window_choose(s);
	return send_priv(s)->ss_window;
}

/* Returns true if the file system does not support the call.  Copies are sent from then on. */
static bool
native_is_refused(struct pw_send *s)
{
	if (!send_is_refused(s, send_priv(s)->ss_result))
		return false;
	file_priv(s->snd_file)->fp_ask = OS_ASK_FETCH;
	return true;
}

/*
 * Returns how many of the next `len` bytes are known to be resident: a disk thread read them, or a call
 * sent them, within HOLDS.
 */
static size_t
native_resident(const struct pw_send *s, size_t len)
{
	const struct file_private *fp = file_priv(s->snd_file);
	off_t ready = send_priv(s)->ss_ready, off = s->snd_off,
	      end = off + (off_t)len;
	uint64_t since = clock_now() - HOLDS;

	if (fp->fp_ask == OS_ASK_NEVER_COLD)
		return len;
	if (ready > off && send_priv(s)->ss_ready_at >= since)
		return ready < end ? (size_t)(ready - off) : len;
	verified_trim(s->snd_loop->lp_verified, fp->fp_number, &off, &end,
	    since, UINT64_MAX);
	return off == end ? len : 0;
}

/*
 * Notes that the first `len` bytes at snd_off are resident, and also the earlier bytes of the
 * transmission in the same piece, which the socket has too.
 */
static void
native_note_resident(struct pw_send *s, size_t len)
{
	const struct pw_file *file = s->snd_file;
	off_t piece = s->snd_off / VERIFIED_PIECE * VERIFIED_PIECE,
	      begun = send_priv(s)->ss_from;

	verified_note(s->snd_loop->lp_verified, file_priv(file)->fp_number,
	    piece > begun ? piece : begun, s->snd_off + (off_t)len,
	    file->fil_size, clock_now());
}

/* Returns true if the next `len` bytes were noted as resident at any earlier time. */
static bool
native_was_resident(const struct pw_send *s, size_t len)
{
	off_t off = s->snd_off, end = off + (off_t)len;

	verified_trim(s->snd_loop->lp_verified,
	    file_priv(s->snd_file)->fp_number, &off, &end, 0, UINT64_MAX);
	return off == end;
}

/* Makes a call that may read from the disk.  Returns -EBUSY if too many reads are in flight. */
static int
native_call_cold(
    struct pw_send *s, size_t len, const struct os_native *on, size_t *sent)
{
	struct cold_call *cc = cold_calls_begin(s, native_was_resident(s, len));
	size_t of_file;
	int error;

	if (cc == NULL)
		return -EBUSY;
	error = os_native_send(
	    s->snd_sock, s->snd_file->fil_fd, s->snd_off, len, on, sent);
	of_file = *sent > on->on_mem_len ? *sent - on->on_mem_len : 0;
	if (cold_calls_end(s, cc, of_file, on->on_nocache) && !on->on_nocache)
		native_note_resident(s, of_file);
	return error;
}

/*
 * Calls file_check before the last bytes are passed to the kernel, since the kernel reads them only after
 * the call has returned.
 */
static int
path_native_call(struct pw_send *s, size_t len, size_t *sent)
{
	struct os_native on = {
	    .on_mem = s->snd_mem,
	    .on_mem_len = s->snd_mem_len,
	    .on_readahead = native_readahead(s),
	    .on_nocache = send_drops(s),
	};

	size_t resident;

	*sent = 0;
	send_priv(s)->ss_result = len > SEND_TAIL ? 0 : send_check(s, len);
	if (send_priv(s)->ss_result != 0)
		return send_priv(s)->ss_result;
	if (len > SEND_TAIL && (off_t)len == s->snd_len)
		len -= SEND_TAIL;
	resident = native_resident(s, len);
	send_priv(s)->ss_result =
	    resident == 0 ? native_call_cold(s, len, &on, sent)
			  : os_native_send(s->snd_sock, s->snd_file->fil_fd,
				s->snd_off, resident, &on, sent);
	return native_is_refused(s) ? -EBUSY : send_priv(s)->ss_result;
}

/*
 * Has disk threads drop, after the transmission, what SF_NOCACHE did not free: pages that read(2) read
 * ahead, which stay in buffers, and pages whose object another processor had locked.
 */
static void
native_drop_behind(struct pw_send *s, off_t end)
{
	if (end > send_priv(s)->ss_from)
		send_brought_in(s, send_priv(s)->ss_from, end);
}

static void
native_pages_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	if (w->wt_error == 0) {
		send_priv(s)->ss_ready = send_chunk_end(s);
		send_priv(s)->ss_ready_at = clock_now();
		if (send_drops(s))
			native_drop_behind(
			    s, offset_add(send_priv(s)->ss_ready, READ_AHEAD,
				   s->snd_file->fil_size));
		else
			native_note_resident(
			    s, (size_t)(send_priv(s)->ss_ready - s->snd_off));
	}
	send_pending_end(s, w->wt_error);
	s->snd_done(s);
}

/*
 * Has a disk thread read the chunk, and thereby wait for its pages that are busy.  read(2) leaves the
 * pages in buffers, so SF_NOCACHE frees them only if the thread has the buffers release them.
 */
static enum pw_send_status
native_await_pages(struct pw_send *s)
{
	off_t end = send_chunk_end(s);
	int error;

	completion_count(s->snd_loop, COUNTED_MISSED);
	if (send_drops(s))
		send_priv(s)->ss_how = FETCH_RELEASED;
	send_pending_begin(s, native_pages_done);
	error = send_fetch_by_pool(s, s->snd_off, (size_t)(end - s->snd_off));
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

/*
 * Notes the result of FETCH_MAP.  If the file system does not support FETCH_MAP, copies are sent
 * from then on.  Returns 0 or -errno.
 */
static int
native_note_block(struct pw_file *file, off_t off, int error)
{
	if (error == -EOPNOTSUPP) {
		file_priv(file)->fp_ask = OS_ASK_FETCH;
		return 0;
	}
	if (error == 0)
		indirect_note(file_priv(file)->fp_indirect, off, clock_now());
	return error;
}

static void
native_block_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	send_pending_end(
	    s, native_note_block(s->snd_file, s->snd_off, w->wt_error));
	s->snd_done(s);
}

/* Has a disk thread read the indirect blocks of the next byte. */
static enum pw_send_status
native_read_block(struct pw_send *s)
{
	int error;

	completion_count(s->snd_loop, COUNTED_MISSED);
	send_pending_begin(s, native_block_done);
	error = send_map_by_pool(s, s->snd_off);
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

/* A prefetch of indirect blocks.  May outlive all transmissions, so it refers to the file only. */
struct early {
	/* first member, as native_block_ahead_done casts its address */
	struct pw_waiter er_waiter;
	struct pw_file *er_file;
	off_t er_off;
};

/* Ignores an error, since the transmission will read the same blocks and fail, too. */
static void
native_block_ahead_done(struct pw_waiter *w)
{
	struct early *er = (struct early *)w;

	(void)native_note_block(er->er_file, er->er_off, w->wt_error);
	pw_file_unref(&er->er_file);
	free(er);
}

/* Prefetches the indirect blocks of `off`.  A transmission that needs them earlier joins the fetch. */
static void
native_read_block_ahead(struct pw_send *s, off_t off)
{
	struct early *er;

	if (pool_mapping(s->snd_file, off))
		return;
	er = calloc(1, sizeof(*er));
	if (er == NULL)
		return;
	er->er_waiter.wt_done = native_block_ahead_done;
	er->er_file = s->snd_file;
	er->er_off = off;
	pw_file_ref(s->snd_file);
	if (pool_fetch(s->snd_file, off, 1, FETCH_MAP, ADMIT_HINT,
		&er->er_waiter) == 0)
		return;
	pw_file_unref(&er->er_file);
	free(er);
}

/* Returns the end of the bytes whose indirect blocks are known.  Prefetches the first missing block. */
static off_t
native_known_end(struct pw_send *s)
{
	const struct indirect *in =
	    s->snd_file == NULL ? NULL : file_priv(s->snd_file)->fp_indirect;
	off_t end = s->snd_off + s->snd_len,
	      near = offset_add(s->snd_off, AHEAD, end), missing;

	if (in == NULL)
		return end;
	missing = indirect_missing(in, s->snd_off, near, clock_now());
	if (missing == near)
		return end;
	if (missing > s->snd_off)
		native_read_block_ahead(s, missing);
	return missing;
}

static enum pw_send_status
path_native_step(struct pw_send *s)
{
	enum pw_send_status status;
	off_t end;

	if (s->snd_file != NULL && !residency_native(s->snd_file))
		return own_serve(s);
	end = native_known_end(s);
	if (s->snd_len > 0 && end == s->snd_off)
		return native_read_block(s);
	send_priv(s)->ss_result = 0;
	status = send_window(s, end, path_native_call);
	if (status == PW_SEND_AGAIN && s->snd_file != NULL &&
	    !residency_native(s->snd_file))
		return own_serve(s);
	if (status == PW_SEND_AGAIN && send_priv(s)->ss_result == -EBUSY)
		return native_await_pages(s);
	return status;
}

static void
path_native_finish(struct pw_send *s)
{
	if (send_priv(s)->ss_drops &&
	    file_priv(s->snd_file)->fp_ask == OS_ASK_NATIVE)
		native_drop_behind(s, s->snd_off);
}

const struct pw_send_path send_native = {
    .path_name = "native",
    .path_probe = os_native_probe,
    .path_step = path_native_step,
    .path_finish = path_native_finish,
    .path_takes_memory = true,
};
