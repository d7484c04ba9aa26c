/*
 * server/tls/receive.h: records of a client that has the keys, and bytes that are none.
 * Input: "VERSION ROOM\n" (12 or 13; bytes that each call takes, at most), and actions: a byte
 * for the length of what follows, a byte for what it is (the type of a record; RAW: bytes as
 * they are; READ: nothing, read what is there), and that.  Until the first thing that is refused,
 * what is read is what was written.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "server/tls/context_priv.h"
#include "server/tls/session.h"

#define RAW  1
#define READ 2
#define TEXT 65536

static struct tls_context context;
static struct tls session;
static struct record_key client; /* writes what the session reads */
static int fds[2];

/* What is to be read, and whether all is as it should be so far. */
static char wanted[TEXT];
static size_t wanted_len, wanted_at;
static bool lies, closed;

static void
set_keys(bool hides)
{
	struct record_material rm = {.rm_cipher = EVP_aes_128_gcm()};
	struct record_key first = {.rk_digest = EVP_sha256(),
	    .rk_hides = hides,
	    .rk_explicit = !hides,
	    .rk_secret_len = 32};

	client = session.tl_reads = session.tl_writes = first;
	session.tl_reads.rk_reads = true;
	CHECK(record_key_begin(&client, &rm));
	CHECK(record_key_begin(&session.tl_reads, &rm));
	CHECK(record_key_begin(&session.tl_writes, &rm));
}

static void
open_session(bool hides)
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
	memset(&session, 0, sizeof(session));
	tls_stream_init(&session);
	session.tl_context = &context;
	session.tl_fd = fds[0];
	session.tl_state = TLS_OPEN;
	set_keys(hides);
	wanted_len = wanted_at = 0;
	lies = closed = false;
}

static void
close_session(void)
{
	record_key_end(&client);
	record_key_end(&session.tl_reads);
	record_key_end(&session.tl_writes);
	free(session.tl_inbox.ib_mem);
	free(session.tl_rest);
	close(fds[0]);
	close(fds[1]);
}

/* A well-made answer of the session is not looked at here: test_receive.c does. */
static void
drop_answers(void)
{
	char mem[4096];

	while (read(fds[1], mem, sizeof(mem)) > 0)
		;
}

static void
read_all(size_t room)
{
	char *to = malloc(room);
	long n;

	CHECK(to != NULL);
	while ((n = tls_recv(&session, to, room)) > 0) {
		CHECK((size_t)n <= room);
		if (n > (long)(wanted_len - wanted_at))
			CHECK(lies);
		else
			CHECK(memcmp(wanted + wanted_at, to, (size_t)n) == 0);
		wanted_at += (size_t)n;
		if (lies && wanted_at > wanted_len)
			wanted_at = wanted_len;
	}
	if (n == 0)
		CHECK(session.tl_closed);
	if (!lies && !closed) {
		CHECK(n == -EAGAIN && wanted_at == wanted_len);
		CHECK(tls_is_drained(&session));
	}
	free(to);
	drop_answers();
}

static void
put(const void *mem, size_t len)
{
	if (write(fds[1], mem, len) != (ssize_t)len)
		lies = true;
}

/* What is no data may be right or wrong, and so may all behind it. */
static void
give(unsigned char type, struct str text)
{
	static const char update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1};
	unsigned char mem[256 + RECORD_OVERHEAD];
	size_t n = record_write(&client, type, text.s_ptr, text.s_len, mem);
	bool data = type == SSL3_RT_APPLICATION_DATA;

	CHECK(n > 0);
	if (data && text.s_len > 0 && !lies && !closed &&
	    wanted_len + text.s_len <= TEXT) {
		memcpy(wanted + wanted_len, text.s_ptr, text.s_len);
		wanted_len += text.s_len;
	} else if (type == SSL3_RT_ALERT && text.s_len == 2 &&
		   text.s_ptr[1] == 0) {
		closed = true;
	} else {
		lies = true;
	}
	put(mem, n);
	if (type == SSL3_RT_HANDSHAKE && client.rk_hides && text.s_len == 5 &&
	    memcmp(text.s_ptr, update, sizeof(update)) == 0)
		CHECK(record_key_update(&client));
}

static void
act(struct str *in, size_t room)
{
	unsigned char len = (unsigned char)in->s_ptr[0],
		      what = (unsigned char)in->s_ptr[1];
	struct str text = {in->s_ptr + 2, in->s_len - 2};

	if (text.s_len > len)
		text.s_len = len;
	in->s_ptr = text.s_ptr + text.s_len;
	in->s_len -= 2 + text.s_len;
	if (what == READ) {
		read_all(room);
	} else if (what == RAW) {
		lies = true;
		put(text.s_ptr, text.s_len);
	} else {
		give(what, text);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool prepared;
	struct str in = fuzz_input(data, size);
	struct str line = fuzz_line(&in);
	bool hides = fuzz_number(&line, 13) != 12;
	size_t room = fuzz_size(&line, 100, 1, 20000);

	if (!prepared)
		prepared = record_key_prepare() == 0;
	CHECK(prepared);
	open_session(hides);
	while (in.s_len >= 2)
		act(&in, room);
	read_all(room);
	close_session();
	return 0;
}
