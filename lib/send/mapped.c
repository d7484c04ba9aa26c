/*
 * mapped: sends bytes of a pinned mapping (pins.h) through the loop's pipe, without a copy
 * (piped.h).  For pages of a folio, the pipe takes half of the CPU time of sendfile(2), which looks
 * up each page in the page cache.  Where the pipe is refused, sendfile(2) sends the bytes; send(2)
 * sends those of a marked folio.
 */
#include <errno.h>

#include "lib/send/path.h"
#include "lib/send/piped.h"
#include "lib/send/sink.h"

bool
send_can_map(const struct pw_send *s)
{
	return s->snd_path->path_copies && !sink_copies(s);
}

bool
send_can_read_marked(const struct pw_send *s)
{
	return s->snd_path->path_copies && !sink_takes_ranges(s);
}

/* Sends by a call that needs no pipe. */
static int
mapped_without_pipe(
    struct pw_send *s, const char *data, size_t len, size_t *sent)
{
	if (!pins_marked(send_priv(s)->ss_pin))
		return send_by_sendfile(s, len, sent);
	return sink_send(
	    s, data, len, s->snd_more || (off_t)len < s->snd_len, sent);
}

/* Sends len bytes at data, which are not the last ones. */
static int
mapped_send_pages(struct pw_send *s, const char *data, size_t len, size_t *sent)
{
	int error = piped_send(s, data, len, sent);

	return error == -ENOSYS ? mapped_without_pipe(s, data, len, sent)
				: error;
}

int
send_from_mapping(struct pw_send *s, size_t len, size_t *sent)
{
	const char *data = pins_mapping(send_priv(s)->ss_pin, s->snd_off);
	size_t pages = send_before_tail(s, len);
	int error;

	/*
	 * send(2) from the mapping would read the last bytes after file_check; send_copied reads
	 * them before it calls file_check.
	 */
	if (pages == 0 || s->snd_mem_len > 0)
		return send_copied(s, len, sent);
	error = mapped_send_pages(s, data, pages, sent);
	return error == -EFAULT ? -ESTALE : error;
}
