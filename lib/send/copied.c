/*
 * copied: sends bytes from memory: copies that were read past the page cache, zeros of holes, all of a file
 * where sendfile(2) is refused or cannot be used, and the end of every range, SEND_TAIL at most.  After the
 * last byte was read, fstat(2) checks whether the file is still the version whose validators are in the
 * head.  The end is sent after that check, so no client gets a whole response with bytes of two
 * versions.
 */
#include <errno.h>
#include <string.h>

#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/send/path.h"
#include "lib/send/piped.h"
#include "lib/send/sink.h"

#define COPY ((size_t)64 << 10) /* maximum bytes of a call, four TLS records */

int
send_check(const struct pw_send *s, size_t len)
{
	return (off_t)len < s->snd_len ? 0
				       : file_check(s->snd_file, s->snd_grows);
}

size_t
send_before_tail(const struct pw_send *s, size_t len)
{
	off_t before = s->snd_len - (off_t)SEND_LAST;

	if (s->snd_len <= (off_t)SEND_TAIL ||
	    device_copies(file_priv(s->snd_file)->fp_device))
		return 0;
	return (off_t)len < before ? len : (size_t)before;
}

bool
send_is_refused(const struct pw_send *s, int error)
{
	if (error != -EINVAL && error != -ENOSYS && error != -EOPNOTSUPP)
		return false;
	device_refuses(file_priv(s->snd_file)->fp_device, error);
	return true;
}

/*
 * Returns true if os_read may wait: if the path may wait for the disk, or RWF_NOWAIT does not work, as in
 * tmpfs and where mincore(2) checks residency.
 */
static bool
copied_may_wait(const struct pw_send *s)
{
	int ask = file_priv(s->snd_file)->fp_ask;

	return !s->snd_path->path_prefetches || ask == OS_ASK_NEVER_COLD ||
	       ask == OS_ASK_MINCORE;
}

/*
 * Checks bytes of a copy as send_check does.  Returns 0 at once for a file whose residency cannot be checked,
 * since fstat(2) may wait: each copy has bytes of the file's version, and only copies are sent of such a file.
 */
static int
copied_check(const struct pw_send *s, size_t len)
{
	return residency_can_ask(s->snd_file) ? send_check(s, len) : 0;
}

/*
 * Copies up to len of the next bytes from the pin.  Returns how many, 0 if they have to be read from the
 * file, or -errno.
 */
static long
copied_from_pin(struct pw_send *s, char *to, size_t len)
{
	const struct pin *pn = send_priv(s)->ss_pin;
	const char *from = pins_copy(pn, s->snd_off);
	off_t left = pn == NULL ? 0 : pins_end(pn, s->snd_off) - s->snd_off;

	if ((off_t)len > left)
		len = (size_t)left;
	if (from != NULL)
		memcpy(to, from, len);
	else if (len > 0 && pins_marked(pn))
		return piped_read(s, to, len);
	else
		return 0;
	return (long)len;
}

/* Copies up to len of the next bytes from a hole.  Returns how many, or 0 if the next byte is data. */
static long
copied_from_hole(const struct pw_send *s, char *to, size_t len)
{
	off_t left = send_hole_end(s) - s->snd_off;

	if ((off_t)len > left)
		len = (size_t)left;
	memset(to, 0, len);
	return (long)len;
}

/*
 * Reads up to len of the next bytes.  Returns how many, or -errno.  Returns -EBUSY with ss_result
 * -EAGAIN if RWF_NOWAIT refuses a page that the residency check found resident.
 */
static long
copied_read_next(struct pw_send *s, char *to, size_t len)
{
	long n = copied_from_hole(s, to, len);
	bool copy = false;
	int error;

	if (n == 0) {
		n = copied_from_pin(s, to, len);
		copy = n > 0;
	}
	if (n == 0)
		n = os_read(s->snd_file->fil_fd, s->snd_off, to, len,
		    copied_may_wait(s));

	if (n <= 0) {
		if (n == -EOPNOTSUPP)
			n = -EAGAIN; /* the file itself lacks RWF_NOWAIT */
		send_priv(s)->ss_result = (int)n;
		return n == 0 ? -ESTALE : n == -EAGAIN ? -EBUSY : n;
	}
	error = copy ? copied_check(s, (size_t)n) : send_check(s, (size_t)n);
	return error == 0 ? n : error;
}

int
send_copied(struct pw_send *s, size_t len, size_t *sent)
{
	struct pw_sink *sk = s->snd_sink;
	size_t head = s->snd_mem_len, room = COPY;
	char memory[COPY], *data = memory;
	long n;

	*sent = 0;
	if (sk != NULL && sk->sk_ops->room != NULL)
		data = sk->sk_ops->room(sk, &room);
	if (room <= head)
		return room == 0 ? -EAGAIN
				 : sink_send(s, s->snd_mem, room, true, sent);
	room -= head;
	if (head > 0)
		memcpy(data, s->snd_mem, head);
	n = copied_read_next(s, data + head, len < room ? len : room);
	if (n < 0)
		return (int)n;
	return sink_send(s, data, head + (size_t)n,
	    s->snd_more || (off_t)n < s->snd_len, sent);
}

int
send_from_copy(struct pw_send *s, size_t len, size_t *sent)
{
	struct pw_sink *sk = s->snd_sink;
	int error;

	if (s->snd_mem_len > 0 || (sk != NULL && sk->sk_ops->room != NULL))
		return send_copied(s, len, sent);
	*sent = 0;
	error = copied_check(s, len);
	if (error != 0)
		return error;
	return sink_send(s, pins_copy(send_priv(s)->ss_pin, s->snd_off), len,
	    s->snd_more || (off_t)len < s->snd_len, sent);
}

/*
 * Sends resident bytes to the last one in one call, just after the check: to copy the last byte takes
 * three calls and a packet more.
 */
int
send_by_sendfile(struct pw_send *s, size_t len, size_t *sent)
{
	size_t pages = send_before_tail(s, len);
	int error;

	if (pages == 0 || s->snd_mem_len > 0)
		return send_copied(s, len, sent);
	if (s->snd_path->path_prefetches)
		pages = len;
	*sent = 0;
	error = send_check(s, pages);
	if (error == 0)
		error = os_sendfile(
		    s->snd_sock, s->snd_file->fil_fd, s->snd_off, pages, sent);
	return send_is_refused(s, error) ? send_copied(s, len, sent) : error;
}
