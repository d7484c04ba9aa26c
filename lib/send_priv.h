/*
 * send_priv: what a send path is made of; for lib/send*.c only.
 */
#ifndef LIB_SEND_PRIV_H
#define LIB_SEND_PRIV_H

#include "account.h"
#include "pagewise.h"

struct pw_send_path {
	const char *path_name;
	/* May be NULL: it works everywhere. */
	int (*path_probe)(const char **why);
	enum pw_send_status (*path_step)(struct pw_send *);
	/* Fetches for itself: kernel read-ahead would only be in its way. */
	bool path_prefetches;
};

extern const struct pw_send_path send_copy;
extern const struct pw_send_path send_blocking;
extern const struct pw_send_path send_nodiskio;

/*
 * Sends what is left of the memory and then, by call, of the file, until a share
 * (128 KiB in all) is gone or file_end is reached; the common half of every
 * path.  call sends up to len bytes at snd_off and says what came of it.
 */
typedef int (*send_call_f)(struct pw_send *, size_t len, size_t *sent);
enum pw_send_status send_window(struct pw_send *, off_t file_end, send_call_f);

/* A send_call_f: sendfile(2). */
int send_by_sendfile(struct pw_send *, size_t len, size_t *sent);

/* End of the window that holds snd_off, cut at the end of the range. */
off_t send_window_end(const struct pw_send *);

/* The same, but at most a share away. */
off_t send_share_end(const struct pw_send *);

/* Do the pages that this transmission brings in leave the page cache? */
bool send_drops(const struct pw_send *);

/* Gives what was brought in and not given back so far back in a moment. */
void send_drop_rest(struct pw_send *);

#endif
