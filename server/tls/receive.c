/*
 * receive: reads records of an open session (session.h).  Such a record contains data, an alert
 * (RFC 8446, 6) or a request for a new key (4.6.3).
 */
#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/util/clock.h"
#include "server/tls/context_priv.h"
#include "server/tls/session.h"

/*
 * Maximum number of consecutive records without data, each of which costs as much as one with data.
 */
#define IDLE 32

/*
 * Rate limit of KeyUpdates and of requests for a second handshake: 32 at once, and one per second.
 * To compute a new key takes as long as twenty records; a client needs a new key after 24 million
 * records (RFC 8446, 5.5).
 */
static const struct token_rate update_rate = {.tr_rate = 1, .tr_depth = 32};

static long
tls_receive_receive(struct tls *tl, void *to, size_t room)
{
	ssize_t n;

	do
		n = recv(tl->tl_fd, to, room, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : n;
}

static int
tls_receive_refuse(struct tls *tl, int alert)
{
	tl->tl_alert[0] = SSL3_AL_FATAL;
	tl->tl_alert[1] = (unsigned char)alert;
	return -EPROTO;
}

static bool
tls_receive_update_admitted(struct tls *tl)
{
	uint64_t wait_ns;

	return token_try(
	    &tl->tl_updates, &update_rate, 1, clock_now() * 1000, &wait_ns);
}

/* -------------------------------------------------- records that are no data */

static int
tls_receive_on_alert(struct tls *tl, const struct record_text *rt)
{
	if (rt->rt_len != 2)
		return tls_receive_refuse(tl, SSL_AD_DECODE_ERROR);
	if (rt->rt_data[1] == SSL_AD_CLOSE_NOTIFY) {
		tl->tl_closed = true;
		return 0;
	}
	/* In TLS 1.3 the level of an alert has no meaning. */
	if (rt->rt_data[1] == SSL_AD_USER_CANCELLED ||
	    (rt->rt_data[0] == SSL3_AL_WARNING && !tl->tl_reads.rk_hides))
		return 0;
	tl->tl_broken = true;
	return -EPROTO;
}

/*
 * Checks the received bytes of a KeyUpdate, which may be incomplete, so that errors are found at
 * once.  Returns 0 or an alert.
 */
static int
tls_receive_check_update(const unsigned char *update, size_t len)
{
	static const unsigned char head[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1};

	if (update[0] != head[0])
		return SSL_AD_UNEXPECTED_MESSAGE;
	if (memcmp(update, head, len < sizeof(head) ? len : sizeof(head)) != 0)
		return SSL_AD_DECODE_ERROR;
	return len == TLS_UPDATE && update[4] > SSL_KEY_UPDATE_REQUESTED
		   ? SSL_AD_ILLEGAL_PARAMETER
		   : 0;
}

/*
 * Reads a KeyUpdate.  The message must end with its record, since this record is the last one with
 * the old key.
 */
static int
tls_receive_on_update(struct tls *tl, const struct record_text *rt)
{
	unsigned char *update = tl->tl_update;
	size_t n = sizeof(tl->tl_update) - tl->tl_update_len;
	int alert;

	if (n > rt->rt_len)
		n = rt->rt_len;
	memcpy(update + tl->tl_update_len, rt->rt_data, n);
	tl->tl_update_len += (unsigned char)n;
	alert = tls_receive_check_update(update, tl->tl_update_len);
	if (alert == 0 && n < rt->rt_len)
		alert = SSL_AD_UNEXPECTED_MESSAGE;
	if (alert != 0)
		return tls_receive_refuse(tl, alert);
	if (tl->tl_update_len < sizeof(tl->tl_update))
		return 0;
	tl->tl_update_len = 0;
	if (!tls_receive_update_admitted(tl))
		return tls_receive_refuse(tl, SSL_AD_UNEXPECTED_MESSAGE);
	tl->tl_wants_update |= update[4] == SSL_KEY_UPDATE_REQUESTED;
	return record_key_update(&tl->tl_reads)
		   ? 0
		   : tls_receive_refuse(tl, SSL_AD_INTERNAL_ERROR);
}

/*
 * Handles a handshake message: a KeyUpdate in TLS 1.3, else a request for a second handshake, which
 * is refused (RFC 5246, 7.4.1.1).
 */
static int
tls_receive_on_handshake(struct tls *tl, const struct record_text *rt)
{
	if (tl->tl_reads.rk_hides)
		return tls_receive_on_update(tl, rt);
	if (!tls_receive_update_admitted(tl))
		return tls_receive_refuse(tl, SSL_AD_UNEXPECTED_MESSAGE);
	tl->tl_alert[0] = SSL3_AL_WARNING;
	tl->tl_alert[1] = SSL_AD_NO_RENEGOTIATION;
	return 0;
}

/*
 * Handles a record that is not data.  Returns 0 or -errno.  Returns 0 for data, which the caller
 * handles.
 */
static int
tls_receive_on_record(struct tls *tl, const struct record_text *rt)
{
	bool splits = tl->tl_update_len > 0 && rt->rt_type != SSL3_RT_HANDSHAKE;
	bool data = rt->rt_type == SSL3_RT_APPLICATION_DATA;

	if (data && rt->rt_len > 0)
		tl->tl_idle = 0;
	else
		tl->tl_idle++;
	/* RFC 8446, 5.1, and RFC 5246, 6.2.1: only data may be empty. */
	if (splits || tl->tl_idle > IDLE || (!data && rt->rt_len == 0))
		return tls_receive_refuse(tl, SSL_AD_UNEXPECTED_MESSAGE);
	if (data)
		return 0;
	if (rt->rt_type == SSL3_RT_ALERT)
		return tls_receive_on_alert(tl, rt);
	if (rt->rt_type == SSL3_RT_HANDSHAKE)
		return tls_receive_on_handshake(tl, rt);
	return tls_receive_refuse(tl, SSL_AD_UNEXPECTED_MESSAGE);
}

/* ------------------------------------------------------------------ the inbox */

static void
tls_receive_forget(struct tls_inbox *ib)
{
	free(ib->ib_mem);
	*ib = (struct tls_inbox){.ib_mem = NULL};
}

static size_t
tls_receive_take_plain(struct tls_inbox *ib, void *to, size_t room)
{
	size_t n = ib->ib_plain < room ? ib->ib_plain : room;

	if (n == 0)
		return 0;
	memcpy(to, ib->ib_mem + ib->ib_at, n);
	ib->ib_at += n;
	ib->ib_plain -= n;
	if (ib->ib_plain == 0 && ib->ib_raw == 0)
		tls_receive_forget(ib);
	return n;
}

/* Moves the inbox's records to `to`.  Call when the inbox has no plaintext left. */
static size_t
tls_receive_take_raw(struct tls_inbox *ib, unsigned char *to)
{
	size_t n = ib->ib_raw;

	if (n > 0)
		memcpy(to, ib->ib_mem + ib->ib_at, n);
	if (ib->ib_mem != NULL)
		tls_receive_forget(ib);
	return n;
}

static int
tls_receive_store(struct tls_inbox *ib, const struct record_text *plain,
    const unsigned char *raw, size_t len)
{
	if (plain->rt_len + len == 0)
		return 0;
	ib->ib_mem = malloc(plain->rt_len + len);
	if (ib->ib_mem == NULL)
		return -ENOMEM;
	ib->ib_at = 0;
	ib->ib_plain = plain->rt_len;
	ib->ib_raw = len;
	if (plain->rt_len > 0)
		memcpy(ib->ib_mem, plain->rt_data, plain->rt_len);
	memcpy(ib->ib_mem + plain->rt_len, raw, len);
	return 0;
}

/* ---------------------------------------------------------------- the records */

/* State of a call of tls_recv. */
struct scatter {
	unsigned char *sc_mem;	    /* tx_scatter, which has the records */
	size_t sc_at;		    /* offset of the first unread record */
	size_t sc_len;		    /* bytes received */
	char *sc_to;		    /* memory of the caller */
	size_t sc_room;		    /* bytes of sc_to */
	size_t sc_taken;	    /* bytes of data written to sc_to */
	struct record_text sc_rest; /* rest of a decrypted record */
};

static void
tls_receive_take_text(struct scatter *sc, struct record_text *rt)
{
	size_t room = sc->sc_room - sc->sc_taken,
	       n = rt->rt_len < room ? rt->rt_len : room;

	memcpy(sc->sc_to + sc->sc_taken, rt->rt_data, n);
	sc->sc_taken += n;
	rt->rt_data += n;
	rt->rt_len -= n;
	sc->sc_rest = *rt;
}

/*
 * Reads complete records until the caller's memory is full.  If there is data, stops after a
 * record without data, since such a record may require a new key, which takes as long as twenty
 * records: some 20 us.  Returns 0 or -errno.
 */
static int
tls_receive_read_records(struct tls *tl, struct scatter *sc)
{
	struct record_text rt;
	unsigned char *mem;
	size_t len, left;
	int error;

	while (sc->sc_taken < sc->sc_room && !tl->tl_closed) {
		mem = sc->sc_mem + sc->sc_at;
		left = sc->sc_len - sc->sc_at;
		len = record_length(mem, left);
		if (len > RECORD_LONGEST)
			return tls_receive_refuse(tl, SSL_AD_RECORD_OVERFLOW);
		if (len == 0 || len > left)
			break;
		sc->sc_at += len;
		error = record_read(&tl->tl_reads, mem, len, &rt);
		if (error != 0)
			return tls_receive_refuse(tl, error);
		error = tls_receive_on_record(tl, &rt);
		if (error != 0)
			return error;
		if (rt.rt_type == SSL3_RT_APPLICATION_DATA)
			tls_receive_take_text(sc, &rt);
		else if (sc->sc_taken > 0)
			break;
	}
	return 0;
}

/* Receives more bytes.  Returns their number, 0 if the client has closed, or -errno. */
static long
tls_receive_get_more(struct tls *tl, struct scatter *sc)
{
	size_t room = sizeof(tl->tl_context->tx_scatter);
	long n;

	sc->sc_len -= sc->sc_at;
	memmove(sc->sc_mem, sc->sc_mem + sc->sc_at, sc->sc_len);
	sc->sc_at = 0;
	room -= sc->sc_len;
	n = tls_receive_receive(tl, sc->sc_mem + sc->sc_len, room);
	tl->tl_drained = n < (long)room;
	if (n > 0)
		sc->sc_len += (size_t)n;
	return n;
}

/* Receives records until there is data.  Returns as tls_recv does. */
static long
tls_receive_read_some(struct tls *tl, struct scatter *sc)
{
	long n = 1;
	int error = tls_receive_read_records(tl, sc);

	while (error == 0 && n > 0 && sc->sc_taken == 0 && !tl->tl_closed) {
		n = tls_receive_get_more(tl, sc);
		if (n > 0)
			error = tls_receive_read_records(tl, sc);
	}
	/* A third party can forge an end without close_notify (RFC 8446, 6.1). */
	if (n == 0)
		tl->tl_broken = true;
	if (error == 0 && n <= 0)
		error = n == 0 ? -ECONNRESET : (int)n;
	if (sc->sc_taken > 0)
		return (long)sc->sc_taken;
	return tl->tl_closed ? 0 : error;
}

long
tls_recv(struct tls *tl, void *to, size_t room)
{
	struct scatter sc = {
	    .sc_mem = tl->tl_context->tx_scatter, .sc_to = to, .sc_room = room};
	long n;
	int error = 0;

	/*
	 * After the server's close_notify or a failed handshake, the input is discarded, so it need
	 * not be decrypted.
	 */
	if (tl->tl_told || tl->tl_state != TLS_OPEN)
		return tls_receive_receive(tl, to, room);
	tl->tl_drained = false;
	n = (long)tls_receive_take_plain(&tl->tl_inbox, to, room);
	if (n > 0)
		return n;
	if (tl->tl_closed)
		return 0;
	if (tl->tl_broken)
		return -EPROTO;
	sc.sc_len = tls_receive_take_raw(&tl->tl_inbox, sc.sc_mem);
	n = tls_receive_read_some(tl, &sc);
	if (tl->tl_wants_update || tl->tl_alert[0] != 0)
		error = tls_say_what_is_due(tl);
	if (!tl->tl_broken && !tl->tl_closed)
		error = tls_receive_store(&tl->tl_inbox, &sc.sc_rest,
		    sc.sc_mem + sc.sc_at, sc.sc_len - sc.sc_at);
	return error == 0 || n > 0 ? n : error;
}

bool
tls_has_input(const struct tls *tl)
{
	const struct tls_inbox *ib = &tl->tl_inbox;
	size_t len;

	if (ib->ib_plain > 0)
		return true;
	len = ib->ib_raw == 0
		  ? 0
		  : record_length(ib->ib_mem + ib->ib_at, ib->ib_raw);
	return len > 0 && len <= ib->ib_raw;
}

bool
tls_has_part(const struct tls *tl)
{
	return tl->tl_inbox.ib_raw > 0 && !tls_has_input(tl);
}

bool
tls_is_drained(const struct tls *tl)
{
	/*
	 * After the end of the session no event follows, so tls_recv must be called again to report
	 * the end.
	 */
	return tl->tl_drained && !tl->tl_closed && !tl->tl_broken &&
	       !tls_has_input(tl);
}
