/*
 * account: see account.h.
 */
#include <errno.h>

#include "lib/disk/admission.h"
#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pool.h"
#include "lib/send/account.h"
#include "lib/send/send_private.h"

/* Counts bytes when they are sent: a request that is cancelled before its first byte is no use of the file. */
static void
account_use(const struct pw_send *s, off_t bytes)
{
	struct pw_loop *lp;

	if (!send_priv(s)->ss_counts)
		return;
	lp = file_priv(s->snd_file)->fp_loop;
	admission_sent(
	    pool_admission(lp->lp_pool), &lp->lp_noted, s->snd_file, bytes);
}

static void
account_advance(struct pw_send *s, uint64_t sent)
{
	uint64_t mem = sent < s->snd_mem_len ? sent : s->snd_mem_len;

	s->snd_sent += sent;
	if (mem > 0) /* snd_mem may be NULL */
		s->snd_mem += mem;
	s->snd_mem_len -= mem;
	s->snd_off += (off_t)(sent - mem);
	s->snd_len -= (off_t)(sent - mem);
	if (sent > mem)
		account_use(s, (off_t)(sent - mem));
}

/* Keeps an earlier error: a transmission may have been cancelled while a disk thread sent for it. */
static enum account_next
account_fail(struct pw_send *s, int error)
{
	if (s->snd_error == 0)
		s->snd_error = error;
	return ACCOUNT_FAILED;
}

enum account_next
account_sent(struct pw_send *s, int error, uint64_t sent)
{
	if (sent > s->snd_mem_len + (uint64_t)s->snd_len)
		return account_fail(s, -EOVERFLOW);
	if (sent > 0)
		account_advance(s, sent);
	if (s->snd_mem_len == 0 && s->snd_len == 0)
		return ACCOUNT_DONE;
	switch (error) {
	case 0:
		return sent > 0 ? ACCOUNT_CALL : account_fail(s, -ESTALE);
	case -EINTR:
		return ACCOUNT_CALL;
	case -EAGAIN:
#if EAGAIN != EWOULDBLOCK
	case -EWOULDBLOCK:
#endif
		return ACCOUNT_FULL;
	case -EBUSY:
		return ACCOUNT_BUSY;
	default:
		return account_fail(s, error);
	}
}
